"""XSpace files made by the tests: a writer of protobuf's wire format, and the same message by the protobuf library."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


def number(value: int) -> bytes:
    """A varint; negative ones as 64 bits."""
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def whole(field_number: int, value: int) -> bytes:
    """A field that is a number."""
    return number(field_number << 3) + number(value)


def packed(field_number: int, value: bytes | str) -> bytes:
    """A field that is text, bytes or a message."""
    content = value.encode() if isinstance(value, str) else value
    return number(field_number << 3 | 2) + number(len(content)) + content


@dataclass
class Ref:
    """A statistic whose value is a name in the plane's table."""

    name: str


@dataclass
class PlaneMade:
    """A plane on its way: names get their numbers as they come."""

    name: str
    stats: Mapping[str, Any] = field(default_factory=dict)
    lines: list[bytes] = field(default_factory=list)
    stat_numbers: dict[str, int] = field(default_factory=dict)
    event_numbers: dict[str, int] = field(default_factory=dict)
    shared: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # statistics of an event's name

    def stat(self, name: str, value: Any) -> bytes:
        """XStat."""
        head = whole(1, self._stat_number(name))
        if isinstance(value, Ref):
            return head + whole(7, self._stat_number(value.name))
        if isinstance(value, float):
            return head + number(2 << 3 | 1) + struct.pack("<d", value)
        if isinstance(value, int):
            return head + whole(4 if value < 2**63 else 3, value)
        return head + packed(5 if isinstance(value, str) else 6, value)

    def _stat_number(self, name: str) -> int:
        return self.stat_numbers.setdefault(name, len(self.stat_numbers) + 1)

    def line(self, name: str, events: Sequence[tuple[Any, ...]], *, id: int = 1, timestamp_ns: int = 0) -> PlaneMade:
        """XLine with events (name, offset ps, duration ps, statistics)."""
        body = whole(1, id) + packed(2, name) + whole(3, timestamp_ns)
        for kind, offset, duration, *stats in events:
            event = whole(1, self.event_numbers.setdefault(kind, len(self.event_numbers) + 1))
            event += whole(2, offset) + whole(3, duration)
            for key, value in (stats[0] if stats else {}).items():
                event += packed(4, self.stat(key, value))
            body += packed(4, event)
        self.lines.append(body)
        return self

    def written(self) -> bytes:
        """XPlane."""
        body = packed(2, self.name)
        stats = [self.stat(key, value) for key, value in self.stats.items()]
        events = []
        for name, place in self.event_numbers.items():
            made = whole(1, place) + packed(2, name)
            for key, value in self.shared.get(name, {}).items():
                made += packed(5, self.stat(key, value))
            events.append(packed(4, whole(1, place) + packed(2, made)))
        body += b"".join(packed(3, line) for line in self.lines) + b"".join(events)
        for name, place in self.stat_numbers.items():
            body += packed(5, whole(1, place) + packed(2, whole(1, place) + packed(2, name)))
        return body + b"".join(packed(6, stat) for stat in stats)


def space(*planes: PlaneMade) -> bytes:
    """XSpace."""
    return b"".join(packed(1, plane.written()) for plane in planes)


def by_protobuf(content: bytes) -> Any:
    """XSpace by google.protobuf, from descriptors made here: the second way to read a file."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    proto = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="xplane_test.proto", package="t", syntax="proto3")
    kinds = {"i": proto.TYPE_INT64, "u": proto.TYPE_UINT64, "b": proto.TYPE_BYTES, "d": proto.TYPE_DOUBLE}
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split():
            label, place, kind = text.split(":")
            repeated = proto.LABEL_REPEATED if kind.endswith("*") else proto.LABEL_OPTIONAL
            made = message.field.add(name=label, number=int(place), label=repeated)
            if kind.rstrip("*") in kinds:
                made.type = kinds[kind.rstrip("*")]
            else:
                made.type, made.type_name = proto.TYPE_MESSAGE, f".t.{kind.rstrip('*')}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Space")).FromString(content)


_MESSAGES = {
    "Space": "planes:1:Plane*",
    "Plane": "name:2:b lines:3:Line* events:4:EventEntry* stat_names:5:StatEntry* stats:6:Stat*",
    "Line": "id:1:i name:2:b timestamp_ns:3:i events:4:Event*",
    "Event": "kind:1:i offset_ps:2:i duration_ps:3:i stats:4:Stat* occurrences:5:i",
    "Stat": "name:1:i double:2:d unsigned:3:u signed:4:i text:5:b raw:6:b reference:7:u",
    "EventEntry": "key:1:i value:2:EventName",
    "EventName": "id:1:i name:2:b display:4:b stats:5:Stat*",
    "StatEntry": "key:1:i value:2:StatName",
    "StatName": "id:1:i name:2:b",
}
