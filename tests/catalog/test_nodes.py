"""The catalogue of nodes."""

from __future__ import annotations

import pytest

from suanli.catalog.devices import find_device, list_devices, read_rows, source_texts
from suanli.catalog.nodes import find_node, list_nodes, load, nodes_of
from suanli.errors import ConfigError, InputError, UnknownNameError
from suanli.nouns.hardware import Node
from suanli.units import GIGA

EVERY = pytest.mark.parametrize("node", list_nodes(), ids=lambda node: node.id)


@EVERY
def test_every_node_is_found_and_holds_known_devices(node: Node) -> None:
    for name in (node.id, node.name, *node.aliases):
        assert find_node(name) is node
    assert node.device_ids
    assert set(node.device_ids) <= {device.id for device in list_devices()}
    assert set(node.sources) <= set(source_texts())
    assert node.compiled == "2026-11"
    assert node.devices_per_node > 0


@EVERY
def test_the_links_of_a_node_are_those_of_its_devices(node: Node) -> None:
    """Where both the node and its device give a link rate, they agree."""
    for device_id in node.device_ids:
        rate = find_device(device_id).link_bytes_per_s
        if node.scaleup_bytes_per_s and rate:
            assert node.scaleup_bytes_per_s == rate


@EVERY
def test_adapters_add_up_to_the_rate_between_nodes(node: Node) -> None:
    if node.nics and node.nic_bytes_per_s and node.internode_bytes_per_s:
        assert node.nics * node.nic_bytes_per_s == node.internode_bytes_per_s


def test_one_row_field_by_field() -> None:
    node = find_node("DGX H100")
    assert (node.id, node.vendor, node.device_ids) == ("hgx-h100", "NVIDIA", ("h100-80gb-sxm",))
    assert node.devices_per_node == 8
    assert (node.scaleup_link, node.scaleup_bytes_per_s) == ("NVLink4", 900 * GIGA)
    assert (node.nics, node.nic_bytes_per_s, node.internode_bytes_per_s) == (8, 50 * GIGA, 400 * GIGA)


def test_what_no_source_gives_is_none() -> None:
    node = find_node("gb200-nvl72")
    assert (node.nics, node.nic_bytes_per_s, node.internode_bytes_per_s) == (None, None, None)


def test_nodes_of_a_device() -> None:
    assert nodes_of(find_device("h100-sxm"))[0].id == "hgx-h100"
    assert nodes_of(find_device("rtx-4090")) == ()


def test_unknown_node_word_by_word() -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_node("p4d.24xlarg")
    assert str(caught.value) == (
        "unknown node 'p4d.24xlarg' in --node; expected one of 44 known; "
        "nearest: p4d.24xlarge, p4de.24xlarge, p5.48xlarge. "
        "Give the devices per node and the link rates instead."
    )
    with pytest.raises(InputError, match="not a node name in --node; got None"):
        find_node(None)  # type: ignore[arg-type]


def test_all_faults_of_a_table_are_reported_together() -> None:
    rows = [dict(row) for row in read_rows("nodes.csv")[:2]]
    rows[0]["devices_per_node"] = "some"
    rows[1]["nics"] = "-8"
    with pytest.raises(ConfigError) as caught:
        load(rows)
    assert [fault.code for fault in caught.value.faults] == ["bad_quantity", "negative_quantity"]
