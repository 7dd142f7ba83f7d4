"""Figures of `mfu` and `train`."""

from __future__ import annotations

from collections.abc import Callable

from suanli.nouns.measures import GIVEN_HOURS, Mfu, TrainPlan, Utilisation
from suanli.nouns.result import Result
from suanli.report.common import share, whole
from suanli.report.figures import colours, parts, scales
from suanli.report.figures.figure import Figure, Row, Spec
from suanli.units import format_flop_per_s, format_flops, format_percent, format_usd

_CHOSEN, _OTHER = "chosen", "another"


def mfu_figures(result: Result) -> tuple[Figure, ...]:
    """The utilisation under every convention, and from the peak down to what was achieved."""
    found: Mfu = result.result
    return (*_by_convention(found), *_peak_to_achieved(found))


def _by_convention(found: Mfu) -> tuple[Figure, ...]:
    rows: list[Row] = [_view(name, view, name == found.convention) for name, view in found.by_convention.items()]
    rows = [row for row in rows if row["mfu"] is not None]
    if not rows:
        return ()
    paint = {_CHOSEN: colours.GREEN, _OTHER: colours.SKY}
    spec = parts.bars(
        rows, label="convention", value="mfu", unit=scales.PERCENT, title="MFU", text="text", words=("which",),
        colour=parts.coloured("which", paint), label_title="convention",
        hover=(("convention", "convention"), ("text", "MFU"), ("hfu", "HFU"), ("flops", "FLOPs of a unit")),
    )  # fmt: skip
    return (Figure(
        name="mfu_by_convention", title="The same run under each convention", spec=spec,
        words="A bar for the utilisation under each convention; the chosen one has a colour of its own.",
    ),)  # fmt: skip


def _view(name: str, view: Utilisation, chosen: bool) -> Row:
    return {
        "convention": name, "mfu": view.mfu, "text": "" if view.mfu is None else format_percent(view.mfu),
        "hfu": "" if view.hfu is None else format_percent(view.hfu), "flops": format_flops(view.flops_per_token, 5),
        "which": _CHOSEN if chosen else _OTHER,
    }  # fmt: skip


def _peak_to_achieved(found: Mfu) -> tuple[Figure, ...]:
    peak, hardware, achieved = found.peak_flop_per_s, found.achieved_hardware_flop_per_s, found.achieved_flop_per_s
    if found.mfu is None or not peak >= hardware >= achieved:
        return ()
    losses = (("below the peak", peak - hardware), ("recompute", hardware - achieved), ("model FLOPs", achieved))
    rows: list[Row] = [{"part": "peak", "value": peak, "begin": 0, "end": peak}, *parts.running(losses, down_from=peak)]
    for row in rows:
        row["text"] = f"{format_flop_per_s(row['value'])}, {share(row['value'], peak)}"
    paint = {"peak": colours.BLUE, "below the peak": colours.GREY, "recompute": colours.AGAIN,
             "model FLOPs": colours.USEFUL}  # fmt: skip
    spec = parts.waterfall(
        rows, label="part", unit=scales.rates([peak]), title="rate of one GPU", colours=paint, words=("part",),
        hover=(("part", "part"), ("text", "rate")),
    )  # fmt: skip
    return (Figure(
        name="peak_to_achieved", title="From the peak to what was achieved", spec=spec,
        words="Bars from the peak of one GPU down to its model FLOPs a second, each where the one before ended.",
    ),)  # fmt: skip


def train_figures(result: Result) -> tuple[Figure, ...]:
    """How sure the plan is, where the GPU-hours go with their cost and energy, and the work."""
    plan: TrainPlan = result.result
    return (*_intervals(plan), *_hours(plan), _work(plan), *_whole_programme(plan))


def _intervals(plan: TrainPlan) -> tuple[Figure, ...]:
    """Each quantity beside its own value, so that unlike units share an axis."""
    known: tuple[tuple[str, float | None, tuple[float, float] | None, Callable[[float], str]], ...] = (
        ("GPU-hours paid", plan.gpu_hours_paid, plan.gpu_hours_paid_interval, whole),
        ("days", plan.days, plan.days_interval, lambda value: f"{value:,.1f}"),
        ("cost", plan.cost_usd, plan.cost_interval_usd, format_usd),
    )
    rows: list[Row] = [
        {"quantity": name, "value": value, "low": ends[0], "high": ends[1], "text": write(value),
         "from": write(ends[0]), "to": write(ends[1])}
        for name, value, ends, write in known if value and ends
    ]  # fmt: skip
    if not rows:
        return ()
    hover = parts.tips(("quantity", "quantity"), ("text", "expected"), ("from", "90 % from"), ("to", "to"))
    y = parts.band("quantity", [row["quantity"] for row in rows])
    layers = [_whisker(y, hover), *(_figure_of(y, field, at, above) for field, at, above in (
        ("from", "left", False), ("to", "right", False), ("text", "middle", True)))]  # fmt: skip
    transform = [{"calculate": f"100 * datum.{end} / datum.value", "as": as_}
                 for end, as_ in (("low", "left"), ("high", "right"), ("value", "middle"))]  # fmt: skip
    spec = parts.spec_of(rows, parts.Step(48), ("quantity",), transform=transform, layer=[
        *layers,
        {"mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
         "encoding": {"y": y, "x": {"field": "middle", "type": "quantitative"}, "tooltip": hover,
                      "color": {"value": colours.RED}}},
    ])  # fmt: skip
    return (Figure(
        name="intervals", title="How sure, 90 %", spec=spec,
        words="Each quantity as a point with a line from the lower to the upper end of its 90 % interval.",
    ),)  # fmt: skip


def _whisker(y: Spec, hover: list[Spec]) -> Spec:
    return {
        "mark": {"type": "rule", "strokeWidth": 6, "opacity": 0.6},
        "encoding": {"y": y, "x": parts.measure("left", "of the expected [%]", zero=False, scale={"padding": 45}),
                     "x2": {"field": "right"}, "color": {"value": colours.BLUE}, "tooltip": hover},
    }  # fmt: skip


def _figure_of(y: Spec, field: str, at: str, above: bool) -> Spec:
    """An end or the middle in words, above the line."""
    return {
        "mark": {"type": "text", "dy": -14 if above else 14},
        "encoding": {"y": y, "x": {"field": at, "type": "quantitative"}, "text": {"field": field}},
    }


def _hours(plan: TrainPlan) -> tuple[Figure, ...]:
    """Of the hours paid: lost, below the peak, recomputed, useful; with their part of the bill."""
    paid, productive = plan.gpu_hours_paid, plan.gpu_hours
    if plan.mfu is None or plan.hfu is None or not paid:
        return ()
    useful, executed = plan.mfu * productive, plan.hfu * productive
    losses = (("lost, not productive", paid - productive), ("below the peak", productive - executed),
              ("recompute", executed - useful), ("model FLOPs at the peak", useful))  # fmt: skip
    if min(value for _, value in losses) < -parts.ROUNDING * paid:
        return ()  # a utilisation above 1, or hours given: there is no such split
    kept = [(name, max(0.0, value)) for name, value in losses]
    rows: list[Row] = [{"part": "GPU-hours paid", "value": paid, "begin": 0.0, "end": paid},
            *parts.running(kept, down_from=paid)]  # fmt: skip
    for row in rows:
        row.update(_bill_of(plan, row["value"] / paid))
        row["text"] = f"{whole(row['value'])}, {row['share']}"
    paint = {"GPU-hours paid": colours.BLUE, "lost, not productive": colours.RED, "below the peak": colours.GREY,
             "recompute": colours.AGAIN, "model FLOPs at the peak": colours.USEFUL}  # fmt: skip
    hover = [("part", "part"), ("text", "GPU-hours")]
    hover += [(name, name) for name in ("cost", "energy") if name in rows[0]]
    spec = parts.waterfall(rows, label="part", unit=scales.counts([paid]), title="GPU-hours", colours=paint,
                           words=("part",), hover=hover)  # fmt: skip
    return (Figure(
        name="gpu_hours", title="Where the GPU-hours go", spec=spec,
        words="Bars from the GPU-hours paid down to those that the model's FLOPs take at the peak, with the part of "
        "cost and energy that each has.",
    ),)  # fmt: skip


def _bill_of(plan: TrainPlan, fraction: float) -> Row:
    found: Row = {"share": format_percent(fraction, 1)}
    if plan.cost_usd is not None:
        found["cost"] = format_usd(fraction * plan.cost_usd)
    if plan.energy_kwh is not None:
        found["energy"] = f"{whole(fraction * plan.energy_kwh)} kWh"
    return found


def _work(plan: TrainPlan) -> Figure:
    known = (("model FLOPs", plan.flops), ("hardware FLOPs", plan.hardware_flops), ("6N·tokens", plan.ideal["6n"]),
             ("8N·tokens", plan.ideal["8n"]))  # fmt: skip
    rows: list[Row] = [{"work": name, "flops": flops, "text": format_flops(flops, 5)} for name, flops in known]
    spec = parts.bars(
        rows, label="work", value="flops", unit=scales.operations([flops for _, flops in known]), title="work",
        text="text", hover=(("work", "work"), ("text", "FLOPs")), words=("work",),
    )  # fmt: skip
    return Figure(name="work", title="Work", spec=spec,
                  words="Bars for model and hardware FLOPs of the run beside the two ideal forms.")  # fmt: skip


def _whole_programme(plan: TrainPlan) -> tuple[Figure, ...]:
    if plan.reasons.get("gpu_hours_paid_interval") != GIVEN_HOURS or not plan.useful_mfu_by_convention:
        return ()
    rows: list[Row] = [{"convention": name, "mfu": value, "text": format_percent(value)}
            for name, value in plan.useful_mfu_by_convention.items()]  # fmt: skip
    spec = parts.bars(
        rows, label="convention", value="mfu", unit=scales.PERCENT, title="of all hours paid", text="text",
        hover=(("convention", "convention"), ("text", "of all hours paid")), label_title="convention",
    )  # fmt: skip
    return (Figure(name="programme_by_convention", title="Whole-programme utilisation under each convention",
                   spec=spec, words="A bar for the utilisation of all hours paid under each convention."),)  # fmt: skip
