"""The words of the lessons, English and 中文 side by side: one file a lesson, and one of words they share.

A section of a file is a block: `title`, `text` and `columns`, each with `en` and `zh`. Numbers are never written here:
`{name:format}` marks where one goes, in both languages the same ones (tests/catalog/test_lessons.py).
"""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

LANGUAGES = ("en", "zh")
SHARED = "shared"
TOPICS = (
    "backprop", "transformer", "flops", "precision", "roofline", "mfu", "parallel", "scaling", "goodput", "moe", "cost",
)  # fmt: skip
_WIDE = ("W", "F")


@cache
def lesson_file(name: str) -> dict[str, Any]:
    """Sections of one file, both languages."""
    return tomllib.loads(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def part(section: Mapping[str, Any], name: str, lang: str) -> Any:
    """One part of a section in one language; empty where the section has none."""
    return section.get(name, {}).get(lang, () if name == "columns" else "")


def paragraphs(text: str) -> tuple[str, ...]:
    """Paragraphs of a text that is broken into lines for its editor: empty lines part them."""
    return tuple(_joined(piece.splitlines()) for piece in text.strip().split("\n\n") if piece.strip())


def _joined(lines: list[str]) -> str:
    """Lines as one: 中文 goes on without a space, and so does whatever stands beside its punctuation."""
    joined = ""
    for line in (line.strip() for line in lines):
        spaced = joined and line and _spaced(joined[-1], line[0])
        joined += f" {line}" if spaced else line
    return joined


def _spaced(before: str, after: str) -> bool:
    wide = [unicodedata.east_asian_width(each) in _WIDE for each in (before, after)]
    marks = [
        is_wide and unicodedata.category(each).startswith("P")
        for is_wide, each in zip(wide, before + after, strict=True)
    ]
    return not all(wide) and not any(marks)


def own_text(name: str) -> str:
    """Every word of one file in both languages: what the tokeniser of `learn transformer` is trained on."""
    return _strings(lesson_file(name))


def _strings(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "\n".join(_strings(each) for each in (value.values() if isinstance(value, dict) else value))
