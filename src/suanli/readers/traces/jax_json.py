"""`*.trace.json.gz` that JAX and XLA write beside `xplane.pb`, as a Trace.

Its events have no category: a device is a process named `/device:GPU:0` by a metadata event, and its lines of device
work are told by the names of threads, as in the xplane file (`xla_lines`). Times are µs with up to six decimals, read
as decimals and rounded to nanoseconds as `xplane_events.events_of` rounds picoseconds. There is no base time.
The xplane file holds more (JSON is cut at a million events unless told otherwise): give that one where both are there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from suanli.nouns.trace import OpDetail, Trace, TraceDevice
from suanli.readers.traces import xla_lines
from suanli.readers.traces.columns import sorted_tables
from suanli.readers.traces.gathered import LARGEST, Array, Faults, Names, Once, devices_seen, joined
from suanli.readers.traces.json_salvage import salvage_events
from suanli.readers.traces.opened import read_unpacked, refuse
from suanli.readers.traces.sentences import CUT, EVENTS, backward, behind, broken_json, no_time
from suanli.units import KILO

MOST_EVENTS = 1_000_000  # where XLA cuts (xplane_to_trace_events.cc); TF_PROFILER_TRACE_VIEWER_MAX_EVENTS overrules
_NS_PER_US = Decimal(KILO)
_HALF = Decimal("0.5")
_SMALLEST, _LARGEST = -400, 400  # powers of ten of a time: beyond them exact decimals are only slow
_ODD = "{count} {events that are not as JAX writes them are|event that is not as JAX writes it is} left out"
Row = tuple[int, ...]


Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]  # what a column holds


class Event(msgspec.Struct, gc=False):
    """One event; the last of a file is empty."""

    ph: str = ""
    pid: Whole = -1
    tid: Whole = -1
    name: str = ""
    ts: Decimal | None = None
    dur: Decimal | None = None
    args: dict[str, Any] | None = None


class Document(msgspec.Struct):
    """The file."""

    traceEvents: list[Event]  # noqa: N815  the file's own key


def read_jax_json(path: str | os.PathLike[str], raw: bytes | None = None) -> Trace:
    """The trace in a JSON file of JAX; `raw` is its unpacked content where that was read before.

    Raises UnreadableFileError for a file that is absent, no JSON, or not of this form.
    """
    content, given = read_unpacked(Path(path)) if raw is None else (raw, ())
    faults = Faults(given)
    try:
        events = msgspec.json.decode(content, type=Document).traceEvents
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        events = _salvaged(path, content, problem, faults)
    return _Reading(str(path), len(content), events, faults).trace()


def _salvaged(path: str | os.PathLike[str], content: bytes, problem: Exception, faults: Faults) -> list[Event]:
    """The events that can be read of JSON that breaks. Raises UnreadableFileError where there are none."""
    found, events, odd = salvage_events(content), list[Event](), 0
    for each in found.events if found is not None else ():
        try:
            events.append(msgspec.convert(each, Event, strict=False))
        except (msgspec.ValidationError, RecursionError):
            odd += 1
    if found is None or not any(event.ph for event in events):
        hint = "Give the .xplane.pb beside it, which can be read as far as it goes."
        refuse(path, "bad_jax_json", "the file is no trace.json of JAX", got=str(problem)[:200], hint=hint)
    faults.add("broken-json", found.lost_pieces, broken_json(found.lost_bytes))
    faults.add("bad-event", odd, _ODD)
    faults.add("truncated", int(found.cut), CUT)
    faults.add("more-documents", int(found.bytes_behind > 0), behind(found.bytes_behind))
    if found.broken_around:
        faults.note("broken-json", "what stands outside the events is no JSON")
    return events


class _Reading:
    """One file on its way to a Trace."""

    def __init__(self, path: str, size: int, events: list[Event], faults: Faults) -> None:
        self.path, self.size, self.events, self.faults = path, size, events, faults
        self.names, self.copies, self.details = Names(), Names(), Once[OpDetail]()
        self.processes, self.lines = _named(events, "process_name"), _named(events, "thread_name")
        self.threads = Once[tuple[str, str]]()
        self.bad = {"no-time": 0, "negative-duration": 0}

    def trace(self) -> Trace:
        """Everything, sorted."""
        work, host = self._rows()
        works, hosts = _columns(work, WORK), _columns(host, HOST)
        if work and host:
            none = np.zeros(max(len(work), len(host)), dtype=np.int64)
            numbers = works["correlation"], hosts["correlation"]
            works["launch"] = joined(none[: len(work)], numbers[0], none[: len(host)], numbers[1])
        devices = sorted(of[1] for (pid, _), name in self.processes.items() if (of := xla_lines.device_of(name)))
        self._note(bool(devices), bool(work))
        rows, spans = sorted_tables(works, hosts)
        return Trace(
            path=self.path,
            format="jax-json",
            bytes_read=self.size,
            events=sum(event.ph == "X" for event in self.events),
            devices=devices_seen((TraceDevice(id=number) for number in devices), ()),
            names=tuple(self.names.items),
            threads=tuple(self.threads.items),
            copy_kinds=tuple(self.copies.items),
            details=tuple(self.details.items),
            work=rows,
            host=spans,
            faults=self.faults.found(),
        )

    def _note(self, devices: bool, work: bool) -> None:
        self.faults.add("no-time", self.bad["no-time"], no_time(EVENTS))
        self.faults.add("negative-duration", self.bad["negative-duration"], backward(EVENTS))
        if len(self.events) >= MOST_EVENTS:
            self.faults.note("dropped-events", f"the file is full at {MOST_EVENTS:,} events: give the .xplane.pb")
        if not devices:
            self.faults.note("no-device-work", "the trace has no GPU or TPU: only the host was profiled")
        elif not work:
            self.faults.note("no-device-work", "the devices did no work")

    def _rows(self) -> tuple[list[Row], list[Row]]:
        """Device work and host spans in the file's order."""
        work: list[Row] = []
        host: list[Row] = []
        devices = {pid: xla_lines.device_of(name) for (pid, _), name in self.processes.items()}
        for event in self.events:
            if event.ph != "X":
                continue
            times = self._times(event)
            if times is None:
                continue
            of = devices.get(event.pid)
            if of is None:
                host += self._span(event, times)
            else:
                work += self._piece(event, times, *of)
        return work, host

    def _times(self, event: Event) -> tuple[int, int] | None:
        """Start and end in ns; None, and counted, where there are none."""
        start, duration = event.ts, event.dur if event.dur is not None else Decimal(0)
        if start is None or not (_plain(start) and _plain(duration)):
            self.bad["no-time"] += 1
            return None
        if duration < 0:
            self.bad["negative-duration"] += 1
            return None
        return _nanoseconds(start), _nanoseconds(start + duration)

    def _piece(self, event: Event, times: tuple[int, int], device: str, number: int) -> list[Row]:
        """A piece of device work; nothing where the line shows the same time again."""
        stream = xla_lines.stream_of(device, self.lines.get((event.pid, event.tid), ""), event.tid)
        if stream is None:
            return []
        said = _said(event)
        name = xla_lines.short_name(event.name, "")
        label = xla_lines.copy_label(name)
        copy = -1 if label is None else self.copies.of(label)
        kind, size = xla_lines.work_kind(name, said), xla_lines.copied_bytes(said)
        more = (self._detail(said), _whole(said.get("correlation_id")))
        return [(*times, number, stream, self.names.of(name), kind, size, copy, *more)]

    def _span(self, event: Event, times: tuple[int, int]) -> list[Row]:
        """A span of a host's thread; nothing for frames of Python."""
        if xla_lines.is_python(event.name):
            return []
        said = _said(event)
        process = self.processes.get((event.pid, -1), str(event.pid))
        label = (process, self.lines.get((event.pid, event.tid), str(event.tid)))
        thread = self.threads.place((event.pid, event.tid), label)
        name = self.names.of(xla_lines.host_name(event.name, said.get("step_num")))
        more = (self._detail(said), _whole(said.get("correlation_id")))
        return [(*times, thread, name, xla_lines.host_kind(event.name, said), *more)]

    def _detail(self, said: Mapping[str, Any]) -> int:
        detail = xla_lines.detail_of(said)
        return -1 if detail is None else self.details.place(repr(detail), detail)


WORK = ("start_ns", "end_ns", "device", "stream", "name", "kind", "bytes", "copy", "detail", "correlation")
HOST = ("start_ns", "end_ns", "thread", "name", "kind", "detail", "correlation")


def _columns(rows: list[Row], names: Sequence[str]) -> dict[str, Array]:
    table = np.array(rows, dtype=np.int64).reshape(len(rows), len(names))
    return {name: table[:, at] for at, name in enumerate(names)}


def _named(events: list[Event], what: str) -> dict[tuple[int, int], str]:
    """Names that metadata events give to processes (thread -1) and threads."""
    return {
        (event.pid, event.tid if what == "thread_name" else -1): text
        for event in events
        if event.ph == "M" and event.name == what and isinstance(text := (event.args or {}).get("name"), str)
    }


def _said(event: Event) -> Mapping[str, Any]:
    """The arguments; texts all of them."""
    return event.args or {}


def _whole(value: Any) -> int:
    """A number as written in text; -1: none."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1


def _plain(value: Decimal) -> bool:
    """Whether a time is a number within int64, and not so written that exact sums take for ever."""
    if not value.is_finite() or not _SMALLEST < value.as_tuple().exponent <= _LARGEST:  # type: ignore[operator]
        return False
    return abs(value) < LARGEST // KILO


def _nanoseconds(us: Decimal) -> int:
    """The nearest whole ns, halves up."""
    return int((us * _NS_PER_US + _HALF).to_integral_value(ROUND_FLOOR))
