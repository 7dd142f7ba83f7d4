"""`suanli.verify`."""

from __future__ import annotations

from collections.abc import Sequence

from suanli.nouns.result import Result
from suanli.verify import verify as check


def verify(only: str | Sequence[str] | None = None, *, every: bool = False) -> Result:
    """Reproduce published numbers. `ok` is False when a claim that should hold does not.

    `only` names sections, in one text with commas or as a list; `every` asks reports for all claims. Raises
    UnknownNameError for a section nobody knows.
    """
    names = [part.strip() for part in only.split(",")] if isinstance(only, str) else only
    found = check(names)
    return Result(
        kind="verify",
        inputs={"only": names, "all": every},
        result=found,
        ok=found.holds,
        sources=tuple(dict.fromkeys(row.source for row in found.summary)),
    )
