"""Figures of `scale`: speed-up over GPUs, and how near to linear."""

from __future__ import annotations

from suanli.nouns.result import Result
from suanli.nouns.scaling import METRICS, CurvePoint, Scaling
from suanli.report.figures import colours, parts, scales
from suanli.report.figures.figure import Figure, Row, Spec
from suanli.units import format_percent

_MEASURED, _PROJECTED, _LINEAR = "measured", "projected", "linear"


def scale_figures(result: Result) -> tuple[Figure, ...]:
    """What was measured, the law with its interval, and the projection."""
    found: Scaling = result.result
    return (_speedup(found), _ratio(found))


def _rows(found: Scaling) -> list[Row]:
    """Measured sizes and projected ones; an interval is that of the ratio, in both measures."""
    unit = METRICS[found.by].unit
    measured = [
        {"gpus": row.gpus, "speedup": row.speedup, "ratio": row.ratio, "which": _MEASURED,
         "times": f"{row.speedup:,.2f}", "percent": format_percent(row.ratio), "interval": "",
         "value": f"{row.value:,.6g} {unit}"}
        for row in found.sizes
    ]  # fmt: skip
    projected = []
    for row in found.projection:
        linear = row.speedup / row.ratio
        projected.append({
            "gpus": row.gpus, "speedup": row.speedup, "ratio": row.ratio, "which": _PROJECTED,
            "times": f"{row.speedup:,.2f}", "percent": format_percent(row.ratio), "value": "",
            "interval": f"{format_percent(row.low)} – {format_percent(row.high)}", "low": row.low, "high": row.high,
            "low_speedup": row.low * linear, "high_speedup": row.high * linear,
        })  # fmt: skip
    return measured + projected


def _speedup(found: Scaling) -> Figure:
    rows = _rows(found)
    x = _gpus(rows)
    y = parts.measure("speedup", "speed-up [×]", log=True, zero=False, scale={"nice": False})
    first, last = found.sizes[0].gpus, max(row["gpus"] for row in rows)
    linear = [{"gpus": gpus, "speedup": gpus / first, "which": _LINEAR} for gpus in (first, last)]
    law = f"law: {found.fit.law}" if found.fit else ""
    curve = [{"gpus": each.gpus, "speedup": each.speedup, "which": law} for each in _thinned(found)]
    paint = parts.coloured("which", _paint(rows) | {_LINEAR: colours.GREY} | ({law: colours.BLUE} if curve else {}))
    layers = [
        *_interval("low_speedup", "high_speedup", x, y, rows), _line(linear, x, y, paint, dash=True),
        *([_line(curve, x, y, paint)] if curve else []), _points(x, y, paint),
    ]  # fmt: skip
    return Figure(
        name="speedup", title="Speed-up over GPUs, log–log",
        spec=parts.spec_of(rows, parts.HEIGHT, ("which",), layer=layers),
        words="Measured speed-ups as points beside the linear line, the fitted law as a curve, projections as points "
        "with their 90 % interval.",
    )  # fmt: skip


def _paint(rows: list[Row]) -> dict[str, str]:
    used = {row["which"] for row in rows}
    return {name: colour for name, colour in ((_MEASURED, colours.GREEN), (_PROJECTED, colours.PURPLE)) if name in used}


def _thinned(found: Scaling) -> tuple[CurvePoint, ...]:
    every = -(-len(found.curve) // (parts.MOST_MARKS // 10)) or 1
    return (*found.curve[::every], *found.curve[-1:])


def _gpus(rows: list[Row]) -> Spec:
    """GPUs across, logarithmic, a tick at every size there is."""
    ticks = sorted({row["gpus"] for row in rows})
    axis = {"values": ticks, "labelOverlap": "greedy", "format": ",d"}
    return parts.measure("gpus", "GPUs", log=True, zero=False, scale={"nice": False, "padding": 12}, axis=axis)


def _line(rows: list[Row], x: Spec, y: Spec, paint: Spec, *, dash: bool = False) -> Spec:
    mark = {"type": "line"} | ({"strokeDash": [5, 4]} if dash else {})
    return {"data": {"values": rows}, "mark": mark, "encoding": {"x": x, "y": y, "color": paint}}


def _points(x: Spec, y: Spec, paint: Spec) -> Spec:
    hover = parts.tips(("gpus", "GPUs"), ("times", "speed-up"), ("percent", "of linear"), ("interval", "90 %"),
                       ("value", "measured"))  # fmt: skip
    return {"mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": paint, "tooltip": hover}}  # fmt: skip


def _interval(low: str, high: str, x: Spec, y: Spec, rows: list[Row]) -> list[Spec]:
    """The 90 % interval of projections: a band through them, and a line at each."""
    if not any(low in row for row in rows):
        return []
    keep = [{"filter": f"isValid(datum.{low})"}]
    ends = {"x": x, "y": y | {"field": low}, "y2": {"field": high}, "color": {"value": colours.PURPLE}}
    return [
        {"transform": keep, "mark": {"type": "area", "opacity": 0.2}, "encoding": ends},
        {"transform": keep, "mark": {"type": "rule", "strokeWidth": 2}, "encoding": ends},
    ]


def _ratio(found: Scaling) -> Figure:
    rows = _rows(found)
    x = _gpus(rows)
    y = parts.measure("ratio_shown", "of linear [%]", zero=False, scale={"nice": True})
    known = ("ratio", "low", "high") if found.projection else ("ratio",)
    shown = [scales.PERCENT.shown(name, f"{name}_shown") for name in known]
    band = _interval("low", "high", x, y, rows)
    for layer in band:
        layer["encoding"] = layer["encoding"] | {"y": y | {"field": "low_shown"}, "y2": {"field": "high_shown"}}
    points = _points(x, y, parts.coloured("which", _paint(rows)))
    return Figure(
        name="ratio", title="How near to linear",
        spec=parts.spec_of(rows, parts.HEIGHT, ("which",), transform=shown, layer=[*band, points]),
        words="The linear speed-up ratio to the smallest size over GPUs, measured and projected, with the 90 % "
        "interval of projections.",
    )  # fmt: skip
