"""Events out of broken JSON: read one after another, and after a break on from the next that begins like an event."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

_LIST = re.compile(r'"traceEvents"\s*:\s*\[')
_GAP = re.compile(r"[\s,]*")
_BORDER = re.compile(r'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts)"\s*:)')
_JSON = json.JSONDecoder(strict=False, parse_float=Decimal, parse_constant=lambda _: None)


@dataclass(frozen=True)
class Salvaged:
    """What could be read, and what could not."""

    events: tuple[dict[str, Any], ...]
    lost_pieces: int
    lost_bytes: int
    cut: bool  # the list has no end
    bytes_behind: int = 0  # behind the document
    broken_around: bool = False  # what stands outside the list is no JSON


def salvage_events(content: bytes) -> Salvaged | None:
    """The events of a file whose JSON breaks; None where it has no list of them. Numbers with a point are decimals."""
    text = content.decode("utf-8", "replace")
    begun = _LIST.search(text)
    if begun is None:
        return None
    at, found, pieces, size = begun.end(), list[dict[str, Any]](), 0, 0
    while True:
        at = _GAP.match(text, at).end()  # type: ignore[union-attr]
        following = _BORDER.search(text, at) if pieces and text[at : at + 1] == "]" else None
        if at >= len(text) or (text[at] == "]" and following is None):  # else the list of a broken event's own
            cut = at >= len(text)
            behind = 0 if cut else _behind(text[: begun.end()] + text[at:])
            return Salvaged(tuple(found), pieces, size, cut, behind or 0, behind is None)
        try:
            event, end = (None, at) if following else _JSON.raw_decode(text, at)
        except (ValueError, RecursionError):
            event, end = None, at
        if isinstance(event, dict):
            found.append(event)
            at = end
            continue
        following = _BORDER.search(text, max(end, at + 1))
        if end == at:  # nothing could be read: on from the next event
            end = len(text) if following is None else following.end()
        pieces, size, at = pieces + 1, size + len(text[at:end].encode()), end


def _behind(text: str) -> int | None:
    """Bytes behind the document that a text begins with; None where it has no end."""
    try:
        _, end = _JSON.raw_decode(text.lstrip("\ufeff \t\r\n"))
    except (ValueError, RecursionError):
        return None
    return len(text.lstrip("\ufeff \t\r\n")[end:].strip("\0 \t\r\n").encode())
