"""Figures of `calibrate` and `summarise`: before and after."""

from __future__ import annotations

from suanli.nouns.calibrated import Calibrated, ShippedFits
from suanli.nouns.result import Result
from suanli.nouns.summarised import Summarised
from suanli.report.figures import colours, parts, scales
from suanli.report.figures.figure import Figure, Row
from suanli.units import format_bytes, format_change, format_exact, format_seconds

_BEFORE, _AFTER = "as it was", "told by the other runs"


def calibrate_figures(result: Result) -> tuple[Figure, ...]:
    """Errors of the runs before and after, and what each number became."""
    found = result.result
    if isinstance(found, ShippedFits):
        return _shipped(found)
    return (*_errors(found), *_numbers(found))


def _errors(found: Calibrated) -> tuple[Figure, ...]:
    rows: list[Row] = []
    shown = found.runs[: parts.MOST_BARS]
    for run, label in zip(shown, parts.unique(parts.name_of(each.id) for each in shown), strict=True):
        for which, error, seconds in ((_BEFORE, run.error_before_fraction, run.before_s),
                                      (_AFTER, run.error_held_out_fraction, run.held_out_s)):  # fmt: skip
            rows.append({"run": label, "which": which, "error": error, "text": format_change(error),
                         "measured": format_seconds(run.step_s), "predicted": format_seconds(seconds),
                         "layout": run.layout})  # fmt: skip
    if not rows:
        return ()
    order = list(dict.fromkeys(row["run"] for row in rows))
    paint = {_BEFORE: colours.GREY, _AFTER: colours.GREEN}
    y = {"y": parts.band("run", order, "run"), "yOffset": {"field": "which", "sort": list(paint)}}
    hover = parts.tips(("run", "run"), ("layout", "layout"), ("which", "stack"), ("measured", "measured"),
                       ("predicted", "predicted"), ("text", "error"))  # fmt: skip
    x = parts.measure("shown", "predicted over measured, less 1 [%]")
    spec = parts.spec_of(rows, parts.Step(20), ("which",), transform=[scales.PERCENT.shown("error", "shown")], layer=[
        {"mark": "bar", "encoding": y | {"x": x, "color": parts.coloured("which", paint), "tooltip": hover}},
    ])  # fmt: skip
    return (
        Figure(
            name="errors",
            title="Errors of the runs, before and after",
            spec=spec,
            words="Two bars for each run: the error of the stack as it was, and of what the other runs give.",
        ),
    )


def _numbers(found: Calibrated) -> tuple[Figure, ...]:
    """What each number that the runs tell became, of what was believed."""
    told = [each for each in found.numbers if each.told and each.before]
    rows: list[Row] = [
        {"number": parts.name_of(each.name), "before": each.before, "after": each.after, "meaning": each.meaning,
         "was": f"{each.before:.4g} {each.unit}".rstrip(), "text": f"{each.after:.4g} {each.unit}".rstrip()}
        for each in told[: parts.MOST_BARS]
    ]  # fmt: skip
    if not rows:
        return ()
    y = parts.band("number", [row["number"] for row in rows])
    x = parts.measure("factor", "of what was believed [×]", zero=False, scale={"nice": True, "padding": 16})
    hover = parts.tips(("number", "number"), ("meaning", "meaning"), ("was", "before"), ("text", "after"))
    one = {"data": {"values": [{"factor": 1}]}, "mark": {"type": "rule", "strokeDash": [5, 3]},
           "encoding": {"x": {"field": "factor", "type": "quantitative"}}}  # fmt: skip
    spec = parts.spec_of(
        rows, parts.Step(parts.BAR_STEP), transform=[{"calculate": "datum.after / datum.before", "as": "factor"}],
        layer=[one, {"mark": {"type": "point", "filled": True, "size": 90, "opacity": 1, "color": colours.GREEN},
                     "encoding": {"y": y, "x": x, "tooltip": hover}}],
    )  # fmt: skip
    return (
        Figure(
            name="numbers",
            title="Numbers of the stack, of what was believed",
            spec=spec,
            words="A point for each number of the stack: what the runs make of it over what was believed.",
        ),
    )


def _shipped(found: ShippedFits) -> tuple[Figure, ...]:
    rows: list[Row] = [
        {"number": parts.name_of(f"{stack.stack}: {each.name}"), "difference": each.difference_fraction,
         "text": format_change(each.difference_fraction), "shipped": f"{each.shipped:.6g}",
         "fitted": f"{each.fitted:.6g}"}
        for stack in found.stacks for each in stack.numbers
        if each.difference_fraction is not None and each.shipped is not None
    ]  # fmt: skip
    rows = sorted(rows, key=lambda row: -abs(row["difference"]))[: parts.MOST_BARS]
    if not rows:
        return ()
    spec = parts.bars(
        rows, label="number", value="difference", unit=scales.PERCENT, title="fitted over shipped, less 1",
        text="text", hover=(("number", "number"), ("shipped", "shipped"), ("fitted", "fitted"), ("text", "difference")),
    )  # fmt: skip
    return (
        Figure(
            name="shipped",
            title="Fitted again, against what ships",
            spec=spec,
            words="A bar for the numbers that differ most between what ships and what is fitted again.",
        ),
    )


def summarise_figures(result: Result) -> tuple[Figure, ...]:
    """Bytes of traces and of their summaries."""
    found: Summarised = result.result
    made = [each for each in found.files if each.output and each.trace_bytes and each.summary_bytes]
    rows: list[Row] = [
        {"file": label, "which": which, "bytes": size, "text": format_bytes(size), "work": format_exact(each.work)}
        for each, label in zip(made, parts.unique(_file(each.path) for each in made), strict=True)
        for which, size in (("trace", each.trace_bytes), ("summary", each.summary_bytes))
    ][: 2 * parts.MOST_BARS]  # fmt: skip
    if not rows:
        return ()
    unit = scales.sizes(row["bytes"] for row in rows)
    order = list(dict.fromkeys(row["file"] for row in rows))
    y = {"y": parts.band("file", order), "yOffset": {"field": "which", "sort": ["trace", "summary"]}}
    x = parts.measure(
        "shown",
        unit.of("size"),
        log=True,
        zero=False,
        scale={"nice": False, "padding": 16},
        axis=parts.log_axis((row["bytes"] for row in rows), unit),
    )
    hover = parts.tips(("file", "trace"), ("which", "file"), ("text", "size"), ("work", "kernels and copies"))
    paint = parts.coloured("which", {"trace": colours.GREY, "summary": colours.GREEN})
    spec = parts.spec_of(rows, parts.Step(14), ("which",), transform=[unit.shown("bytes", "shown")], layer=[
        {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
         "encoding": y | {"x": x, "color": paint, "tooltip": hover}},
    ])  # fmt: skip
    return (
        Figure(
            name="sizes",
            title="Traces and their summaries",
            spec=spec,
            words="Two points for each trace: its size and that of its summary, on a logarithmic axis.",
        ),
    )


def _file(path: str) -> str:
    return parts.name_of(path.rsplit("/", 1)[-1])
