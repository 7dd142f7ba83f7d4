"""Blocks of a JSON trace -> what stands before its events, and texts of whole events, whoever wrote them.

The border of two events is `}, {"key":` with a key that events begin with, in any spacing. Arguments may hold the same:
then a text begins or ends within an event, which shows when it is decoded (`kineto_salvage`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

import msgspec

from suanli.units import KIBI, MEBI

_KEYS = rb"ph|name|cat|pid|tid|ts|dur|args|bp|s|id"
BORDER = re.compile(rb"\}\s*,\s*(?=\{\s*\"(?:" + _KEYS + rb")\"\s*:)")
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
_EMPTY = re.compile(rb"\s*\]")
_MARK = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_CLOSING = bytes.maketrans(b"{[", b"}]")
_MOST_LISTS = 100  # that are looked at
_WINDOWS = (16 * KIBI, 256 * KIBI)
MOST_HEADER = MOST_EVENT = 64 * MEBI


class NoEventsError(Exception):
    """The content has no list of events."""


def event_texts(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """First what stands before the events, then lists of events as JSON; the last text runs to the end of the content.

    Raises NoEventsError where the first 64 MiB hold no `traceEvents` and do not begin with a list.
    """
    header, first = header_of(blocks)
    yield header
    yield from texts_of(chain((first,), blocks))


def texts_of(blocks: Iterator[bytes], *, closed: bool = False) -> Iterator[bytes]:
    """Lists of events as JSON, of blocks that begin with one. The last has its `]` only where the blocks are `closed`:
    they end with an event, not with the content.
    """
    rest = b""
    for block in blocks:
        border = last_border(block)
        if border is None:
            rest += block
            if len(rest) > MOST_EVENT:
                yield b"[%b]" % rest
                rest = b""
            continue
        gap = block[border[0] : border[1]].replace(b",", b"")  # kept, so that no byte goes uncounted
        yield b"".join((b"[", rest, memoryview(block)[: border[0]], gap, b"]"))  # one copy of a megabyte, not three
        rest = block[border[1] :]
    yield b"[%b]" % rest if closed else b"[" + rest


def header_of(blocks: Iterator[bytes]) -> tuple[bytes, bytes]:
    """What stands before the list, and the first text behind it: of the list at the top of the document.

    A list inside something else, or an empty one, counts only where there is no other. Raises NoEventsError as
    `event_texts` does.
    """
    found, at = b"", 0
    spare: list[tuple[int, int]] = []
    while True:
        match = _LIST.match(found) or _EVENTS.search(found, at)
        more = not match or not found[match.end() :].strip()  # a list that goes on in the next block may be empty
        block = next(blocks, b"") if more and len(found) <= MOST_HEADER else b""
        if block:
            found += block
            continue
        if match and (match.start() == 0 or _is_the_list(found, match)):
            return found[: match.start()], found[match.end() :]
        if match:
            spare, at = [*spare, match.span()], match.end()
        if spare and (match is None or len(spare) > _MOST_LISTS):
            return found[: spare[0][0]], found[spare[0][1] :]
        if match is None:
            raise NoEventsError


def _is_the_list(text: bytes, match: re.Match[bytes]) -> bool:
    """Whether a list is not empty, and not plainly inside something else; of broken text that is not known."""
    if _EMPTY.match(text, match.end()):
        return False
    inside = _open_before(text[: match.start()])
    if len(inside) < 2:
        return True
    closed = text[: match.start()].removeprefix(b"\xef\xbb\xbf") + b'"": 0' + inside[::-1].translate(_CLOSING)
    try:
        msgspec.json.decode(closed)
    except (msgspec.DecodeError, RecursionError):
        return True
    return False


def _open_before(text: bytes) -> bytes:
    """The brackets that are open at the end of a text, the outermost first."""
    inside = bytearray()
    for mark in _MARK.finditer(text):
        if mark[0] in b"{[":
            inside += mark[0]
        elif mark[0] in b"}]":
            del inside[-1:]
    return bytes(inside)


def last_border(text: bytes) -> tuple[int, int] | None:
    """Where the last event but one of `text` ends and the last begins; None where there is no border."""
    for window in (*_WINDOWS, len(text)):
        found = None
        for found in BORDER.finditer(text, max(0, len(text) - window)):  # noqa: B007  the last one is wanted
            pass
        if found:
            return found.start() + 1, found.end()
    return None


def spans(text: bytes) -> list[tuple[int, int]]:
    """Start and end of each event of `text`, commas included."""
    inner = [match.end() for match in BORDER.finditer(text)]
    return list(zip([0, *inner], [*inner, len(text)], strict=True))
