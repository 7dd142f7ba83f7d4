"""Figures of `layout`: the front, memory, the step as an account, two plans side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from suanli.nouns.estimate import TERMS, StageMemory
from suanli.nouns.plans import Difference, DifferenceRow, PlannedLayout
from suanli.nouns.result import Result
from suanli.report.common import share
from suanli.report.figures import colours, parts, scales
from suanli.report.figures.figure import Figure, Row, Spec
from suanli.report.figures.scales import Unit
from suanli.units import format_bytes, format_percent, format_seconds, format_usd

_FIRST, _FRONT, _RANKED = "first of the ranking", "on the front", "ranked"
_FAMILIES = (("products", colours.PRODUCTS), ("other kernels", colours.KERNELS),
             ("communication", colours.COMMUNICATION), ("recompute", colours.AGAIN),
             ("waiting and fixed", colours.WAITING))  # fmt: skip


def layout_figures(result: Result) -> tuple[Figure, ...]:
    """Front, accounts, memory, and two plans side by side where asked for."""
    plan = result.result
    best: PlannedLayout = plan.layouts[0]
    found = (_front(plan), _account(best), *_accounts(plan.layouts), _memory(plan.layouts, plan.memory_limit_bytes))
    return (*found, *_stages(plan.stages, plan.memory_limit_bytes), *(() if plan.why is None else _both(plan.why)))


def _front(plan: Any) -> Figure:
    """Step time across, memory up: what lies left and below is better."""
    on_front = {each.layout for each in plan.front}
    rows: list[Row] = [_point(at, each.layout, each.gpus, each.step_time_s, each.memory_bytes, each.usd_per_step)
            for at, each in enumerate(plan.front[: parts.MOST_MARKS // 2], 1)]  # fmt: skip
    ranked = [_point(None, each.short, each.gpus, each.step_time_s, each.memory_bytes["total"], each.usd_per_step)
              for each in plan.layouts if each.short not in on_front]  # fmt: skip
    for row in rows + ranked:
        row["which"] = _FIRST if row["layout"] == plan.layouts[0].short else row["which"]
    every = sorted([*rows, *ranked], key=lambda row: row["which"] == _FIRST)  # drawn last, over the others
    seconds, sizes = scales.seconds(row["step_s"] for row in rows), scales.sizes([plan.memory_limit_bytes])
    x = parts.measure("x", seconds.of("step"), zero=False, scale={"nice": True, "padding": 12})
    y = parts.measure("y", sizes.of("memory of a GPU"), zero=False, scale={"nice": True, "padding": 12})
    hover = parts.tips(("layout", "layout"), ("gpus", "GPUs"), ("step", "step"), ("memory", "memory"),
                       ("cost", "a step costs"))  # fmt: skip
    paint = {_FIRST: colours.GREEN, _FRONT: colours.RED, _RANKED: colours.SKY}
    used = {row["which"] for row in rows + ranked}
    colour = parts.coloured("which", {name: shade for name, shade in paint.items() if name in used})
    shown = [seconds.shown("step_s", "x"), sizes.shown("bytes", "y")]
    several = len({row["gpus"] for row in rows}) > 1
    line: Spec = {
        "transform": [{"filter": "isValid(datum.at)"}],
        "mark": {"type": "line", "strokeDash": [4, 3], "opacity": 0.5},
        "encoding": {"x": x, "y": y, "color": {"value": colours.RED}, "order": {"field": "at", "type": "quantitative"}},
    }
    points = {"mark": {"type": "point", "filled": True, "size": 80, "opacity": 0.9},
              "encoding": {"x": x, "y": y, "color": colour, "tooltip": hover}}  # fmt: skip
    layers = [*([] if several else [line]), points, *_limit(plan.memory_limit_bytes, sizes)]
    spec = parts.spec_of(every, parts.HEIGHT, ("which",), transform=shown, layer=layers)
    return Figure(
        name="front", title="No other is as fast, as small, on as few GPUs", spec=spec,
        words="Layouts as points, the time of a step across and the memory of a GPU up; those on the front are marked, "
        "and a line is drawn at the memory limit.",
    )  # fmt: skip


def _point(at: int | None, name: str, gpus: int, step_s: float, size: int, usd: float | None) -> Row:
    return {
        "at": at, "layout": name, "gpus": gpus, "step_s": step_s, "bytes": size, "step": format_seconds(step_s),
        "memory": format_bytes(size), "cost": "" if usd is None else format_usd(usd),
        "which": _RANKED if at is None else _FRONT,
    }  # fmt: skip


def _limit(size: int, unit: Unit) -> list[Spec]:
    row = {"limit": size, "text": format_bytes(size)}
    y = {"field": "y", "type": "quantitative"}
    base: Spec = {"data": {"values": [row]}, "transform": [unit.shown("limit", "y")]}
    return [
        base | {"mark": {"type": "rule", "strokeDash": [6, 4]},
                "encoding": {"y": y, "tooltip": parts.tips(("text", "memory limit"))}},
        base | {"mark": {"type": "text", "align": "left", "dx": 4, "dy": -7},
                "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "text"}}},
    ]  # fmt: skip


def _account(best: PlannedLayout) -> Figure:
    whole = best.step_time_s
    rows = parts.running([(each.entry, each.seconds) for each in best.account
                          if each.seconds > parts.ROUNDING * whole])  # fmt: skip
    rows.append({"part": "step", "value": whole, "begin": 0.0, "end": whole})
    for row in rows:
        row["text"] = f"{format_seconds(row['value'])}, {share(row['value'], whole)}"
    paint = {row["part"]: colours.of_entry(row["part"]) for row in rows} | {"step": colours.GREEN}
    spec = parts.waterfall(rows, label="part", unit=scales.seconds([whole]), title="step", colours=paint,
                           words=("part",), hover=(("part", "entry"), ("text", "time")))  # fmt: skip
    return Figure(
        name="account", title="Step of the first", spec=spec,
        words="The entries of the step as bars, each where the one before ended; together they are the step.",
    )  # fmt: skip


def _accounts(layouts: Sequence[PlannedLayout]) -> tuple[Figure, ...]:
    if len(layouts) < 2:
        return ()
    family = {colour: name for name, colour in _FAMILIES}
    rows: list[Row] = [
        {"layout": name, "entry": each.entry, "seconds": each.seconds, "family": family[colours.of_entry(each.entry)],
         "text": f"{format_seconds(each.seconds)}, {share(each.seconds, layout.step_time_s)}",
         "step": format_seconds(layout.step_time_s), "mfu": format_percent(layout.mfu)}
        for name, layout in _named(layouts) for each in layout.account if each.seconds
    ]  # fmt: skip
    used = {row["family"] for row in rows}
    spec = parts.stack(
        rows, label="layout", part="family", value="seconds", unit=scales.seconds(x.step_time_s for x in layouts),
        title="step", colours={name: colour for name, colour in _FAMILIES if name in used}, words=("family", "entry"),
        hover=(("layout", "layout"), ("entry", "entry"), ("text", "time"), ("step", "step"), ("mfu", "MFU")),
    )  # fmt: skip
    return (Figure(
        name="accounts", title="Steps of the layouts", spec=spec,
        words="A bar for the step of each layout, cut into products, other kernels, communication, recomputation and "
        "waiting.",
    ),)  # fmt: skip


def _named(layouts: Sequence[PlannedLayout]) -> list[tuple[str, PlannedLayout]]:
    """Layouts by place and by what is not the same in all of them."""
    shown = layouts[: parts.MOST_BARS]
    words = [each.short.split() for each in shown]
    common = set(words[0]).intersection(*words[1:]) if len(shown) > 1 else set()
    names = [" ".join(word for word in each if word not in common) for each in words]
    return [(f"{place}: {name}", each) for place, (name, each) in enumerate(zip(names, shown, strict=True), 1)]


def _memory(layouts: Sequence[PlannedLayout], limit: int) -> Figure:
    rows: list[Row] = [
        {"layout": name, "term": term, "bytes": size, "text": format_bytes(size),
         "total": format_bytes(layout.memory_bytes["total"]), "stage": layout.fullest_stage}
        for name, layout in _named(layouts) for term, size in layout.memory_bytes.items() if size and term != "total"
    ]  # fmt: skip
    spec = parts.stack(
        rows, label="layout", part="term", value="bytes", unit=scales.sizes([limit]), title="memory of a GPU",
        colours=terms_of(rows), words=("term",), limit={"value": limit, "text": format_bytes(limit)},
        hover=(("layout", "layout"), ("term", "term"), ("text", "memory"), ("total", "total"), ("stage", "stage")),
    )  # fmt: skip
    return Figure(
        name="memory", title="Memory of the layouts, fullest stage", spec=spec,
        words="A bar for the memory of each layout's fullest GPU, cut into its terms, beside the memory limit.",
    )  # fmt: skip


def _stages(stages: Sequence[StageMemory], limit: int) -> tuple[Figure, ...]:
    """Every stage of the first layout; of very many those that hold most."""
    fullest = sorted(sorted(stages, key=lambda each: -each.total)[: parts.MOST_BARS], key=lambda each: each.stage)
    rows: list[Row] = [
        {"stage": f"{each.stage}", "term": term, "bytes": size, "text": format_bytes(size), "layers": each.layers,
         "total": format_bytes(each.total), "moment": each.moment}
        for each in fullest for term in TERMS if (size := getattr(each, term))
    ]  # fmt: skip
    if len(stages) < 2:
        return ()
    spec = parts.stack(
        rows, label="stage", part="term", value="bytes", unit=scales.sizes([limit]), title="memory of a GPU",
        colours=terms_of(rows), words=("term", "moment"), label_title="stage",
        limit={"value": limit, "text": format_bytes(limit)},
        hover=(("stage", "stage"), ("layers", "layers"), ("term", "term"), ("text", "memory"), ("total", "total"),
               ("moment", "most at")),
    )  # fmt: skip
    return (Figure(
        name="stages", title="Memory of each stage of the first", spec=spec,
        words="A bar for the memory of a GPU of each pipeline stage, cut into its terms, beside the memory limit.",
    ),)  # fmt: skip


def terms_of(rows: Sequence[Row]) -> dict[str, str]:
    """Colours of the terms of memory that are there."""
    used = {row["term"] for row in rows}
    return {name: colour for name, colour in colours.OF_MEMORY.items() if name in used}


def _both(found: Difference) -> tuple[Figure, Figure]:
    seconds = scales.seconds((found.first.step_time_s, found.second.step_time_s))
    sizes = scales.sizes((found.first.memory_bytes["total"], found.second.memory_bytes["total"]))
    what = (found.first.short, found.second.short)
    return (
        Figure(
            name="why_step",
            title="Why: the steps of both",
            words="Two bars for each entry of the step, one a plan.",
            spec=beside(found.step, ("first", "second"), seconds, "time", format_seconds, what),
        ),
        Figure(
            name="why_memory",
            title="Memory of both",
            words="Two bars for each term of memory, one a plan.",
            spec=beside(found.memory, ("first", "second"), sizes, "memory", format_bytes, what),
        ),
    )


def beside(
    rows: Sequence[DifferenceRow], names: tuple[str, str], unit: Unit, title: str, write: Callable[[float], str],
    what: tuple[str, str] = ("", ""),
) -> Spec:  # fmt: skip
    """Two bars a row, called `names`; `what` they are shows in hovering."""
    values: list[Row] = []
    for row in rows:
        sign = "-" if row.difference < 0 else "+"
        for name, told, value in zip(names, what, (row.first, row.second), strict=True):
            if row.first or row.second:
                values.append({
                    "entry": parts.name_of(row.entry), "plan": name, "what": told, "value": value, "text": write(value),
                    "difference": f"{sign}{write(abs(row.difference))}",
                })  # fmt: skip
    order = list(dict.fromkeys(row["entry"] for row in values))
    y = {"y": parts.band("entry", order), "yOffset": {"field": "plan", "sort": list(names)}}
    hover = parts.tips(("entry", "entry"), ("plan", "which"), *((("what", "layout"),) if any(what) else ()),
                       ("text", title), ("difference", f"{names[1]} less {names[0]}"))  # fmt: skip
    x = {"x": parts.measure("shown", unit.of(title))}
    paint = parts.coloured("plan", dict(zip(names, (colours.BLUE, colours.RED), strict=True)))
    layers = [
        {"mark": "bar", "encoding": y | x | {"color": paint, "tooltip": hover}},
        {"mark": {"type": "text", "align": "left", "dx": 4}, "encoding": y | x | {"text": {"field": "text"}}},
    ]
    return parts.spec_of(values, parts.Step(20), ("entry", "plan"), transform=[unit.shown("value", "shown")],
                         layer=layers)  # fmt: skip
