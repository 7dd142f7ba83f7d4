"""Texts of events -> records, whatever is broken in them: what can be read is read, what is lost is counted.

A text that does not decode is split at the borders of events and halved until the broken ones stand alone. Such a one
is repaired where it is plain what was meant (a quote or backslash in a name, a control character, a bare N/A), else
lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
from msgspec import Raw

from suanli.readers.traces.json_stream import MOST_EVENT, spans
from suanli.readers.traces.kineto_events import HALVES, NO_CAT, KinetoDecoder
from suanli.units import MEBI

_UNKNOWN_CAT = re.compile(r"Invalid value '(.*)' - at `\$(?:\[\d+\])?\.cat`", re.DOTALL)
_WRONG_FIELD = re.compile(r" - at `\$\.(.+)`$", re.DOTALL)
_TOO_NARROW = re.compile(r" - at `\$(?:\[\d+\])?\.(\w+)|required field `(ph)`")
_ENDED = re.compile(r"\s*,?\s*\]")
_GAP = re.compile(r"[\s,]*")
_START = re.compile(r'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args)"\s*:')
_LOOSE = re.compile(r"([:\[,]\s*)(?:N/A|nan|-?inf|-nan|None|undefined)(?=\s*[,\]\}])")
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
# What stands between the quotes of a name, where the next key follows: it may hold quotes, not the like of `", "`.
_VALUE = re.compile(
    r'("(?:name|kernel_file|file|Call stack|scope)"\s*:\s*")((?:(?!"\s*,\s*"|\{\s*").)*?)'
    r'("\s*(?:,\s*"[\w ]{1,40}"\s*:|\}))',
    re.DOTALL,
)
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_LACKS_CAT = "missing required field `cat`"
_METADATA = re.compile(rb'\{(?=\s*"name"\s*:\s*"[^"\\]{0,99}"\s*,\s*"ph"\s*:\s*"[MiI]"\s*,\s*"(?!cat"))')
_WITH_CAT = b'{"cat":"%b",' % NO_CAT.encode()
_BROKEN = (msgspec.DecodeError, RecursionError)
_MOST_WRONG_FIELDS = 8
_JOIN = 8  # pieces in a row that may be one event with borders inside
_MARK = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_SPACE = b", \t\r\n"
MOST_CARRIED = MEBI
_SPLIT = msgspec.json.Decoder(list[Raw])
_MOST_DIGITS = 40


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises ValueError for one with two categories: two events that lost what stood between them."""
    found = dict(pairs)
    if len(found) < len(pairs) and any(value != found["cat"] for key, value in pairs if key == "cat"):
        raise ValueError
    return found


_JSON = json.JSONDecoder(
    strict=False,
    parse_float=str,
    parse_int=lambda text: int(text) if len(text) <= _MOST_DIGITS else None,
    parse_constant=lambda _: None,
    object_pairs_hook=_object,
)


class WidenedError(Exception):
    """A text holds more than the records of its decoder could, and the decoder is wider now: read the text again."""


@dataclass
class ReadState:
    """How far the reading is, and what it met."""

    events: int = 0
    lost_pieces: int = 0
    lost_bytes: int = 0
    repaired: int = 0
    uncategorised: int = 0
    strangers: int = 0  # items of the list that are no events: they have no phase
    ended: bool = False  # the list of events came to its end
    tail: bytes = b""  # what stands after it
    tail_bytes: int = 0  # of all of it, also where the tail is too long to be kept
    halves: int = 0  # of events, without a category
    begins: int = 0  # halves without another (`kineto_pairs`)
    ends: int = 0
    carried: bytes = b""  # the first half of an event whose other half stands in the next text


class EventReader:
    """Reads texts in the order of the file. `paired`: it makes whole what begins and ends only."""

    paired = False

    def __init__(self) -> None:
        self.decoder, self.state = KinetoDecoder(), ReadState()
        self._text, self._spans, self._next = b"", [(0, 0)], 0

    def read(self, text: bytes, last: bool = False) -> list[Any]:
        """The records in a list of events as JSON; in the last one of a file, which runs to its end and has no `]`.

        Raises WidenedError, `state` then being worthless, where the text must be read again from the state before it.
        """
        state = self.state
        if state.carried:
            text, state.carried = b"[%b,%b" % (state.carried, text[1:]), b""
        if state.ended:
            self._more_tail(b"," + (text[1:] if last else text[1:-1]))
            return []
        try:
            found = self._many(text)
        except _BROKEN as problem:
            return self._slowly(text, last, str(problem))
        state.ended = last  # it could not be decoded without its end
        return found

    def _many(self, text: bytes) -> list[Any]:
        found: list[Any] = self._learning(self.decoder.many, text)
        self.state.events += len(found)
        return found

    def _learning(self, decode: Callable[[bytes], Any], text: bytes) -> Any:
        """Decode, taking up every category that was not known."""
        while True:
            try:
                return decode(text)
            except msgspec.ValidationError as problem:
                match = _UNKNOWN_CAT.search(str(problem))
                if match is None:
                    self._widen(problem)
                if match is None or not self.decoder.learn(match[1]):
                    raise

    def _widen(self, problem: msgspec.ValidationError) -> None:
        match = _TOO_NARROW.search(str(problem))
        if match and match[1] != "cat" and self.decoder.become_wider(match[1] or match[2]):
            raise WidenedError from problem

    def _slowly(self, text: bytes, last: bool, problem: str) -> list[Any]:
        state = self.state
        if _LACKS_CAT in problem:
            try:
                found = self._many(_METADATA.sub(_WITH_CAT, text))
            except _BROKEN:
                pass
            else:
                state.ended = last
                return found
        try:
            parts: list[Any] = _SPLIT.decode(text)
        except _BROKEN:
            self._text = text[1:] if last else text[1:-1]
            self._spans, self._next = spans(self._text), 0
            return self._halved(0, len(self._spans), last)
        state.events += len(parts)
        state.ended = last
        return [record for part in parts for record in self._known(bytes(part))]

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
        if self.state.ended:
            self._more_tail(self._pieces(low, high))
            return []
        part = self._pieces(low, high).rstrip(_SPACE)
        try:
            return self._many(_METADATA.sub(_WITH_CAT, b"[%b]" % part))
        except _BROKEN:
            if high - low == 1:
                return self._alone(low, last)
        half = (low + high) // 2
        return self._halved(low, half, last) + self._halved(half, high, last)

    def _pieces(self, low: int, high: int) -> bytes:
        return self._text[self._spans[low][0] : self._spans[high - 1][1]]

    def _alone(self, place: int, last: bool) -> list[Any]:
        """A piece that does not decode: an event and more, half an event, a broken one, or the last of the file."""
        text = self._pieces(place, place + 1).rstrip(_SPACE).decode("utf-8", "replace")
        values, rest = _values(text)
        if rest and not _ENDED.match(rest):
            values, rest = self._joined(place) or self._mended_text(text)
        if rest and not last and len(self._spans) - place <= _JOIN and not _ENDED.match(rest):
            carried = self._pieces(place, len(self._spans))
            if len(carried) < MOST_CARRIED:  # its other half may stand in the next text
                self.state.carried, self._next = carried, len(self._spans)
                return []
        if rest and not _ENDED.match(rest):
            values, rest = self._resumed(values, rest, final=last and place + 1 == len(self._spans))
        match = _ENDED.match(rest)
        if match:
            self.state.ended = True
            piece = self._pieces(place, max(self._next, place + 1))
            gap = piece[len(piece.rstrip(_SPACE)) :]
            self._more_tail(rest[match.end() :].encode("utf-8", "replace") + gap)
        self.state.events += len(values)
        return [record for value in values for record in self._mended_object(value)]

    def _joined(self, place: int) -> tuple[list[Any], str] | None:
        """The event that begins with this piece and has borders inside; None where there is none."""
        for high in range(place + 2, min(place + 1 + _JOIN, len(self._spans)) + 1):
            values, rest = _values(self._pieces(place, high).rstrip(_SPACE).decode("utf-8", "replace"))
            if len(values) == 1 and (not rest or _ENDED.match(rest)):
                self._next = high
                return values, rest
        return None

    def _mended_text(self, text: str) -> tuple[list[Any], str]:
        """The values of a text after repair; as it was where that does not help."""
        values, rest = _values(_repaired(text))
        if rest and not _ENDED.match(rest):
            return _values(text)
        self.state.repaired += 1
        return values, rest

    def _resumed(self, values: list[Any], rest: str, *, final: bool) -> tuple[list[Any], str]:
        """What stands behind a break without a border: the next event, where it is whole; behind the `final` one of a
        file the end of its list. The break is lost.
        """
        for match in islice(_START.finditer(rest, 1), _JOIN):
            more, after = _values(rest[match.start() :])
            if more and (not after or _ENDED.match(after)):
                self._lose(rest[: match.start()])
                return values + more, after
        end = _end_of_list(rest) if final else len(rest)
        self._lose(rest[:end])
        return values, rest[end:]

    def _lose(self, text: str) -> None:
        self.state.lost_pieces += 1
        self.state.lost_bytes += len(text.rstrip(" ,\t\r\n").encode("utf-8", "replace"))

    def _mended(self, part: bytes) -> list[Any]:
        text = part.decode("utf-8", "replace")
        values, _ = _values(text)
        if not values:
            self._lose(text)
        return [record for value in values[:1] for record in self._mended_object(value)]

    def _mended_object(self, record: Any) -> list[Any]:
        """The record of an object, fields of the wrong type left out."""
        if not isinstance(record, dict) or not isinstance(record.get("cat"), str):
            phase = record.get("ph") if isinstance(record, dict) else None
            self.state.uncategorised += phase == "X"
            self.state.halves += phase in HALVES
            self.state.strangers += phase is None
            return []
        for _ in range(_MOST_WRONG_FIELDS):
            try:
                return [self._learning(self.decoder.one, json.dumps(record).encode())]
            except msgspec.ValidationError as problem:
                if not _without(record, _WRONG_FIELD.search(str(problem))):
                    break
            except _BROKEN:
                break
        self._lose(json.dumps(record))
        return []

    def _more_tail(self, text: bytes) -> None:
        self.state.tail_bytes += len(text)
        if len(self.state.tail) < MOST_EVENT:
            self.state.tail += text


def _values(text: str) -> tuple[list[Any], str]:
    """The JSON values that stand in a row at the beginning of a text, and what stands behind the last of them."""
    found: list[Any] = []
    at = _GAP.match(text).end()  # type: ignore[union-attr]
    while at < len(text):
        try:
            value, end = _JSON.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        found.append(value)
        after = _GAP.match(text, end).end()  # type: ignore[union-attr]
        if _ENDED.match(text, end):
            return found, text[end:]
        at = after
    return found, text[at:]


def _end_of_list(text: str) -> int:
    """Where the list ends in which a broken event stands: at a bracket that nothing opened, behind which there is
    nothing, or the rest of an object. The length of the text where there is none: it was cut.
    """
    depth = tries = 0
    for mark in _MARK.finditer(text):
        if mark[0] in ("{", "["):
            depth += 1
        elif mark[0] in ("}", "]"):
            tries += depth == 0 and mark[0] == "]"
            if depth == 0 and mark[0] == "]" and tries <= _JOIN and _is_end(text[mark.end() :]):
                return mark.start()
            depth = max(depth - 1, 0)
    return len(text)


def _is_end(text: str) -> bool:
    """Whether it is what may stand behind a list: nothing, or what makes an object of it."""
    try:
        json.loads(f'{{"": 0{text}')
    except (ValueError, RecursionError):
        return not text.strip()
    return True


def _repaired(text: str) -> str:
    """The text with what is plainly meant in place of what no parser takes."""
    text = _BAD_ESCAPE.sub(r"\\\\", _LOOSE.sub(r"\1null", text))
    return _VALUE.sub(lambda m: m[1] + _BARE_QUOTE.sub(r'\\"', m[2]) + m[3], text)


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
