"""The report of `why`."""

from __future__ import annotations

from typing import Any

from suanli.nouns.reason import Step, Why
from suanli.nouns.result import Result
from suanli.report.common import closing
from suanli.report.document import Document, Facts, Lines, Table
from suanli.units import format_exact


def why_document(result: Result) -> Document:
    """The formula, its legend and source, and the numbers put in."""
    found: Why = result.result
    if found.id == "ids":
        return Document(
            f"{len(found.values)} ids", (Facts("", tuple((k, "", str(v)) for k, v in found.values.items())),)
        )
    value = "" if found.value is None else f" = {shown_value(found.value)} {found.unit}"
    subject = f"{found.id} of {found.model}" if found.model else found.id
    facts = (("formula", found.formula, ""), ("unit", found.unit, ""), ("source", found.source, ""))
    return Document(
        f"{subject}{value}",
        (
            Lines("", (found.doc,)),
            Lines("Formula", tuple(f"{name}: {text}" for name, text, _ in facts if text)),
            Lines("Legend", tuple(f"{text}" for text in found.legend.values())),
            _steps(found),
            *closing(result),
        ),
    )


def _steps(found: Why) -> Table:
    rows = tuple(
        (step.where, step.formula, _inputs(step), f"{step.times:,}", shown_value(step.value)) for step in found.steps
    )
    if len(rows) > 1 and all(isinstance(step.value, int) for step in found.steps):
        total = sum(step.value for step in found.steps)
        rows = (*rows, ("total", "", "", "", shown_value(total)))
    columns = ("where", "formula", "numbers put in", "copies", "value")
    return Table("Numbers put in", columns, rows, (False, False, False, True, True))


def _inputs(step: Step) -> str:
    return ", ".join(f"{name}={shown_value(value)}" for name, value in step.values.items())


def shown_value(value: Any) -> str:
    """A number with separators; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return format_exact(value)
