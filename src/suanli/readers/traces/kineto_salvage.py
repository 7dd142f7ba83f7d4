"""Texts of events -> records, whatever is broken in them: what can be read is read, what is lost is counted.

A text that does not decode is split at the borders of events and halved until the broken ones stand alone. Such a one
is repaired where it is plain what was meant (a quote or backslash in a name, a control character, a bare N/A), else
lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Raw

from suanli.readers.traces.json_stream import MOST_EVENT, spans
from suanli.readers.traces.kineto_events import KinetoDecoder
from suanli.units import MEBI

_UNKNOWN_CAT = re.compile(r"Invalid value '(.*)' - at `\$(?:\[\d+\])?\.cat`", re.DOTALL)
_WRONG_FIELD = re.compile(r" - at `\$\.(.+)`$", re.DOTALL)
_ENDED = re.compile(r"\s*,?\s*\]")
_LOOSE = re.compile(rb"([:\[,]\s*)(?:N/A|nan|NaN|-?inf|-?Infinity|-nan|None|undefined)(?=\s*[,\]\}])")
_BAD_ESCAPE = re.compile(rb'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_VALUE = re.compile(
    rb'("(?:name|cat|kernel_file|file|Call stack|scope)"\s*:\s*")(.*?)("\s*(?:,\s*"[\w ]{1,40}"\s*:|\}))', re.DOTALL
)
_BARE_QUOTE = re.compile(rb'(?<!\\)"')
_BROKEN = (msgspec.DecodeError, RecursionError)
_MOST_WRONG_FIELDS = 8
_JOIN = 8  # pieces in a row that may be one event with borders inside
_SPACE = b", \t\r\n"
MOST_CARRIED = MEBI
_SPLIT = msgspec.json.Decoder(list[Raw])
_JSON = json.JSONDecoder(strict=False, parse_float=str, parse_constant=lambda _: None)


class EventReader:
    """Reads texts in the order of the file. `tail` is what stands after the events, once `ended`."""

    def __init__(self) -> None:
        self.decoder = KinetoDecoder()
        self.ended, self.tail = False, b""
        self.events = 0
        self.lost_pieces = self.lost_bytes = self.repaired = self.uncategorised = 0
        self._carried = b""
        self._text, self._spans, self._next = b"", [(0, 0)], 0

    def read(self, text: bytes, last: bool = False) -> list[Any]:
        """The records in a text of whole events; `last` where the file ends with it."""
        text, self._carried = self._carried + text, b""
        if self.ended:
            self._more_tail(text)
            return []
        try:
            found = self._many(text.rstrip(_SPACE))
            self.events += len(found)
        except _BROKEN:
            found = self._slowly(text, last)
        return found

    def _many(self, text: bytes) -> list[Any]:
        found: list[Any] = self._learning(self.decoder.many, b"[%b]" % text)
        return found

    def _learning(self, decode: Callable[[bytes], Any], text: bytes) -> Any:
        """Decode, taking up every category that was not known."""
        while True:
            try:
                return decode(text)
            except msgspec.ValidationError as problem:
                match = _UNKNOWN_CAT.search(str(problem))
                if match is None or not self.decoder.learn(match[1]):
                    raise

    def _slowly(self, text: bytes, last: bool) -> list[Any]:
        try:
            parts: list[Any] = _SPLIT.decode(b"[%b]" % text.rstrip(_SPACE))
        except _BROKEN:
            self._text, self._spans, self._next = text, spans(text), 0
            return self._halved(0, len(self._spans), last)
        return self._typed([bytes(part) for part in parts])

    def _typed(self, parts: list[bytes]) -> list[Any]:
        """Records of events that are each valid JSON: those without a category go by themselves."""
        self.events += len(parts)
        found: list[Any] = []
        plain = [part for part in parts if b'"cat"' in part]
        try:
            found = self._many(b",".join(plain))
            plain = []
        except _BROKEN:
            pass
        bare = [part for part in parts if b'"cat"' not in part]
        self.uncategorised += sum(b'"X"' in part for part in bare)
        return found + [record for part in plain for record in self._known(part)]

    def _known(self, part: bytes) -> list[Any]:
        try:
            return [self._learning(self.decoder.one, part)]
        except _BROKEN:
            return self._mended(part)

    def _halved(self, low: int, high: int, last: bool) -> list[Any]:
        """Left before right, so that the end of the list is met before what stands after it."""
        low = max(low, self._next)
        if low >= high:
            return []
        if self.ended:
            self._more_tail(self._pieces(low, high))
            return []
        part = self._pieces(low, high).rstrip(_SPACE)
        try:
            found = self._many(part)
            self.events += len(found)
            return found
        except _BROKEN:
            if high - low == 1:
                return self._alone(part, low, last)
        half = (low + high) // 2
        return self._halved(low, half, last) + self._halved(half, high, last)

    def _pieces(self, low: int, high: int) -> bytes:
        return self._text[self._spans[low][0] : self._spans[high - 1][1]]

    def _alone(self, part: bytes, place: int, last: bool) -> list[Any]:
        """One event by itself, perhaps the last one with the rest of the file behind it."""
        record, rest = _first(part)
        if record is None:
            joined = self._joined(place)
            record, rest = (joined, "") if joined is not None else _first(_repaired(part))
            self.repaired += joined is None and record is not None and not self._ends(rest)
        if record is None:
            if not last and place == len(self._spans) - 1 and len(part) < MOST_CARRIED:
                self._carried = self._pieces(place, place + 1)  # its other half may stand in the next text
                return []
            return self._lose(part)
        if rest.strip(" ,\t\r\n"):
            if not self._ends(rest):
                return self._lose(part)
            self.ended = True
            self.tail = rest[_ENDED.match(rest).end() :].encode("utf-8", "replace")  # type: ignore[union-attr]
        self.events += 1
        return self._mended_object(record)

    def _joined(self, place: int) -> Any:
        """The event that begins with this piece and has borders inside; None where there is none."""
        for high in range(place + 2, min(place + 2 + _JOIN, len(self._spans) + 1)):
            record, rest = _first(self._pieces(place, high).rstrip(_SPACE))
            if record is not None and not rest:
                self._next = high
                return record
        return None

    def _ends(self, rest: str) -> bool:
        return _ENDED.match(rest) is not None

    def _lose(self, part: bytes) -> list[Any]:
        match = re.match(rb"\s*,?\s*\]", part)
        if match:  # a list without events, or a comma before its end
            self.ended, self.tail = True, part[match.end() :]
        elif part.strip():
            self.lost_pieces += 1
            self.lost_bytes += len(part)
        return []

    def _mended(self, part: bytes) -> list[Any]:
        record, _ = _first(part)
        return [] if record is None else self._mended_object(record)

    def _mended_object(self, record: Any) -> list[Any]:
        """The record of an object, fields of the wrong type left out."""
        if not isinstance(record, dict) or not isinstance(record.get("cat"), str):
            self.uncategorised += isinstance(record, dict) and record.get("ph") == "X"
            return []
        for _ in range(_MOST_WRONG_FIELDS):
            try:
                return [self._learning(self.decoder.one, json.dumps(record).encode())]
            except msgspec.ValidationError as problem:
                if not _without(record, _WRONG_FIELD.search(str(problem))):
                    break
            except _BROKEN:
                break
        self.lost_pieces += 1
        return []

    def _more_tail(self, text: bytes) -> None:
        if len(self.tail) < MOST_EVENT:
            self.tail += text


def _first(part: bytes) -> tuple[Any, str]:
    """The first JSON value of a text and what stands behind it; (None, text) where there is none."""
    text = part.decode("utf-8", "replace").lstrip()
    try:
        value, end = _JSON.raw_decode(text)
    except (ValueError, RecursionError):
        return None, text
    return value, text[end:]


def _repaired(part: bytes) -> bytes:
    """The text with what is plainly meant in place of what no parser takes."""
    part = _BAD_ESCAPE.sub(rb"\\\\", _LOOSE.sub(rb"\1null", part))
    return _VALUE.sub(lambda m: m[1] + _BARE_QUOTE.sub(rb'\\"', m[2]) + m[3], part)


def _without(record: dict[str, Any], match: re.Match[str] | None) -> bool:
    """Take the named field out of the record or its arguments; False where that cannot be."""
    if match is None:
        return False
    path = match[1]
    args = record.get("args")
    if path.startswith("args.") and isinstance(args, dict):
        return args.pop(path[len("args.") :], record) is not record
    return path != "cat" and record.pop(path, record) is not record


def lost_names(found: Iterable[str], most: int = 5) -> str:
    """Some names of many, for a sentence."""
    names = sorted(found)
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")
