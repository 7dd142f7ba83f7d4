"""Figures of `verify`: errors by source, fitted and held out; what holds; formula against trace by task."""

from __future__ import annotations

from suanli.nouns.claim import SourceSummary, Verification
from suanli.nouns.result import Result
from suanli.report.figures import colours, parts, scales
from suanli.report.figures.figure import Figure, Row
from suanli.report.verify_pages import SCALING
from suanli.units import format_percent

_FITTED, _HELD_OUT, _SIMPLE, _BAR = "fitted", "held out", "simplest rule", "aimed at"
_STATUS_COLOURS = {
    "holds": colours.GREEN, "reproduced": colours.GREEN, "predicted": colours.BLUE, "article wrong": colours.PURPLE,
    "differs": colours.ORANGE, "flagged": colours.OLIVE, "rule of thumb": colours.SKY, "unsupported": colours.GREY,
    "quoted": colours.BROWN, "not counted yet": colours.GREY, "fails": colours.RED,
}  # fmt: skip
_TASKS = (("exact", "exact"), ("declared", "declared difference"), ("partly", "exact where it runs"),
          ("by_trace", "by trace only"), ("not_run", "not run"), ("wrong", "wrong"))  # fmt: skip
_TASK_COLOURS = dict(zip((name for _, name in _TASKS), (colours.GREEN, colours.SKY, colours.OLIVE, colours.BLUE,
                                                        colours.GREY, colours.RED), strict=True))  # fmt: skip


def verify_figures(result: Result) -> tuple[Figure, ...]:
    """Errors first."""
    found: Verification = result.result
    return (*_errors(found), *_claims(found), *_coverage(found))


def _errors(found: Verification) -> tuple[Figure, ...]:
    """A row a source: dots for what was fitted and what was not, a mark where the error is aimed to be."""
    judged = [row for row in found.summary if _points(row)]
    rows: list[Row] = [point | {"source": f"{row.section}: {parts.name_of(row.source)}", "n": f"{row.n:,}"}
            for row in judged for point in _points(row)][: parts.MOST_MARKS]  # fmt: skip
    if not rows:
        return ()
    order = list(dict.fromkeys(row["source"] for row in rows))
    y = parts.band("source", order, labelPadding=8)
    x = parts.measure("shown", "mean or median |error| [%]", scale={"nice": True})
    used = {row["which"] for row in rows}
    paint = {name: colour for name, colour in ((_HELD_OUT, colours.RED), (_FITTED, colours.BLUE),
             (_SIMPLE, colours.GREY), (_BAR, colours.GREEN)) if name in used}  # fmt: skip
    colour = parts.coloured("which", paint)
    hover = (("source", "source"), ("which", "rows"), ("text", "|error|"), ("kind", "of"), ("n", "rows compared"))
    dots = {"transform": [{"filter": "!datum.bar"}]} | parts.points(x, y, colour, hover)
    bars = {"transform": [{"filter": "datum.bar"}]} | parts.points(
        x, y, colour, hover, type="tick", thickness=3, size=18
    )
    line = {
        "transform": [{"filter": "!datum.bar"}],
        "mark": {"type": "rule", "opacity": 0.5},
        "encoding": {
            "y": y,
            "x": {"field": "shown", "type": "quantitative", "aggregate": "min"},
            "x2": {"field": "shown", "aggregate": "max"},
        },
    }
    spec = parts.spec_of(rows, parts.Step(26), ("which", "kind"), transform=[scales.PERCENT.shown("error", "shown")],
                         layer=[line, *([bars] if _BAR in used else []), dots])  # fmt: skip
    return (Figure(
        name="errors", title="Error by source, fitted and held out", spec=spec,
        words="A row for each source with dots for the error on rows that were fitted and on rows left out, and a mark "
        "where the error is aimed to be.",
    ),)  # fmt: skip


def _points(row: SourceSummary) -> list[Row]:
    """Errors of one source by the measure it is judged by; median where that is all there is."""
    median = row.judged == "median" or row.mape_held_out is None or row.section == SCALING
    kind = "median" if median else "mean"
    fitted = row.median_fitted if median else row.mape_fitted
    held = row.median_held_out if median else row.mape_held_out
    simple = row.median_constant if median else row.mape_constant
    if held is None and fitted is None:
        return []
    known = ((_FITTED, fitted), (_HELD_OUT, held), (_SIMPLE, simple), (_BAR, row.bar))
    return [{"which": which, "error": value, "text": format_percent(value), "kind": kind, "bar": which == _BAR}
            for which, value in known if value is not None]  # fmt: skip


def _claims(found: Verification) -> tuple[Figure, ...]:
    """How claims came out, by section."""
    counts: dict[tuple[str, str], int] = {}
    for claim in found.claims:
        counts[claim.section, claim.status] = counts.get((claim.section, claim.status), 0) + 1
    if not counts:
        return ()
    rows: list[Row] = [{"section": section, "status": status, "claims": number, "text": f"{number:,}"}
            for (section, status), number in counts.items()]  # fmt: skip
    used = {row["status"] for row in rows}
    paint = {name: colour for name, colour in _STATUS_COLOURS.items() if name in used}
    paint |= dict.fromkeys(used - paint.keys(), colours.GREY)
    spec = parts.stack(
        rows, label="section", part="status", value="claims", unit=scales.Unit("", 1), title="claims", colours=paint,
        words=("section", "status"), hover=(("section", "section"), ("status", "status"), ("text", "claims")),
    )  # fmt: skip
    return (Figure(name="claims", title="How claims came out", spec=spec,
                   words="A bar for the claims of each section, cut into how they came out."),)  # fmt: skip


def _coverage(found: Verification) -> tuple[Figure, ...]:
    """Model types by task."""
    rows: list[Row] = [
        {"task": each.mapping, "status": name, "types": getattr(each, field), "text": f"{getattr(each, field):,}"}
        for each in found.coverage_summary[-parts.MOST_BARS :] for field, name in _TASKS if getattr(each, field)
    ]  # fmt: skip
    if not rows:
        return ()
    used = {row["status"] for row in rows}
    spec = parts.stack(
        rows, label="task", part="status", value="types", unit=scales.Unit("", 1), title="model types",
        colours={name: colour for name, colour in _TASK_COLOURS.items() if name in used}, words=("status",),
        hover=(("task", "task"), ("status", "status"), ("text", "model types")),
    )  # fmt: skip
    return (
        Figure(
            name="coverage",
            title="Formula against trace by task",
            spec=spec,
            words="A bar for the model types of each task, cut into how formula and trace compare.",
        ),
    )
