"""Fabrics from nodes, devices and typed numbers."""

from __future__ import annotations

import pytest

from suanli.catalog.devices import find_device
from suanli.catalog.fabrics import device_fabric, fabric, network_names, node_fabric
from suanli.catalog.nodes import list_nodes
from suanli.errors import InputError, UnknownNameError


def test_a_node_gives_its_links_one_direction() -> None:
    made = node_fabric("hgx-h100")
    assert (made.gpus_per_node, made.link_bytes_per_s, made.nics_bytes_per_s) == (8, 450e9, 400e9)
    assert made.name == "hgx-h100, infiniband"
    assert made.ring_step_s == 9.6e-6
    assert any("tuning.cc" in source for source in made.sources)


def test_a_node_of_aws_has_efa() -> None:
    assert node_fabric("p5.48xlarge").name == "p5.48xlarge, efa"
    assert node_fabric("p5.48xlarge", network="infiniband").name == "p5.48xlarge, infiniband"


def test_adapters_can_be_typed() -> None:
    assert node_fabric("gb200-nvl72").nics_bytes_per_s is None
    assert node_fabric("gb200-nvl72", nics_bytes_per_s=3.6e12).nics_bytes_per_s == 3.6e12


def test_every_node_with_a_link_has_a_fabric() -> None:
    for node in list_nodes():
        if node.scaleup_bytes_per_s:
            assert node_fabric(node).gpus_per_node == node.devices_per_node
        else:
            with pytest.raises(InputError, match=f"^the links of {node.id} are not known"):
                node_fabric(node)


def test_a_device_gives_its_own_link() -> None:
    made = device_fabric(find_device("a800-80gb-sxm"), gpus_per_node=8, nics_bytes_per_s=None)
    assert (made.link_bytes_per_s, made.nics_bytes_per_s) == (200e9, None)
    with pytest.raises(InputError, match=r"^the link of l40s is not known"):
        device_fabric(find_device("l40s"), gpus_per_node=8, nics_bytes_per_s=None)


def test_unknown_names() -> None:
    assert network_names() == ("infiniband", "efa")
    with pytest.raises(UnknownNameError, match="nearest: hgx-h100"):
        node_fabric("hgx-h10")
    with pytest.raises(InputError, match=r"unknown network 'infinband' in network.*nearest: infiniband"):
        node_fabric("hgx-h100", network="infinband")


def test_every_fault_of_typed_numbers_is_listed() -> None:
    with pytest.raises(InputError) as caught:
        fabric(name="bad", gpus_per_node=0, link_bytes_per_s=float("nan"), nics_bytes_per_s=-1, network="token ring")
    assert [fault.where for fault in caught.value.faults] == [
        "gpus_per_node",
        "link_bytes_per_s",
        "nics_bytes_per_s",
        "network",
    ]
