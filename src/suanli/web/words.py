"""The page's own words in the reader's language: labels, help, buttons, messages."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources


def said(text: str, lang: str) -> str:
    """A text of the page in the language; English stays where no translation is known (a test finds these)."""
    return text if lang == "en" else _known().get(text, text)


@functools.cache
def _known() -> dict[str, str]:
    text = resources.files("suanli.web").joinpath("words_zh.toml").read_text(encoding="utf-8")
    return {english: chinese for part in tomllib.loads(text).values() for english, chinese in part.items()}
