"""Blocks of a JSON trace -> what stands before its events, and texts of whole events, whoever wrote them.

The border of two events is `}, {"key":` with a key that events begin with, in any spacing. Arguments may hold the same:
then a text begins or ends within an event, which shows when it is decoded (`kineto_salvage`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from suanli.units import KIBI, MEBI

_KEYS = rb"ph|name|cat|pid|tid|ts|dur|args|bp|s|id"
BORDER = re.compile(rb"\}\s*,\s*(?=\{\s*\"(?:" + _KEYS + rb")\"\s*:)")
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
_WINDOWS = (64 * KIBI, MEBI)
MOST_HEADER = MOST_EVENT = 64 * MEBI


class NoEventsError(Exception):
    """The content has no list of events."""


def event_texts(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """First what stands before the events, then texts of events with their commas; the last one runs to the end.

    Raises NoEventsError where the first 64 MiB hold no `traceEvents` and do not begin with a list.
    """
    header, rest = _header(blocks)
    yield header
    for block in blocks:
        rest += block
        border = last_border(rest)
        if border is None and len(rest) <= MOST_EVENT:
            continue
        yield rest[:border]
        rest = b"" if border is None else rest[border:]
    yield rest


def _header(blocks: Iterator[bytes]) -> tuple[bytes, bytes]:
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


def last_border(text: bytes) -> int | None:
    """Where the last event of `text` begins; None where there is no border."""
    for window in (*_WINDOWS, len(text)):
        start = max(0, len(text) - window)
        found = [match.end() for match in BORDER.finditer(text, start)]
        if found:
            return found[-1]
    return None


def spans(text: bytes) -> list[tuple[int, int]]:
    """Start and end of each event of `text`, commas included."""
    inner = [match.end() for match in BORDER.finditer(text)]
    return list(zip([0, *inner], [*inner, len(text)], strict=True))
