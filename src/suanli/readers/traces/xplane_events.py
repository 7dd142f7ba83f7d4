"""The events of a plane as columns, with their statistics, decoded in step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suanli.readers.traces.gathered import LARGEST, Array, Faults, Names, within
from suanli.readers.traces.sentences import BROKEN_OFF, EVENTS, backward, no_time
from suanli.readers.traces.wire import BYTES, VARINT, Data, rounds
from suanli.readers.traces.xplane_space import INT64, REFERENCE, STRING, UINT64, Line, Plane
from suanli.units import KILO

PS_PER_NS = KILO
_HALF = PS_PER_NS // 2
_SUMS = "{count} {events are sums without a time and are|event is a sum without a time and is} left out"


@dataclass(frozen=True)
class Events:
    """Events of the chosen lines of a plane. N rows."""

    line: Array  # place among the lines chosen
    kind: Array  # number of the event's name
    start_ns: Array
    end_ns: Array
    stats: Stats

    def __len__(self) -> int:
        """Events."""
        return len(self.line)


@dataclass(frozen=True)
class Stats:
    """Statistics of events: one row each."""

    data: Data
    plane: Plane
    event: Array
    name: Array
    form: Array  # which of XStat's fields holds the value
    value: Array  # uint64: the number, or where the text starts
    end: Array
    events: int

    def numbers(self, name: str) -> Array:
        """The whole number that each event has under this name; -1 for none or negative, int64."""
        found: Array = np.full(self.events, -1, dtype=np.int64)
        at = self._of(name, (UINT64, INT64))
        values = self.value[at].view(np.int64)
        found[self.event[at]] = np.where(values >= 0, values, -1)
        return found

    def texts(self, name: str, into: Names) -> Array:
        """The text that each event has under this name as a place in `into`; -1: none."""
        found: Array = np.full(self.events, -1, dtype=np.int64)
        at = self._of(name, (REFERENCE,))
        numbers, place = np.unique(self.value[at].view(np.int64), return_inverse=True)
        named = [into.of(self.plane.stat_names.get(number, "")) for number in numbers.tolist()]
        found[self.event[at]] = np.array(named, dtype=np.int64)[place] if named else []
        for row in self._of(name, (STRING,)).tolist():
            text = self.data.raw[int(self.value[row]) : int(self.end[row])]
            found[self.event[row]] = into.of(text.decode("utf-8", "replace"))
        return found

    def _of(self, name: str, forms: Sequence[int]) -> Array:
        found = [np.flatnonzero(self.name == number) for number, text in self.plane.stat_names.items() if text == name]
        if not found:
            return np.empty(0, dtype=np.int64)
        at = np.concatenate(found)
        rows: Array = at[np.isin(self.form[at], forms)]
        return rows


def events_of(data: Data, plane: Plane, lines: Sequence[Line], faults: Faults) -> Events:
    """The events of these lines that have a time; others are counted.

    Times of the file are a whole nanosecond for the line and picoseconds for the event. Start and end are each rounded
    to the nearest nanosecond (halves up), so that events that touch still touch, no gap or overlap of 1 ns or more is
    made or lost, and a duration is off by less than 1 ns; over back-to-back events the errors cancel.
    """
    start, end = (np.array([at for line in lines for at in of(line)], dtype=np.int64) for of in (_starts, _ends))
    line = np.repeat(np.arange(len(lines)), [len(each.starts) for each in lines])
    broken = np.zeros(len(start), dtype=bool)
    kind, offset, duration, aggregated = (np.zeros(len(start), dtype=np.int64) for _ in range(4))
    stats: list[tuple[Array, Array, Array]] = []
    for each in rounds(data, start, end, broken):
        for number, column in ((1, kind), (2, offset), (3, duration), (5, aggregated)):
            at = (each.number == number) & (each.kind == VARINT)
            column[each.record[at]] = each.value[at].view(np.int64)
        at = (each.number == 4) & (each.kind == BYTES)
        stats.append((each.record[at], each.value[at].astype(np.int64), each.end[at]))
    faults.add("broken-record", int(broken.sum()), BROKEN_OFF)
    faults.add("aggregated", int((aggregated > 0).sum()), _SUMS)
    based = np.array([each.timestamp_ns for each in lines], dtype=np.int64)[line] if len(lines) else line
    sane = within(based, LARGEST) & within(offset, LARGEST) & (duration < LARGEST)
    faults.add("no-time", int((~sane & ~broken).sum()), no_time(EVENTS))
    reversed_ = sane & (duration < 0)
    faults.add("negative-duration", int(reversed_.sum()), backward(EVENTS))
    kept = np.flatnonzero(sane & ~reversed_ & ~broken & (aggregated == 0))
    first, last = (based[kept] + _nanoseconds(ps[kept]) for ps in (offset, offset + duration))
    return Events(line[kept], kind[kept], first, last, _stats(data, plane, stats, kept, len(start)))


def _starts(line: Line) -> list[int]:
    return line.starts


def _ends(line: Line) -> list[int]:
    return line.ends


def _nanoseconds(ps: Array) -> Array:
    """Nearest whole nanoseconds, halves up."""
    nearest: Array = (ps + _HALF) // PS_PER_NS
    return nearest


def _stats(data: Data, plane: Plane, found: list[tuple[Array, Array, Array]], kept: Array, events: int) -> Stats:
    """The statistics of the events kept, those of an event in the file's order."""
    place: Array = np.full(events, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    nothing: tuple[Array, Array, Array] = tuple(np.empty(0, dtype=np.int64) for _ in range(3))  # type: ignore[assignment]
    event, start, end = (np.concatenate(each) for each in zip(nothing, *found, strict=True))
    ours = place[event] >= 0
    event, start, end = place[event[ours]], start[ours], end[ours]
    name, form, stop = (np.zeros(len(event), dtype=np.int64) for _ in range(3))
    value = np.zeros(len(event), dtype=np.uint64)
    for each in rounds(data, start, end, np.zeros(len(event), dtype=bool)):
        named = (each.number == 1) & (each.kind == VARINT)
        name[each.record[named]] = each.value[named].view(np.int64)
        rest = ~named
        form[each.record[rest]] = _form(each.number[rest], each.kind[rest])
        value[each.record[rest]], stop[each.record[rest]] = each.value[rest], each.end[rest]
    return Stats(data, plane, event, name, form, value, stop, len(kept))


def _form(number: Array, kind: Array) -> Any:
    """The field of the value, where its kind is the one that belongs to it; else 0."""
    text = (number == STRING) & (kind == BYTES)
    whole = np.isin(number, (UINT64, INT64, REFERENCE)) & (kind == VARINT)
    return np.where(text | whole, number, 0)
