"""XSpace, the message in an `xplane.pb`: planes with lines of events, and tables of names beside them.

Field numbers are those of xplane.proto (openxla/xla, xla/tsl/profiler/protobuf):
XSpace planes 1; XPlane id 1, name 2, lines 3, event_metadata 4, stat_metadata 5, stats 6; XLine id 1, name 2,
timestamp_ns 3, events 4, display_name 11; XEvent metadata_id 1, offset_ps 2, duration_ps 3, stats 4,
num_occurrences 5; XStat metadata_id 1, double 2, uint64 3, int64 4, str 5, bytes 6, ref 7; XEventMetadata id 1, name 2,
display_name 4, stats 5; XStatMetadata id 1, name 2; entries of maps key 1, value 2.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from suanli.readers.traces.wire import BYTES, FIXED64, VARINT, Data, fields, signed, varint

_EVENT_TAG = 4 << 3 | BYTES  # of XLine.events
DOUBLE, UINT64, INT64, STRING, RAW, REFERENCE = 2, 3, 4, 5, 6, 7  # fields of XStat


@dataclass
class EventName:
    """XEventMetadata: what all events of one kind share."""

    name: str = ""
    display: str = ""
    stats: dict[int, Any] = field(default_factory=dict)  # by the number of the statistic's name


@dataclass
class Line:
    """A thread, stream or row of a plane. Events are places in the file, to be decoded together."""

    id: int = 0
    name: str = ""
    timestamp_ns: int = 0
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


@dataclass
class Plane:
    """A device or host. Statistics by the number of their name, see `stat`."""

    name: str = ""
    lines: list[Line] = field(default_factory=list)
    events: dict[int, EventName] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    stats: dict[int, Any] = field(default_factory=dict)

    def stat(self, name: str) -> Any:
        """A statistic of the plane itself; None: not there."""
        return self.named(self.stats).get(name)

    def named(self, stats: dict[int, Any]) -> dict[str, Any]:
        """Statistics by name; references become the names they mean."""
        return {
            self.stat_names[number]: self.stat_names.get(value.to, "") if isinstance(value, Reference) else value
            for number, value in stats.items()
            if number in self.stat_names
        }


@dataclass(frozen=True)
class Reference:
    """A statistic whose value is the name of another."""

    to: int


def planes(data: Data, breaks: list[int]) -> list[Plane]:
    """The planes of a file; places where it breaks off are added to `breaks`, and what stands before them is kept."""
    raw, found = data.raw, []
    for number, kind, value, end in fields(raw, 0, len(raw), breaks):
        if number == 1 and kind == BYTES:
            found.append(_plane(raw, value, end, breaks))
    return found


def _plane(raw: bytes, at: int, end: int, breaks: list[int]) -> Plane:
    plane = Plane()
    for number, kind, value, stop in fields(raw, at, end, breaks):
        if kind != BYTES:
            continue
        if number == 2:
            plane.name = _text(raw, value, stop)
        elif number == 3:
            plane.lines.append(_line(raw, value, stop, breaks))
        elif number == 4:
            key, start, limit = _entry(raw, value, stop, breaks)
            plane.events[key] = _event_name(raw, start, limit, breaks)
        elif number == 5:
            key, start, limit = _entry(raw, value, stop, breaks)
            plane.stat_names[key] = _name(raw, start, limit, breaks)
        elif number == 6:
            name, what = _stat(raw, value, stop, breaks)
            plane.stats[name] = what
    return plane


def _line(raw: bytes, at: int, end: int, breaks: list[int]) -> Line:
    line = Line()
    display = ""
    for number, kind, value, stop in _line_fields(raw, at, end, line, breaks):
        if number == 1 and kind == VARINT:
            line.id = signed(value)
        elif number == 2 and kind == BYTES:
            line.name = _text(raw, value, stop)
        elif number == 3 and kind == VARINT:
            line.timestamp_ns = signed(value)
        elif number == 11 and kind == BYTES:
            display = _text(raw, value, stop)
    line.name = line.name or display
    return line


def _line_fields(raw: bytes, at: int, end: int, line: Line, breaks: list[int]) -> Any:
    """Fields of a line but its events, whose places go into the line: there may be millions."""
    starts, ends = line.starts.append, line.ends.append
    while at < end:
        if raw[at] != _EVENT_TAG:
            for number, kind, value, stop in fields(raw, at, end, breaks):
                yield number, kind, value, stop
                at = stop
                break
            else:
                return
            continue
        start = at + 2
        if start >= end:
            breaks.append(at)
            return
        size = raw[at + 1]
        if size > 127:  # two bytes hold the length of almost every event
            second = raw[start]
            size, start = (size & 127 | second << 7, at + 3) if second < 128 else varint(raw, at + 1, end)
        if start < 0 or start + size > end:  # an event that is cut has no sure time
            breaks.append(at)
            return
        starts(start)
        at = start + size
        ends(at)


def _entry(raw: bytes, at: int, end: int, breaks: list[int]) -> tuple[int, int, int]:
    """Key and place of the value of a map's entry."""
    key, start, limit = 0, end, end
    for number, kind, value, stop in fields(raw, at, end, breaks):
        if number == 1 and kind == VARINT:
            key = signed(value)
        elif number == 2 and kind == BYTES:
            start, limit = value, stop
    return key, start, limit


def _event_name(raw: bytes, at: int, end: int, breaks: list[int]) -> EventName:
    made = EventName()
    for number, kind, value, stop in fields(raw, at, end, breaks):
        if kind != BYTES:
            continue
        if number == 2:
            made.name = _text(raw, value, stop)
        elif number == 4:
            made.display = _text(raw, value, stop)
        elif number == 5:
            name, what = _stat(raw, value, stop, breaks)
            made.stats[name] = what
    return made


def _name(raw: bytes, at: int, end: int, breaks: list[int]) -> str:
    found = fields(raw, at, end, breaks)
    return next((_text(raw, value, stop) for number, kind, value, stop in found if (number, kind) == (2, BYTES)), "")


def _stat(raw: bytes, at: int, end: int, breaks: list[int]) -> tuple[int, Any]:
    name, what = 0, None
    for number, kind, value, stop in fields(raw, at, end, breaks):
        if number == 1:
            name = signed(value)
        else:
            what = _value(raw, number, kind, value, stop)
    return name, what


def _value(raw: bytes, number: int, kind: int, value: int, stop: int) -> Any:
    if number == DOUBLE and kind == FIXED64:
        return struct.unpack("<d", value.to_bytes(8, "little"))[0]
    if kind == VARINT:
        return Reference(value) if number == REFERENCE else signed(value) if number == INT64 else value
    if kind == BYTES:
        return _text(raw, value, stop) if number == STRING else raw[value:stop]
    return None


def _text(raw: bytes, at: int, end: int) -> str:
    return raw[at:end].decode("utf-8", "replace")
