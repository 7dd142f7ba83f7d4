"""How wide text is in a terminal, where 中文 takes two cells a character, and where a line may be broken."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_WIDE = ("W", "F")
_NEVER_FIRST = "，。、；：！？）》」』】％”’…·"  # closes what went before: never begins a line
_HELD = "%=×·/:≈+−"  # stays with what stands before it, though a blank parts them
_JOINS = "−·"  # and with what follows
_NEVER_LAST = "（《「『【“‘"  # opens what follows: never ends a line


def cell_width(character: str) -> int:
    """Cells of one character."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def cells(text: str) -> int:
    """Cells of a text."""
    return sum(map(cell_width, text))


def padded(text: str, width: int, *, right: bool = False) -> str:
    """A text with spaces up to a width in cells."""
    room = " " * (width - cells(text))
    return room + text if right else text + room


def pieces(text: str) -> Iterator[str]:
    """What a line may not be broken within: words, single wide characters with the marks that belong to them."""
    held = ""
    for character in text:
        wide = cell_width(character) == 2
        breaks = held and (
            character.isspace() != held[-1].isspace()
            or (not character.isspace() and (wide or cell_width(held[-1]) == 2))
        )
        if breaks and character not in _NEVER_FIRST and held[-1] not in _NEVER_LAST:
            yield held
            held = ""
        held += character
    if held:
        yield held


def _held(text: str) -> Iterator[str]:
    """Pieces, `%` and operators with the number before them, a minus and a product with both."""
    parts = list(pieces(text))
    place = 0
    while place < len(parts):
        piece = parts[place]
        while place + 2 < len(parts) and parts[place + 1].isspace() and parts[place + 2][0] in _HELD:
            piece += parts[place + 1] + parts[place + 2]
            place += 2
            if piece[-1] in _JOINS and place + 2 < len(parts):
                piece += parts[place + 1] + parts[place + 2]
                place += 2
        yield piece
        place += 1


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells, broken between words and between wide characters; a longer word stays whole."""
    lines, line = [], ""
    for piece in _held(text):
        if line and cells(line) + cells(piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece if line else piece.lstrip()
    return [*lines, line.rstrip()] if line.strip() else lines
