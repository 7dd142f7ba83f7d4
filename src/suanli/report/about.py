"""What a report says of itself: version, verb, convention, and the whole request, so that anyone can repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from suanli.nouns.result import Result
from suanli.nouns.workload import option
from suanli.report.document import Facts
from suanli.version import VERSION

TITLE = "This report"


def about(result: Result) -> Facts:
    """Version, convention, inputs as given and as assumed."""
    rows = [("version", f"Suanli {VERSION}", ""), ("verb", result.kind, "")]
    if result.convention:
        rows.append(("convention", result.convention, ""))
    rows += [(name, text, "as given") for name, text in _inputs(result.inputs)]
    rows += [(name, text, "assumed") for name, text in _inputs(result.inputs.get("assumed", {}))]
    return Facts(TITLE, tuple(rows), right=False)


def _inputs(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names as options and values as text; what was assumed is told by itself."""
    for name, value in given.items():
        if name != "assumed" and value not in (None, False):
            yield option(name), typed(value)


def typed(value: Any) -> str:
    """A value as one would type it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={typed(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(typed, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
