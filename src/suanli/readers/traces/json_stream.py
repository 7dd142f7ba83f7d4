"""Blocks of a JSON trace -> what stands before its events, and texts of whole events, whoever wrote them.

The border of two events is `}, {"key":` with a key that events begin with, in any spacing. Arguments may hold the same:
then a text begins or ends within an event, which shows when it is decoded (`kineto_salvage`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from suanli.units import KIBI, MEBI

_KEYS = rb"ph|name|cat|pid|tid|ts|dur|args|bp|s|id"
BORDER = re.compile(rb"\}\s*,\s*(?=\{\s*\"(?:" + _KEYS + rb")\"\s*:)")
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
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
        yield b"".join((b"[", rest, memoryview(block)[: border[0]], b"]"))  # one copy of a megabyte, not three
        rest = block[border[1] :]
    yield b"[%b]" % rest if closed else b"[" + rest


def header_of(blocks: Iterator[bytes]) -> tuple[bytes, bytes]:
    """What stands before the events, and what was read behind it. Raises NoEventsError as `event_texts` does."""
    found, whole = b"", True
    while True:
        match = _LIST.match(found) or _EVENTS.search(found)
        if match:
            return found[: match.start()], found[match.end() :]
        block = next(blocks, b"")
        whole = bool(block)
        if not whole or len(found) > MOST_HEADER:
            raise NoEventsError
        found += block


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
