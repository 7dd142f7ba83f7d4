"""Figures of `explain` over many ranks: the account, the rank heat map, arrival skew, who waits for whom."""

from __future__ import annotations

from collections.abc import Sequence

from suanli.nouns.fleet import FleetReport, RankRow
from suanli.report.figures import colours, parts, scales
from suanli.report.figures.figure import Figure, Row
from suanli.report.fleet_pages import labels_of
from suanli.report.heat import heat_cells
from suanli.units import format_bytes_per_s, format_exact, format_percent, format_seconds

MOST_RANKS, MOST_COLUMNS = 40, 48  # of the heat map: at most as many cells as a figure may have marks
_PARTS = {"compute": colours.PRODUCTS, "exposed communication": colours.COMMUNICATION, "idle": colours.WAITING}
HALF_AGAIN = 0.5  # above the median: the strongest colour


def fleet_figures(found: FleetReport) -> tuple[Figure, ...]:
    """From the whole to who keeps others waiting."""
    return (*_account(found), *_heat(found), *_ranks(found), *_skew(found), *_waits(found), *_stages(found))


def _account(found: FleetReport) -> tuple[Figure, ...]:
    from suanli.report.figures.explained import waterfall  # noqa: PLC0415  it draws many ranks with this module

    return waterfall(found.account, found.peak_s)


def _heat(found: FleetReport) -> tuple[Figure, ...]:
    """Ranks by steps, or by entries of the account: each cell against the median of its column."""
    if found.step_names:
        columns: Sequence[str] = found.step_names
        values = [row.step_computes_s for row in found.ranks]
        title, across = "Compute of each rank by step, against the median", "step"
    else:
        columns = [each.entry for each in found.account]
        values = [_entries(row, columns) for row in found.ranks]
        title, across = "Entries of each rank, against the median", "entry"
    cells = heat_cells(labels_of(found.ranks), columns, values, MOST_RANKS, MOST_COLUMNS)
    rows: list[Row] = [
        {
            "rank": rank,
            "column": column,
            "over": over,
            "shown": min(max(over, -HALF_AGAIN), HALF_AGAIN),
            "text": f"{over:+.1%}".replace("%", " %"),
        }
        for rank, column, over in cells
        if over is not None
    ]
    if not rows:
        return ()
    ranks, places = (list(dict.fromkeys(name)) for name in zip(*((r, c) for r, c, _ in cells), strict=True))
    colour = {
        "field": "shown", "type": "quantitative", "title": "against the median",
        "scale": {"domain": [-HALF_AGAIN, 0, HALF_AGAIN], "range": [colours.BLUE, colours.GREY, colours.RED]},
        "legend": {"format": "+.0%", "gradientLength": 160},
    }  # fmt: skip
    strength = {"field": "strength", "type": "quantitative", "legend": None,
                "scale": {"domain": [0, HALF_AGAIN], "range": [0.12, 1]}}  # fmt: skip
    spec = parts.spec_of(
        rows, parts.Step(14), transform=[{"calculate": "abs(datum.shown)", "as": "strength"}],
        mark={"type": "rect"},
        encoding={
            "x": {"field": "column", "type": "nominal", "sort": places, "title": across,
                  "axis": {"labelOverlap": "greedy", "labelAngle": -45, "labelLimit": 120, "ticks": False}},
            "y": parts.band("rank", ranks, "rank", labelOverlap="greedy"), "color": colour, "fillOpacity": strength,
            "tooltip": parts.tips(("rank", "rank"), ("column", across), ("text", "against the median")),
        },
    )  # fmt: skip
    return (Figure(
        name="heat", title=title, spec=spec,
        words="A cell for each rank and column, red where it takes longer than the median rank and blue where it takes "
        "less; where many share a cell it shows the largest.",
    ),)  # fmt: skip


def _entries(row: RankRow, entries: Sequence[str]) -> tuple[float | None, ...]:
    own = {each.entry: each.seconds for each in row.account}
    return tuple(own.get(entry) for entry in entries)


def _ranks(found: FleetReport) -> tuple[Figure, ...]:
    """A step of each rank; of many ranks those that others waited for longest."""
    order = sorted(found.ranks, key=lambda row: (-row.waited_for_s, row.rank, row.device))[: parts.MOST_BARS]
    shown = sorted(order, key=lambda row: (row.rank, row.device))
    rows: list[Row] = []
    for label, row in zip(labels_of(shown), shown, strict=True):
        for part, seconds in zip(_PARTS, (row.compute_s, row.exposed_communication_s, row.idle_s), strict=True):
            rows.append({"rank": label, "part": part, "seconds": seconds, "text": format_seconds(seconds),
                         "step": format_seconds(row.step_s), "waits": format_seconds(row.waiting_s),
                         "waited": format_seconds(row.waited_for_s)})  # fmt: skip
    if not rows:
        return ()
    spec = parts.stack(
        rows, label="rank", part="part", value="seconds", unit=scales.seconds(row.step_s for row in shown),
        title="step", colours=_PARTS, words=("part",), label_title="rank",
        hover=(("rank", "rank"), ("part", "part"), ("text", "time"), ("step", "step"), ("waits", "waits"),
               ("waited", "others waited for it")),
    )  # fmt: skip
    title = "A step of each rank" if len(shown) == len(found.ranks) else "A step of the ranks that others waited for"
    return (Figure(name="ranks", title=title, spec=spec,
                   words="A bar for each rank: compute, exposed communication and idle time of a step."),)  # fmt: skip


def _skew(found: FleetReport) -> tuple[Figure, ...]:
    """First to last arrival: half of the calls below the first mark, the largest at the second."""
    shown = found.collectives[: parts.MOST_BARS]
    names = parts.unique(parts.name_of(f"{each.collective} {each.group or ''}".rstrip()) for each in shown)
    rows: list[Row] = [
        {"collective": name, "median": each.skew_median_s, "most": each.skew_max_s, "calls": format_exact(each.calls),
         "half": format_seconds(each.skew_median_s), "largest": format_seconds(each.skew_max_s),
         "waiting": format_seconds(each.waiting_s), "last": format_exact(each.last_rank),
         "often": format_percent(each.last_fraction, 0),
         "busbw": "" if each.busbw_bytes_per_s is None else format_bytes_per_s(each.busbw_bytes_per_s)}
        for each, name in zip(shown, names, strict=True)
    ]  # fmt: skip
    if not rows:
        return ()
    unit = scales.seconds(row["most"] for row in rows)
    y = parts.band("collective", names)
    hover = parts.tips(("collective", "collective"), ("calls", "calls"), ("half", "skew, half of the calls below"),
                       ("largest", "largest skew"), ("waiting", "waiting of all ranks"), ("last", "most often last"),
                       ("often", "of the calls"), ("busbw", "busbw"))  # fmt: skip
    x = parts.measure("left", unit.of("arrival skew"))
    spec = parts.spec_of(
        rows, parts.Step(parts.BAR_STEP), transform=[unit.shown("median", "left"), unit.shown("most", "right")],
        layer=[
            {"mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.5, "color": colours.RED},
             "encoding": {"y": y, "x": x, "x2": {"field": "right"}, "tooltip": hover}},
            {"mark": {"type": "point", "filled": True, "size": 80, "opacity": 1, "color": colours.BLUE},
             "encoding": {"y": y, "x": x, "tooltip": hover}},
        ],
    )  # fmt: skip
    return (Figure(name="skew", title="Arrival skew of collectives, median to largest", spec=spec,
                   words="For each collective a point at the median skew between its ranks' arrivals, and a line to "
                   "the largest."),)  # fmt: skip


def _waits(found: FleetReport) -> tuple[Figure, ...]:
    rows: list[Row] = [
        {
            "pair": f"{each.waiting} waits for {each.waited_for}",
            "seconds": each.seconds,
            "calls": format_exact(each.calls),
            "text": format_seconds(each.seconds),
        }
        for each in found.waits[: parts.MOST_BARS // 2]
    ]
    if not rows:
        return ()
    for row, label in zip(rows, parts.unique(row["pair"] for row in rows), strict=True):
        row["pair"] = label
    spec = parts.bars(
        rows, label="pair", value="seconds", unit=scales.seconds(row["seconds"] for row in rows), title="waiting",
        text="text", colour=colours.RED, hover=(("pair", "ranks"), ("text", "time"), ("calls", "collectives")),
    )  # fmt: skip
    return (Figure(name="waits", title="Who waits for whom", spec=spec,
                   words="A bar for the pairs of ranks of which one waits longest for the other."),)  # fmt: skip


def _stages(found: FleetReport) -> tuple[Figure, ...]:
    rows: list[Row] = [
        {"stage": f"{each.stage}", "part": part, "seconds": seconds, "text": format_seconds(seconds),
         "ranks": format_exact(len(each.ranks))}
        for each in found.stages[: parts.MOST_BARS]
        for part, seconds in zip(_PARTS, (each.compute_s, each.exposed_communication_s, each.idle_s), strict=True)
    ]  # fmt: skip
    if len(found.stages) < 2:
        return ()
    spec = parts.stack(
        rows, label="stage", part="part", value="seconds", unit=scales.seconds(row["seconds"] for row in rows),
        title="step", colours=_PARTS, words=("part",), label_title="stage",
        hover=(("stage", "stage"), ("ranks", "ranks"), ("part", "part"), ("text", "time")),
    )  # fmt: skip
    return (
        Figure(
            name="stages",
            title="Stages of the pipeline",
            spec=spec,
            words="A bar for each stage of the pipeline: compute, exposed communication and idle time.",
        ),
    )
