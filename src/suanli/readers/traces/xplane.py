"""`*.xplane.pb` of JAX, XLA and TensorFlow (XSpace, TPU and GPU), also packed as .gz, as a Trace.

Device work is what streams of a GPU ran and what a TPU's line of XLA operations ran; other lines show the same time
again and are not counted (`xla_lines`). Times are rounded to nanoseconds as `xplane_events.events_of` says; where the
file tells when profiling started (`profile_start_time`), lines count from there and it is added (`Trace.base_ns`).
FLOPs, bytes and peaks that a TPU's profiler states are kept as stated. Frames of Python's tracer are no host spans.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from suanli.nouns.trace import HostKind, OpDetail, Trace, TraceDevice
from suanli.readers.traces import xla_lines
from suanli.readers.traces.columns import sorted_tables
from suanli.readers.traces.gathered import Array, Faults, Names, Once, devices_seen, distinct, joined
from suanli.readers.traces.hlo_proto import HloModules
from suanli.readers.traces.opened import read_unpacked, refuse
from suanli.readers.traces.sentences import BROKEN_OFF
from suanli.readers.traces.wire import Data
from suanli.readers.traces.xplane_events import events_of
from suanli.readers.traces.xplane_space import EventName, Line, Plane, planes
from suanli.units import GIGA, TERA

HOST_PLANE, TASK = "/host:", "Task Environment"
METADATA = "/host:metadata"
_START = "profile_start_time"
_REPLACED = b"\xef\xbf\xbd"  # U+FFFD in UTF-8
Columns = dict[str, Array]


def read_xplane(path: str | os.PathLike[str]) -> Trace:
    """The trace in an XSpace file.

    Raises UnreadableFileError for a file that is absent, no XSpace, or one that went through a text editor: every
    byte that is not ASCII has become U+FFFD there, and no time can be had back.
    """
    raw, given = read_unpacked(Path(path))
    _refuse_mangled(path, raw)
    data, breaks = Data.of(raw), []  # type: tuple[Data, list[int]]
    found = planes(data, breaks)
    if not any(plane.name.isprintable() and plane.name for plane in found):
        refuse(path, "not_xspace", "the file is no XSpace", expected="an .xplane.pb of JAX, XLA or TensorFlow")
    faults = Faults(given)
    faults.add("broken-record", len(set(breaks)), BROKEN_OFF)
    return _Reading(str(path), data, found, faults).trace()


def _refuse_mangled(path: str | os.PathLike[str], raw: bytes) -> None:
    replaced = raw.count(_REPLACED)
    if replaced and _is_text(raw):
        refuse(
            path,
            "mangled",
            "the file was saved as text: bytes that are no text have become U+FFFD",
            got=f"{replaced:,} times EF BF BD",
            hint="Copy the original again as binary; what was replaced is lost.",
        )


def _is_text(raw: bytes) -> bool:
    """Whether all of it is UTF-8: numbers of events, as bytes, never are."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class _Reading:
    """One file on its way to a Trace."""

    def __init__(self, path: str, data: Data, found: list[Plane], faults: Faults) -> None:
        self.path, self.data, self.planes, self.faults = path, data, found, faults
        self.names, self.texts, self.copies, self.details = Names(), Names(), Names(), Once[OpDetail]()
        self.modules = HloModules(next((plane for plane in found if plane.name == METADATA), None))
        self.devices: list[TraceDevice] = []
        self.threads: list[tuple[str, str]] = []

    def trace(self) -> Trace:
        """Everything, sorted."""
        base = self._base()
        hosts = [self._host(plane) for plane in self.planes if _is_host(plane)]
        pieces = [self._device(plane, of) for plane in self.planes if (of := xla_lines.device_of(plane.name))]
        host, work = (
            _stacked(hosts, ("start_ns", "end_ns", "thread")),
            _stacked(pieces, ("start_ns", "end_ns", "device")),
        )
        if len(work["start_ns"]) and len(host["start_ns"]):
            same = np.zeros(max(len(work["start_ns"]), len(host["start_ns"])), dtype=np.int64)
            ours, theirs = work["correlation"], host["correlation"]
            work["launch"] = joined(same[: len(ours)], ours, same[: len(theirs)], theirs)
        self._note(bool(pieces), len(work["start_ns"]))
        for columns in (host, work):
            columns["start_ns"], columns["end_ns"] = columns["start_ns"] + base, columns["end_ns"] + base
        rows, spans = sorted_tables(work, host)
        return Trace(
            path=self.path,
            format="xplane",
            producer=self._producer(),
            bytes_read=len(self.data.raw),
            events=sum(len(line.starts) for plane in self.planes for line in plane.lines),
            devices=devices_seen(self.devices, ()),
            names=tuple(self.names.items),
            threads=tuple(self.threads),
            copy_kinds=tuple(self.copies.items),
            details=tuple(self.details.items),
            work=rows,
            host=spans,
            base_ns=base,
            faults=self.faults.found(),
        )

    def _base(self) -> int:
        """The start of profiling, where lines count from it; 0 where it is not said or already in their times."""
        said = [plane.stat(_START) for plane in self.planes if plane.name == TASK]
        base = next((each for each in said if isinstance(each, int) and 0 < each < 2**61), 0)
        absolute = any(line.timestamp_ns >= base for plane in self.planes for line in plane.lines if line.starts)
        return 0 if absolute else base

    def _producer(self) -> str:
        plane = next((plane for plane in self.planes if plane.name == METADATA), None)
        said = [(name, plane.stat(f"{name}_version")) for name in ("jax", "jaxlib")] if plane else []
        return ", ".join(f"{name} {version}"[:80] for name, version in said if isinstance(version, str))

    def _note(self, devices: bool, work: int) -> None:
        unread = [plane.name for plane in self.planes if plane.name.startswith("/device:") and plane.lines]
        unread = [name[:80] for name in unread if not xla_lines.device_of(name)]
        if unread:
            self.faults.say("unread-plane", len(unread), f"planes that are not known: {', '.join(unread)[:300]}")
        if not devices:
            self.faults.note("no-device-work", "the trace has no plane of a GPU or TPU: only the host was profiled")
        elif not work:
            self.faults.note("no-device-work", "the planes of devices hold no work")

    def _host(self, plane: Plane) -> Columns:
        """Spans of a host's threads."""
        lines = [line for line in plane.lines if line.starts]
        events = events_of(self.data, plane, lines, self.faults)
        texts = [events.stats.texts(name, self.texts) for name in xla_lines.HOST_DETAILS]
        step, correlation = events.stats.numbers("step_num"), events.stats.numbers("correlation_id")
        first, number = distinct([events.kind, step, np.minimum(correlation, 0), *texts])
        made = [
            self._span(plane, *(int(column[row]) for column in (events.kind, step, correlation, *texts)))
            for row in first.tolist()
        ]
        table = np.array(made, dtype=np.int64).reshape(-1, 4)[number]
        kept = table[:, 3] > 0  # frames of Python are none
        columns = {name: table[kept, at] for at, name in enumerate(("name", "kind", "detail"))}
        thread = events.line[kept] + len(self.threads)
        self.threads += [(plane.name, line.name or str(line.id)) for line in lines]
        times = {"start_ns": events.start_ns[kept], "end_ns": events.end_ns[kept]}
        return columns | times | {"thread": thread, "correlation": correlation[kept]}

    def _span(self, plane: Plane, kind: int, step: int, correlation: int, *texts: int) -> tuple[int, int, int, int]:
        """Name, kind and detail of a host event, and whether it is one."""
        name = self._event(plane, kind).name
        if xla_lines.is_python(name):
            return -1, HostKind.MARK, -1, 0
        said: dict[str, Any] = {key: self.texts.items[at] for key, at in self._pairs(texts)}
        numbers = {"step_num": step, "correlation_id": correlation}
        said |= {key: value for key, value in numbers.items() if value >= 0}
        place = self.names.of(xla_lines.host_name(name, said.get("step_num")))
        detail = xla_lines.detail_of(said)
        return place, xla_lines.host_kind(name, said), self._kept(detail), 1

    @staticmethod
    def _pairs(texts: Sequence[int]) -> list[tuple[str, int]]:
        return [(key, at) for key, at in zip(xla_lines.HOST_DETAILS, texts, strict=True) if at >= 0]

    def _kept(self, detail: OpDetail | None) -> int:
        return -1 if detail is None else self.details.place(repr(detail), detail)

    def _event(self, plane: Plane, kind: int) -> EventName:
        made = plane.events.get(kind)
        return made if made is not None and (made.name or made.display) else EventName(f"event {kind}")

    def _device(self, plane: Plane, of: tuple[str, int]) -> Columns:
        """What one device ran."""
        self.devices.append(_described(plane, of[1]))
        streams = [(line, xla_lines.stream_of(of[0], line.name, line.id)) for line in plane.lines if line.starts]
        chosen: list[tuple[Line, int]] = [(line, stream) for line, stream in streams if stream is not None]
        events = events_of(self.data, plane, [line for line, _ in chosen], self.faults)
        texts = [events.stats.texts(name, self.texts) for name in xla_lines.DETAILS]
        program = events.stats.numbers("program_id")
        if of[0] != "GPU":  # a TPU's profiler states what a module would tell
            program[:] = -1
        first, number = distinct([events.kind, program, *texts])
        made = [
            self._piece(plane, int(events.kind[row]), int(program[row]), [int(column[row]) for column in texts])
            for row in first.tolist()
        ]
        table = np.array(made, dtype=np.int64).reshape(-1, 5)[number]
        columns = {name: table[:, at] for at, name in enumerate(("name", "kind", "bytes", "copy", "detail"))}
        stream = np.array([number for _, number in chosen], dtype=np.int64)
        return columns | {
            "start_ns": events.start_ns,
            "end_ns": events.end_ns,
            "device": np.full(len(events), of[1], dtype=np.int64),
            "stream": stream[events.line],
            "correlation": events.stats.numbers("correlation_id"),
        }

    def _piece(self, plane: Plane, kind: int, program: int, texts: Sequence[int]) -> tuple[int, int, int, int, int]:
        """Name, kind, bytes, direction and detail of an event of a device."""
        event = self._event(plane, kind)
        said = plane.named(event.stats)
        said |= {key: self.texts.items[at] for key, at in zip(xla_lines.DETAILS, texts, strict=True) if at >= 0}
        name = xla_lines.short_name(event.name, event.display)
        label = xla_lines.copy_label(name)
        said |= self._instruction(program, said)
        detail = xla_lines.detail_of(said, event.name if event.name != name else None)
        return (
            self.names.of(name),
            xla_lines.work_kind(name, said),
            xla_lines.copied_bytes(said),
            -1 if label is None else self.copies.of(label),
            self._kept(detail),
        )

    def _instruction(self, program: int, said: dict[str, Any]) -> dict[str, Any]:
        """What the file's own modules say that a GPU's kernel ran."""
        op, module = (str(said.get(name) or "") for name in ("hlo_op", "hlo_module"))
        found = self.modules.instruction(program, module, op) if self.modules and op else None
        return {} if found is None else {"program": program, "instruction": found}


def _is_host(plane: Plane) -> bool:
    return plane.name.startswith(HOST_PLANE) and plane.name != METADATA and bool(plane.lines)


def _described(plane: Plane, number: int) -> TraceDevice:
    """A device by the statistics of its plane: TPUs state peaks, GPUs their parts."""
    said = plane.named(plane.stats)
    peak, hbm = said.get("peak_teraflops_per_second"), said.get("peak_hbm_bw_gigabytes_per_second")
    name = said.get("device_type_string")
    return TraceDevice(
        id=number,
        name=name if isinstance(name, str) and name else None,
        sm_count=_positive(said.get("core_count")),
        memory_bytes=_positive(said.get("memory_size")),
        memory_bytes_per_s=_scaled(hbm, GIGA) or _scaled(said.get("memory_bandwidth"), 1),
        peak_flop_per_s=_scaled(peak, TERA),
    )


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _scaled(value: Any, factor: int) -> float | None:
    good = isinstance(value, int | float) and 0 < value < float("inf")
    return value * factor if good else None


def _stacked(pieces: list[Columns], least: Sequence[str]) -> Columns:
    empty: Array = np.empty(0, dtype=np.int64)
    names = pieces[0] if pieces else dict.fromkeys((*least, "correlation"), empty)
    return {name: np.concatenate([piece[name] for piece in pieces]) if pieces else empty for name in names}
