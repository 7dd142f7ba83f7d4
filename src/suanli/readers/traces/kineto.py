"""Traces of torch.profiler (Kineto): Chrome JSON, plain or packed, from torch 1.8 on, of any device.

What is device work is decided by the category alone, as Kineto writes it. Times are the file's with its base time
added, as whole nanoseconds. Python frames, arrows and counters are counted among the events and not kept.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from suanli.nouns.trace import HostKind, Trace, TraceFault
from suanli.readers.traces.columns import Array, by_begin, sorted_tables
from suanli.readers.traces.json_stream import NoEventsError, event_texts
from suanli.readers.traces.kineto_beside import read_beside
from suanli.readers.traces.kineto_columns import KinetoColumns
from suanli.readers.traces.kineto_links import linked
from suanli.readers.traces.kineto_meta import KinetoMeta
from suanli.readers.traces.kineto_part import has_halves, no_gc, read_texts
from suanli.readers.traces.kineto_salvage import EventReader, lost_names
from suanli.readers.traces.sentences import CUT, broken_json
from suanli.readers.traces.source import Progress, Source, refuse
from suanli.units import GIGA, HOUR, counted

_STEP = "ProfilerStep"
_REPAIRED = "{count} {pieces|piece} of broken JSON read after repair (quotes, escapes, bare words)"
_NO_EVENT = "none of {count} {items|item} of the list is an event"
_NO_TIME = "{count} {events|event} without a time {are|is} left out"
_OTHER_PHASE = "{count} {events that are|event that is} neither whole nor {halves|half} of one {are|is} left out"
_NEGATIVE = "{count} {events|event} of negative duration {are|is} left out"
_NO_CATEGORY = "{count} {events|event} without a category {are|is} left out"
_UNKNOWN = "{count} {events of categories that are|event of a category that is} not known {are|is} left out"
_EPOCH_NS = 10**9 * GIGA  # September 2001: a clock that stands before it counts from something else


def read_kineto(path: str | os.PathLike[str], progress: Progress | None = None, processes: int = 1) -> Trace:
    """The trace in a file of Kineto; a long one by that many processes, each a stretch of it, with the same result.

    Raises UnreadableFileError for what is no file or no trace.
    """
    source = Source(path, progress)
    with no_gc():
        header, reader, columns = read_beside(source, processes) or _read(source)
        return _trace(source, KinetoMeta(header, reader.state.tail, reader.state.tail_bytes), reader, columns)


def _read(source: Source) -> tuple[bytes, EventReader, KinetoColumns]:
    """Everything of the file: the text before its events, and the events as columns."""
    found = _read_by(source, EventReader())
    if not has_halves(*found[1:]):
        return found
    from suanli.readers.traces.kineto_pairs import PairedReader  # noqa: PLC0415  hardly any file has halves

    return _read_by(source, PairedReader())


def _read_by(source: Source, reader: EventReader) -> tuple[bytes, EventReader, KinetoColumns]:
    texts = event_texts(source.blocks())
    try:
        header = next(texts)
    except NoEventsError:
        hint = "Is it a trace of torch.profiler?"
        refuse(source.path, "no_trace", "the file holds no list of traceEvents", hint=hint)
    return header, *read_texts(texts, reader, to_the_end=True)


def _trace(source: Source, meta: KinetoMeta, reader: EventReader, columns: KinetoColumns) -> Trace:
    work, host = _timed(columns.work(), columns), _timed(columns.host(), columns)
    if reader.paired:
        host = by_begin(host)
    _check_any(source, reader, columns, len(work["start_ns"]) + len(host["start_ns"]))
    base = meta.base_ns or 0
    for table in (work, host):
        table["start_ns"] += base
        table["end_ns"] += base
    _mark_steps(host, columns)
    linked(work, host)
    pieces, spans = sorted_tables(work, host, given_up=True)
    rank = meta.rank(source.path)
    faults = _Faults(source, meta, reader, columns).all(rank, work)
    return Trace(
        path=source.path, format="kineto", producer=meta.producer, bytes_read=source.unpacked_bytes,
        events=reader.state.events, devices=meta.devices(np.unique(pieces.device).tolist()),
        names=tuple(columns.names.values_made), threads=tuple(columns.threads.values_made),
        copy_kinds=tuple(columns.copies.values_made), details=tuple(columns.details.ops.values_made),
        collectives=tuple(columns.details.calls.values_made), work=pieces, host=spans, rank=rank,
        world_size=meta.world_size, base_ns=base, groups=meta.groups, recorded=meta.recorded, faults=faults,
    )  # fmt: skip


def _timed(table: dict[str, Array], columns: KinetoColumns) -> dict[str, Array]:
    """The rows but those that begin at zero where the others do not: their time was never written."""
    start = table["start_ns"]
    if not len(start) or np.median(start) < HOUR * GIGA:
        return table
    written = start != 0
    if written.all():
        return table
    columns.no_time += int((~written).sum())
    return {name: values[written] for name, values in table.items()}


def _check_any(source: Source, reader: EventReader, columns: KinetoColumns, rows: int) -> None:
    """Refuse a file whose events are all of another kind, or all broken."""
    state = reader.state
    if state.events and state.strangers == state.events:
        refuse(source.path, "no_known_events", counted(state.events, _NO_EVENT),
               got="items without a phase (ph)", hint="Is it a trace of torch.profiler?")  # fmt: skip
    if rows or not (state.uncategorised or columns.unknown or (state.lost_pieces and not state.events)):
        return
    if not state.events:
        refuse(source.path, "broken_json", "no event of the trace can be read: its JSON is broken throughout")
    got = f"categories {lost_names(columns.unknown)}" if columns.unknown else "events without a category"
    message = counted(state.events, "none of {count} {events|event} has a category of torch.profiler")
    refuse(source.path, "no_known_events", message, got=got, expected="kernel, cpu_op, cuda_runtime and their kin")


def _mark_steps(host: dict[str, Array], columns: KinetoColumns) -> None:
    """Old versions wrote the steps of the profiler among the operators."""
    steps = np.array([name.startswith(_STEP) for name in columns.names.values_made], dtype=bool)
    if steps.any():
        host["kind"][steps[host["name"]]] = HostKind.MARK


@dataclass
class _Faults:
    """What was wrong with a file, as sentences."""

    source: Source
    meta: KinetoMeta
    reader: EventReader
    columns: KinetoColumns

    def all(self, rank: int | None, work: dict[str, Array]) -> tuple[TraceFault, ...]:
        said: list[tuple[str, int, str]] = []
        said += self._of_json()
        said += self._of_events()
        if rank is None:
            said.append(("no-rank", 0, "neither distributedInfo nor the name of the file says which rank this is"))
        if self.meta.base_ns is None and len(work["start_ns"]) and work["start_ns"].max() < _EPOCH_NS:
            said.append(("base-time", 0, "the file states no base time: its times are on a clock of their own"))
        mine = tuple(TraceFault(code=code, count=count, message=message) for code, count, message in said)
        return (*self.source.faults, *self.meta.faults(), *mine)

    def _of_json(self) -> list[tuple[str, int, str]]:
        reader, found = self.reader.state, []
        if reader.lost_pieces:
            what = counted(reader.lost_pieces, broken_json(reader.lost_bytes))
            found.append(("broken-json", reader.lost_pieces, what))
        if reader.repaired:
            found.append(("repaired-json", reader.repaired, counted(reader.repaired, _REPAIRED)))
        if not reader.ended:
            found.append(("truncated", 1, CUT))
        return found

    def _of_events(self) -> list[tuple[str, int, str]]:
        columns, found = self.columns, []
        if columns.no_time:
            found.append(("no-time", columns.no_time, counted(columns.no_time, _NO_TIME)))
        begins, ends = self.reader.state.begins, self.reader.state.ends
        if begins or ends:
            what = f"halves of events are left out: {begins:,} B without an E, {ends:,} E without a B"
            found.append(("half-event", begins + ends, what))
        others = +columns.phases
        if others:
            count, names = sum(others.values()), lost_names(repr(phase[:9]) for phase in others)
            found.append(("other-phase", count, f"{counted(count, _OTHER_PHASE)}: ph {names}"))
        if columns.negative:
            what = f"{counted(columns.negative, _NEGATIVE)}, {columns.negative_work:,} of a device"
            found.append(("negative-duration", columns.negative, what))
        if self.reader.state.uncategorised:
            count = self.reader.state.uncategorised
            found.append(("no-category", count, counted(count, _NO_CATEGORY)))
        if columns.unknown:
            count = sum(columns.unknown.values())
            what = f"{counted(count, _UNKNOWN)}: {lost_names(columns.unknown)}"
            found.append(("unknown-category", count, what))
        return found
