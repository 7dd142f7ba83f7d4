"""Halves of events (`ph` "B" begins, "E" ends) -> complete ones ("X"), text by text.

An end that says a name ends the last begun event of that name on its thread, one without a name the last begun of all,
in the order of the file, as Chrome's format has it. What the end says stands above what the beginning said of it in
`args`; all else is the beginning's, and the end's where the beginning lacks it. Halves without another are left out
and counted: when they ended, or began, is not known.
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format, Duration Events)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Raw

from suanli.readers.traces.kineto_events import NONE, OTHER_CATS
from suanli.readers.traces.kineto_salvage import EventReader, ReadState
from suanli.readers.traces.numbers import decimal_of

_BEGIN, _END = b'"B"', b'"E"'
_X = Raw(b'"X"')
_LEFT_OUT = frozenset(msgspec.json.encode(cat) for cat in OTHER_CATS)  # what is not kept is not missed
Fields = dict[str, Raw]
_FIELDS = msgspec.json.Decoder(Fields)
_PARTS = msgspec.json.Decoder(list[Raw])


class _Phase(msgspec.Struct, gc=False):
    ph: Raw = NONE


_PHASE = msgspec.json.Decoder(_Phase)


@dataclass
class _Begun:
    """An event that has begun."""

    place: int  # among all that begin
    start: Decimal | None
    said: Fields
    ended: bool = False


@dataclass
class _Thread:
    """Events of one thread that have begun, and those that ended last, all at one time."""

    begun: list[_Begun] = field(default_factory=list)  # the last has not ended
    named: dict[bytes | None, list[_Begun]] = field(default_factory=dict)  # none of them has ended
    ended: list[tuple[int, bytes]] = field(default_factory=list)
    at: Decimal | None = None


class Pairs:
    """Beginnings that wait for their ends, of one file. `begins` and `ends` are halves without another."""

    def __init__(self) -> None:
        self.ends = 0
        self._count = 0
        self._threads: defaultdict[tuple[bytes, bytes], _Thread] = defaultdict(_Thread)

    @property
    def begins(self) -> int:
        """Events that began and have not ended, of categories that are kept or not known."""
        return sum(_missed(each.said) for thread in self._threads.values() for each in thread.begun if not each.ended)

    def complete(self, events: Iterable[bytes | Raw]) -> list[bytes]:
        """The events as JSON texts, two halves made into one: where the second stands, or soon after it.

        Of events that begin and end together the outer one must stand first: those that ended wait for the clock.
        """
        found: list[bytes] = []
        for event in events:
            phase = _phase(event)
            if phase not in (_BEGIN, _END):
                found.append(bytes(event))
                continue
            said = _fields(event)
            thread = self._threads[_printed(said, "pid"), _printed(said, "tid")]
            now = decimal_of(bytes(said.get("ts", NONE)))
            if now is None or now != thread.at:
                found += _released(thread)
            if phase == _BEGIN:
                self._count += 1
                _begin(thread, _Begun(self._count, now, said))
            else:
                self._end(thread, now, said)
        return found

    def rest(self) -> list[bytes]:
        """Complete events that still waited."""
        return [text for thread in self._threads.values() for text in _released(thread)]

    def _end(self, thread: _Thread, now: Decimal | None, said: Fields) -> None:
        begun = _last_begun(thread, _name(said))
        if begun is None:
            self.ends += _missed(said)
            return
        thread.at = now
        thread.ended.append((begun.place, _one(begun, now, said)))


def _begin(thread: _Thread, begun: _Begun) -> None:
    thread.begun.append(begun)
    thread.named.setdefault(_name(begun.said), []).append(begun)


def _last_begun(thread: _Thread, name: bytes | None) -> _Begun | None:
    """The event that an end of this name ends, taken away; a search would take as long as there are events."""
    found = thread.begun if name is None else thread.named.get(name)
    if not found:
        return None
    begun = found[-1]
    thread.named[_name(begun.said)].pop()
    begun.ended = True
    while thread.begun and thread.begun[-1].ended:
        thread.begun.pop()
    return begun


def _name(said: Fields) -> bytes | None:
    return bytes(said["name"]) if "name" in said else None


def _phase(event: bytes | Raw) -> bytes:
    try:
        return bytes(_PHASE.decode(event).ph)
    except msgspec.DecodeError:  # no object
        return b""


def _printed(said: Fields, key: str) -> bytes:
    """A number of a process or thread, once with quotes, once without."""
    return bytes(said.get(key, NONE)).strip(b'"')


def _missed(said: Fields) -> bool:
    return bytes(said.get("cat", NONE)) not in _LEFT_OUT


def _released(thread: _Thread) -> list[bytes]:
    texts = [text for _, text in sorted(thread.ended)]
    thread.ended, thread.at = [], None
    return texts


def _one(begun: _Begun, end: Decimal | None, said: Fields) -> bytes:
    """One event of two halves; without a length where one of them has no time."""
    whole: dict[str, Any] = {**said, **begun.said, "ph": _X}
    whole.pop("dur", None)
    if begun.start is not None and end is not None:
        whole["dur"] = Raw(f"{end - begun.start:f}".encode())
    args = _arguments(begun.said) | _arguments(said)
    if args:
        whole["args"] = args
    return msgspec.json.encode(whole)


def _fields(text: bytes | Raw) -> Fields:
    """The members of an object. Raises msgspec.DecodeError where it is none."""
    try:
        return _FIELDS.decode(text)
    except msgspec.DecodeError:  # also for a key that is no UTF-8
        return _FIELDS.decode(bytes(text).decode("utf-8", "replace").encode())


def _arguments(said: Fields) -> Fields:
    try:
        return _fields(said.get("args", b"{}"))
    except msgspec.DecodeError:
        return {}


class _Parts:
    """In place of the decoder of records: events as they stand."""

    def many(self, text: bytes) -> list[Any]:
        return _PARTS.decode(text)

    def one(self, text: bytes) -> Any:
        return Raw(text)


class _PartReader(EventReader):
    """Reads events as they stand, broken ones repaired, of whatever category or none."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = _Parts()  # type: ignore[assignment]

    def _mended_object(self, record: Any) -> list[Any]:
        return [msgspec.json.encode(record)]


class PairedReader(EventReader):
    """Reads texts as EventReader does, halves of events made into complete ones before."""

    paired = True

    def __init__(self) -> None:
        super().__init__()
        self.pairs = Pairs()
        self._parts = _PartReader()
        self._given, self._complete = b"", b""

    def read(self, text: bytes, last: bool = False) -> list[Any]:
        """As of EventReader. A text that is given again is not paired again."""
        if text is not self._given:
            events = self.pairs.complete(self._parts.read(text, last))
            events += self.pairs.rest() if last else []
            self._given, self._complete = text, b"[%b]" % b",".join(events)
        found = super().read(self._complete, last)
        if last:
            self._finish(self._parts.state)
        return found

    def _finish(self, parts: ReadState) -> None:
        """What only the texts as they stood in the file tell."""
        state = self.state
        state.events, state.ended = parts.events, parts.ended
        state.tail, state.tail_bytes = parts.tail, parts.tail_bytes
        state.lost_pieces += parts.lost_pieces
        state.lost_bytes += parts.lost_bytes
        state.repaired += parts.repaired
        state.begins, state.ends = self.pairs.begins, self.pairs.ends
