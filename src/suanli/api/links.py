"""Links and network as typed in `--fabric`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from suanli.catalog.fabrics import fabric, network_names, node_fabric
from suanli.catalog.nodes import nodes_of
from suanli.errors import Fault, InputError, SuanliError, shown
from suanli.nouns.hardware import Device
from suanli.units import parse

WHERE = "--fabric"
TYPED = "8x450GB/s+400GB/s"
# What the parts of a typed fabric are called by those who type them.
WORDS = {
    "gpus_per_node": "GPUs a node", "link_bytes_per_s": "the link of a GPU", "nics_bytes_per_s": "a node's adapters",
}  # fmt: skip


def read_fabric(text: str | None, device: Device) -> Any:
    """Links and network: `NODE`, `NODE:NETWORK`, or typed as `8x450GB/s+400GB/s` (GPUs a node, one GPU's link and all
    adapters of a node, one direction each), with `:NETWORK` where that is not InfiniBand. Without a text the first
    node of the catalogue that holds the device. Raises InputError with every fault, in the option's words.
    """
    if text is None:
        return _usual(device)
    name, _, network = str(text).partition(":")
    count, times, rates = name.partition("x")
    if not (times and count.strip().isdecimal()):
        return _told(lambda: node_fabric(name, network or None))
    faults: list[Fault] = []
    link, plus, nics = rates.partition("+")
    given = [_rate(link, faults), _rate(nics, faults) if plus else None]
    found = _told(lambda: fabric(
        name=f"{count.strip()} × {device.short_id}, {network or 'infiniband'}", gpus_per_node=int(count),
        link_bytes_per_s=1 if given[0] is None else given[0], nics_bytes_per_s=given[1],
        network=network or "infiniband", sources=(f"{WHERE} {shown(str(text))}",),
    ), faults)  # fmt: skip
    if faults:
        raise InputError(*faults)
    return found


def _usual(device: Device) -> Any:
    """The first node of the catalogue that holds the device on known links."""
    nodes = [node for node in nodes_of(device) if node.scaleup_bytes_per_s is not None]
    if nodes:
        return node_fabric(nodes[0])
    raise InputError(Fault(
        code="missing_option", message=f"no node of the catalogue holds {device.short_id} on known links",
        where=WHERE, expected=f"a node, or GPUs a node with rates: {TYPED}",
    ))  # fmt: skip


def _rate(text: str, faults: list[Fault]) -> float | None:
    """Bytes/s of a typed part; None with its faults kept."""
    try:
        return float(parse(text, "bytes_per_s", WHERE))
    except SuanliError as problem:
        faults.extend(problem.faults)
    return None


def _told(read: Callable[[], Any], faults: list[Fault] | None = None) -> Any:
    """What `read` gives; its faults in the option's words are raised, or kept in `faults` where that is given."""
    try:
        return read()
    except SuanliError as problem:
        told = [_word(fault) for fault in problem.faults]
        if faults is None:
            raise type(problem)(*told) from None
        faults.extend(told)
    return None


def _word(fault: Fault) -> Fault:
    """A fault of a part of the fabric as one of the option."""
    part = WORDS.get(fault.where or "")
    if part is not None:
        return replace(fault, where=WHERE, message=f"{part}: {fault.message}", hint=f"As typed: {TYPED}.")
    if fault.code == "unknown_network":
        return replace(fault, where=WHERE, hint="Networks: " + ", ".join(network_names()) + ".")
    return replace(fault, where=WHERE, hint=f"Or GPUs a node with rates: {TYPED}.")
