"""What XLA's profiler calls things, in `xplane.pb` and in `trace.json`: devices, lines of device work, copies, HLO.

A device's lines show one time several times over: steps, modules, operations, names of the framework. Device work is
what a stream of a GPU ran, and what the line `XLA Ops` of a TPU ran; asynchronous operations of a TPU, which run beside
its core, have a line of their own. No other line is counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from suanli.nouns.trace import HostKind, OpDetail, WorkKind

_DEVICE = re.compile(r"/device:(GPU|TPU):(\d{1,6})")
_STREAM = re.compile(r"Stream #(\d{1,9})")
_TPU_LINES = ("XLA Ops", "Async XLA Ops")
_TPU_COPIES = frozenset(("copy-start", "copy-done"))  # hlo_category: the core starts a copy, and waits for it
_COPY = re.compile(r"(?:Memcpy|Copy)(H2D|D2H|D2D|P2P|HostToDevice|DeviceToHost|DeviceToDevice|PeerToPeer)?\w*")
_COPY_LABELS = {
    "H2D": "HtoD", "D2H": "DtoH", "D2D": "DtoD", "P2P": "PtoP", "HostToDevice": "HtoD", "DeviceToHost": "DtoH",
    "DeviceToDevice": "DtoD", "PeerToPeer": "PtoP",
}  # fmt: skip
_SET = re.compile(r"Memset\w*")
_SIZE = re.compile(r"\b(?:size|num_bytes):(\d{1,18})\b")
_TRIPLE = re.compile(r"\b(grid|block):(\d{1,10}),(\d{1,10}),(\d{1,10})")
_INSTRUCTION = re.compile(r"%([\w.\-]+) = ")
_CALL = re.compile(r"(?:cu|cuda|hip|hsa)[A-Z_]\w*")
# statistics of an event -> keys of OpDetail.hlo
HLO = {"hlo_module": "module", "hlo_op": "op", "hlo_category": "category", "name": "name", "shape_with_layout": "shape"}
DETAILS = (*HLO, "kernel_details", "memcpy_details", "memset_details", "long_name")
COUNTS = ("flops", "model_flops", "bytes_accessed")
HOST_DETAILS = ("hlo_op", "hlo_module")


def device_of(name: str) -> tuple[str, int] | None:
    """GPU or TPU and the number of a device's plane or process; None for others."""
    found = _DEVICE.fullmatch(name)
    return (found[1], int(found[2])) if found else None


def stream_of(device: str, line: str, number: int) -> int | None:
    """The stream of a line of device work: a GPU's own number, a TPU's line; None for lines that are none."""
    if device == "GPU":
        found = _STREAM.match(line)
        return int(found[1]) if found else None
    return number if line in _TPU_LINES else None


def short_name(name: str, display: str) -> str:
    """`fusion.3` of `%fusion.3 = f32[…] fusion(…)`; the name itself where it is no HLO text."""
    found = _INSTRUCTION.match(name)
    return found[1] if found else name or display


def work_kind(name: str, said: Mapping[str, Any]) -> WorkKind:
    """Copy or set where the profiler says so, else a kernel."""
    if said.get("memset_details") or _SET.fullmatch(name):
        return WorkKind.SET
    if said.get("memcpy_details") or _COPY.fullmatch(name) or said.get("hlo_category") in _TPU_COPIES:
        return WorkKind.COPY
    return WorkKind.KERNEL


def copy_label(name: str) -> str | None:
    """HtoD, DtoH, DtoD or PtoP by the name of a copy; None: not said."""
    found = _COPY.fullmatch(name)
    return _COPY_LABELS[found[1]] if found and found[1] else None


def copied_bytes(said: Mapping[str, Any]) -> int:
    """Bytes of a copy or set; -1: not said. The profiler writes 0 where it does not know."""
    text = said.get("memcpy_details") or said.get("memset_details") or ""
    found = _SIZE.search(text)
    return int(found[1]) or -1 if found else -1


def detail_of(said: Mapping[str, Any], text: str | None = None) -> OpDetail | None:
    """What statistics say of a kernel or op; None where they say nothing. `text` is the HLO instruction."""
    hlo = {key: said[name] for name, key in HLO.items() if said.get(name)}
    hlo |= {key: said[key] for key in ("program", "instruction") if said.get(key) is not None}
    text = text or said.get("long_name")
    if text:
        hlo["text"] = text
    flops, model_flops, moved = (_count(said.get(name)) for name in COUNTS)
    detail = OpDetail(
        kernel=_launch(said.get("kernel_details")) or None,
        hlo=hlo or None,
        flops=flops,
        model_flops=model_flops,
        bytes_accessed=moved,
    )
    return detail if detail != OpDetail() else None


def _launch(text: Any) -> dict[str, Any]:
    """grid and block of `regs:… grid:16,18,1 block:256,1,1 …`, and the text itself."""
    if not isinstance(text, str) or not text.strip():
        return {}
    shape = {found[1]: tuple(int(part) for part in found.groups()[1:]) for found in _TRIPLE.finditer(text)}
    return {**shape, "details": text.strip()}


def _count(value: Any) -> float | None:
    """A count of the profiler's; text comes from JSON."""
    try:
        number = float(value) if value is not None else None
    except (TypeError, ValueError):
        return None
    return number if number is not None and 0 <= number < float("inf") else None


def host_kind(name: str, said: Mapping[str, Any]) -> HostKind:
    """A call of the runtime; a step or range that somebody named; else an operation of XLA or the framework."""
    if _CALL.fullmatch(name) or said.get("correlation_id") is not None:
        return HostKind.RUNTIME
    if said.get("step_num") is not None:
        return HostKind.MARK
    inside = "::" in name or "(" in name or bool(said.get("hlo_op"))
    return HostKind.OP if inside else HostKind.MARK


def host_name(name: str, step: Any) -> str:
    """A step with its number, `train#3`; else the name."""
    return name if step is None else f"{name}#{step}"


def is_python(name: str) -> bool:
    """Whether a host span is a frame of Python's tracer (`$module.py:12 function`): no span of Host."""
    return name.startswith("$")
