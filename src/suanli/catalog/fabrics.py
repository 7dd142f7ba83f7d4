"""Fabrics: the links of a catalogue node, or typed numbers, with the latencies of a kind of network."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any

from suanli.catalog.curve_files import parse_toml
from suanli.catalog.nodes import find_node
from suanli.errors import Fault, FaultList, InputError, shown, unknown_name
from suanli.nouns.curves import Fabric
from suanli.nouns.hardware import Device, Node

_BOTH_DIRECTIONS = 2  # catalogues give links as advertised, both directions together


def network_names() -> tuple[str, ...]:
    """The kinds of network whose latencies are known."""
    return tuple(_networks())


def node_fabric(node: Node | str, network: str | None = None, nics_bytes_per_s: float | None = None) -> Fabric:
    """The fabric of a node of the catalogue.

    `network` is a name of `network_names`; where it is None, EFA in a node of AWS and InfiniBand elsewhere.
    `nics_bytes_per_s` (all adapters of a node, one direction) replaces the catalogue's, which may not know it.
    Raises UnknownNameError for an unknown node or network, InputError where the node's links are not known.
    """
    found = find_node(node) if isinstance(node, str) else node
    kind = network or ("efa" if found.vendor == "AWS" else "infiniband")
    if found.scaleup_bytes_per_s is None:
        message = f"the links of {found.id} are not known"
        raise InputError(Fault(code="no_link", message=message, hint="Give them: fabric(link_bytes_per_s=…)."))
    return fabric(
        name=f"{found.id}, {kind}",
        gpus_per_node=found.devices_per_node,
        link_bytes_per_s=found.scaleup_bytes_per_s / _BOTH_DIRECTIONS,
        nics_bytes_per_s=found.internode_bytes_per_s if nics_bytes_per_s is None else nics_bytes_per_s,
        network=kind,
        sources=found.sources,
    )


def device_fabric(
    device: Device, *, gpus_per_node: int, nics_bytes_per_s: float | None, network: str = "infiniband"
) -> Fabric:
    """The fabric of nodes of `gpus_per_node` devices on their own links, and typed adapters."""
    if device.link_bytes_per_s is None:
        message = f"the link of {device.short_id} is not known"
        raise InputError(Fault(code="no_link", message=message, hint="Give it: fabric(link_bytes_per_s=…)."))
    return fabric(
        name=f"{gpus_per_node} × {device.short_id}, {network}",
        gpus_per_node=gpus_per_node,
        link_bytes_per_s=device.link_bytes_per_s / _BOTH_DIRECTIONS,
        nics_bytes_per_s=nics_bytes_per_s,
        network=network,
        sources=device.sources,
    )


def fabric(
    *,
    name: str,
    gpus_per_node: int,
    link_bytes_per_s: float,
    nics_bytes_per_s: float | None,
    network: str = "infiniband",
    sources: tuple[str, ...] = (),
) -> Fabric:
    """A fabric of typed numbers, one direction each. Raises one InputError that lists every impossible one."""
    faults = FaultList(InputError)
    numbers = {"gpus_per_node": gpus_per_node, "link_bytes_per_s": link_bytes_per_s}
    numbers |= {} if nics_bytes_per_s is None else {"nics_bytes_per_s": nics_bytes_per_s}
    for key, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            faults.add(code="bad_fabric", message="not a number above 0", where=key, got=shown(value))
    if network not in _networks():
        hint = "Or build Fabric with latencies of your own."
        faults.faults.extend(unknown_name("network", str(network), network_names(), where="network", hint=hint).faults)
    faults.raise_if_any()
    latencies = dict(_networks()[network])
    origin = latencies.pop("source")
    return Fabric(
        name=name,
        gpus_per_node=gpus_per_node,
        link_bytes_per_s=link_bytes_per_s,
        nics_bytes_per_s=nics_bytes_per_s,
        sources=(*sources, origin),
        **latencies,
    )


@functools.cache
def _networks() -> Mapping[str, dict[str, Any]]:
    path = resources.files("suanli.catalog") / "curves" / "networks.toml"
    return parse_toml(path.read_text(encoding="utf-8"), "networks.toml")
