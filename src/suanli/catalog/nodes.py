"""The machines of `nodes.csv` as Node nouns: how many devices, how they are linked, how nodes are joined."""

from __future__ import annotations

import functools

from suanli.catalog.devices import Row, read_rows, words
from suanli.catalog.match import normalised
from suanli.errors import ConfigError, Fault, FaultList, InputError, shown, unknown_name
from suanli.nouns.hardware import Device, Node
from suanli.units import GIGA, parse

FILE = "nodes.csv"
_BITS_PER_BYTE = 8


def list_nodes() -> tuple[Node, ...]:
    """Every node of the catalogue, in its order."""
    return _catalogue()


def nodes_of(device: Device) -> tuple[Node, ...]:
    """The nodes that hold `device`, in the catalogue's order: the maker's own platform comes first."""
    return tuple(node for node in _catalogue() if device.id in node.device_ids)


def find_node(text: str, where: str = "--node") -> Node:
    """The node whose id, alias or name is `text`. Raises UnknownNameError, naming the nearest."""
    if not isinstance(text, str):
        raise InputError(Fault(code="bad_node", message="not a node name", where=where, got=shown(text)))
    wanted = normalised(text)
    for node in _catalogue():
        if wanted in {normalised(name) for name in (node.id, node.name, *node.aliases)}:
            return node
    names = [node.id for node in _catalogue()]
    raise unknown_name("node", text, names, where=where, hint="Give the devices per node and the link rates instead.")


@functools.cache
def _catalogue() -> tuple[Node, ...]:
    return load(read_rows(FILE))


def load(rows: list[Row]) -> tuple[Node, ...]:
    """The nodes of `rows`. Raises ConfigError that lists every fault of every row."""
    faults, nodes = FaultList(ConfigError), []
    for row in rows:
        try:
            nodes.append(_node(row))
        except InputError as problem:
            faults.faults.extend(problem.faults)
    faults.raise_if_any()
    return tuple(nodes)


def _node(row: Row) -> Node:
    nics = _number(row, "nics", "count")
    bits_per_s = _number(row, "nic_gbps_each", "count")
    return Node(
        id=row["id"],
        aliases=words(row["aliases"]),
        name=row["name"],
        vendor=row["vendor"],
        device_ids=words(row["devices"]),
        devices_per_node=int(parse(row["devices_per_node"], "count", f"{FILE}: {row['id']}: devices_per_node")),
        scaleup_link=row["scaleup_link"] or None,
        scaleup_bytes_per_s=_number(row, "scaleup_bidir_gbs_per_gpu", "bytes_per_s", "GB/s"),
        scaleup_topology=row["scaleup_topology"] or None,
        nics=None if nics is None else int(nics),
        nic_bytes_per_s=None if bits_per_s is None else int(bits_per_s * GIGA) // _BITS_PER_BYTE,
        internode_bytes_per_s=_number(row, "internode_unidir_gbs_per_node", "bytes_per_s", "GB/s"),
        sources=words(row["sources"]),
        compiled=row["compiled"],
        notes=words(row["notes"]),
    )


def _number(row: Row, key: str, kind: str, suffix: str = "") -> int | float | None:
    return parse(row[key] + suffix, kind, f"{FILE}: {row['id']}: {key}") if row[key] else None
