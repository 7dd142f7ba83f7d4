"""Figures of `explain` over one file: from the peak to what was useful, kernels, communication, the roof."""

from __future__ import annotations

from suanli.nouns.explained import Explained
from suanli.nouns.result import Result
from suanli.report.explain_pages import merged
from suanli.report.figures import colours, parts, scales
from suanli.report.figures.figure import Figure
from suanli.units import format_percent, format_seconds


def explain_figures(result: Result) -> tuple[Figure, ...]:
    """The waterfall first."""
    if not isinstance(result.result, Explained):
        return ()
    found: Explained = result.result
    return waterfall(found)


def waterfall(found: Explained) -> tuple[Figure, ...]:
    """Peak → … → useful; the parts close to 100 %."""
    whole = found.peak_s
    if not whole:
        return ()
    rows = [{"part": "peak", "value": whole, "begin": 0.0, "end": whole},
            *parts.running(merged(found.account), down_from=whole)]  # fmt: skip
    for row in rows:
        row["text"] = f"{format_seconds(row['value'])}, {format_percent(row['value'] / whole, 1)}"
    paint = {row["part"]: colours.of_entry(row["part"]) for row in rows} | {"peak": colours.BLUE}
    spec = parts.waterfall(rows, label="part", unit=scales.seconds([whole]), title="device time", colours=paint,
                           words=("part",), hover=(("part", "entry"), ("text", "time")))  # fmt: skip
    return (Figure(
        name="waterfall", title="Where the time went", spec=spec,
        words="Bars from the whole time at the peak down to the useful model FLOPs, each where the one before ended.",
    ),)  # fmt: skip
