"""What a report says in another language: titles, headers and labels word for word, sentences by their pattern."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from suanli.errors import unknown_name

LANGUAGES = {"en": "English", "zh": "中文"}
_LANGUAGE: ContextVar[str] = ContextVar("language of reports", default="en")


@contextmanager
def spoken_in(lang: str | None) -> Iterator[None]:
    """Reports inside are in this language where none is named; None leaves it. Raises UnknownNameError."""
    token = _LANGUAGE.set(known_language(lang or _LANGUAGE.get()))
    try:
        yield
    finally:
        _LANGUAGE.reset(token)


def language() -> str:
    """The language reports are in where none is named."""
    return _LANGUAGE.get()


def known_language(lang: str) -> str:
    """The language itself. Raises UnknownNameError where reports are not written in it."""
    if lang not in LANGUAGES:
        hint = "Languages: " + ", ".join(LANGUAGES) + "."
        raise unknown_name("language", lang, LANGUAGES, where="--lang", hint=hint)
    return lang


def translate(text: str, lang: str) -> str:
    """The text in `lang`; as it is where there is no translation."""
    return said(text, lang)[0]


def said(text: str, lang: str) -> tuple[str, bool]:
    """The text in `lang`, and whether it is in that language."""
    return text, lang == "en"
