"""What a report says in another language: titles, headers and labels word for word, sentences by their pattern."""

from __future__ import annotations


def translate(text: str, lang: str) -> str:
    """The text in `lang`; as it is where there is no translation."""
    return said(text, lang)[0]


def said(text: str, lang: str) -> tuple[str, bool]:
    """The text in `lang`, and whether it is in that language."""
    return text, lang == "en"
