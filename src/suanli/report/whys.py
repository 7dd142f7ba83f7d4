"""Where a number of a report comes from: its meaning, formula, the numbers put in, source."""

from __future__ import annotations

from dataclasses import dataclass

from suanli.nouns.result import Result


@dataclass(frozen=True, kw_only=True)
class WhyNote:
    """What is told when a number is clicked."""

    title: str
    doc: str
    formula: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    source: str = ""


def reason_of(result: Result, block: str, label: str, column: str = "") -> WhyNote | None:
    """Why of the number in `block` (its title) beside `label` under `column`; None where nothing is known."""
    del result, block, label, column
    return None
