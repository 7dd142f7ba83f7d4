"""A stretch of the events of a JSON trace: from one border of events to another, found alike by all who read beside.

A place in the content is rarely where an event ends: what is meant by it is the first border of events behind it,
within a window that is the same whoever looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from suanli.readers.traces.json_stream import BORDER
from suanli.units import KIBI

WINDOW = 64 * KIBI


class NoBorderError(Exception):
    """No border of two events is near the place: the content cannot be divided there."""


def stretch(blocks: Iterator[bytes], at: int, low: int | None, high: int | None) -> Iterator[bytes]:
    """Blocks of whole events, commas between them, of blocks whose first byte stands at `at` of the content.

    They go from the border behind `low` (None: from the first byte) to that behind `high` (None: to the end of the
    content, with what stands behind the events). Raises NoBorderError where there is none, or the content is shorter.
    """
    if low is not None:
        window = _window(blocks, low - at)
        begin = _border(window).end()
        blocks, at = chain((window[begin:],), blocks), low + begin
    return blocks if high is None else _up_to(blocks, at, high)


def _up_to(blocks: Iterator[bytes], at: int, high: int) -> Iterator[bytes]:
    for block in blocks:
        if high < at:
            break
        if at + len(block) <= high:
            yield block
            at += len(block)
            continue
        rest = block[high - at :]
        window = rest if len(rest) >= WINDOW else rest + _window(blocks, 0, WINDOW - len(rest))
        yield block[: high - at] + window[: _border(window).start() + 1]
        return
    raise NoBorderError


def _window(blocks: Iterator[bytes], skip: int, size: int = WINDOW) -> bytes:
    """The blocks from `skip` bytes on until they hold `size`; less at the end of the content."""
    found = b""
    for block in blocks:
        found += block[skip:]
        skip = max(skip - len(block), 0)
        if len(found) >= size:
            break
    return found


def _border(window: bytes) -> re.Match[bytes]:
    """The first border that lies whole within the first bytes of a window."""
    match = BORDER.search(window, 0, WINDOW)
    if match is None:
        raise NoBorderError
    return match
