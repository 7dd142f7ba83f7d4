"""Figures of `goodput`: where wall time goes, the checkpoint interval, what would help, when it is done."""

from __future__ import annotations

from collections.abc import Sequence

from suanli.nouns.goodput import Goodput, Loss, MeasuredGoodput
from suanli.nouns.result import Result
from suanli.report.figures import colours, parts, scales
from suanli.report.figures.figure import Figure, Row
from suanli.report.goodput_pages import TIMES
from suanli.units import format_exact, format_percent, format_seconds

_USEFUL, _WALL = "useful", "wall time"
_OF_LOSS = {"checkpoint": colours.SKY, "replay": colours.RED, "restart": colours.PURPLE, "spare wait": colours.ORANGE,
            "stragglers": colours.OLIVE, "maintenance": colours.BROWN, "unexplained": colours.GREY}  # fmt: skip
_RULES = {"exact": "best", "given": "given", "young": "Young", "daly": "Daly"}


def goodput_figures(result: Result) -> tuple[Figure, ...]:
    """For a plan and for a log of events."""
    found = result.result
    if isinstance(found, MeasuredGoodput):
        return (_account(found.account), *_downtime(found))
    return (_account(found.account), *_curve(found), *_levers(found), *_finish(found), *_causes(found))


def _account(account: Sequence[Loss]) -> Figure:
    """Wall time down to what was useful."""
    why = {each.entry: each.why for each in account}
    losses = [(each.entry, each.fraction) for each in account if each.entry != _USEFUL and each.fraction]
    useful = [(each.entry, each.fraction) for each in account if each.entry == _USEFUL]
    whole = sum(value for _, value in losses + useful)
    rows: list[Row] = [{"part": _WALL, "value": whole, "begin": 0.0, "end": whole},
            *parts.running(losses + useful, down_from=whole)]  # fmt: skip
    for row in rows:
        row |= {"text": format_percent(row["value"]), "why": why.get(row["part"], "")}
    paint = {row["part"]: _OF_LOSS.get(row["part"], colours.GREY) for row in rows}
    spec = parts.waterfall(
        rows, label="part", unit=scales.PERCENT, title="of wall time", words=("part",),
        colours=paint | {_WALL: colours.BLUE, _USEFUL: colours.USEFUL},
        hover=(("part", "entry"), ("text", "of wall time"), ("why", "why")),
    )  # fmt: skip
    return Figure(
        name="wall_time",
        title="Wall time",
        spec=spec,
        words="Bars from the wall time down to its useful part, each where the one before ended.",
    )


def _curve(found: Goodput) -> tuple[Figure, ...]:
    """What is lost over the interval between checkpoints; the rules' choices on it."""
    if not found.curve:
        return ()
    rows: list[Row] = [{"interval_s": each.interval_s, "lost": each.lost, "text": format_percent(each.lost),
             "interval": format_seconds(each.interval_s)} for each in found.curve]  # fmt: skip
    ends = found.curve[0].interval_s, found.curve[-1].interval_s
    known = {each.rule: each for each in found.intervals if each.interval_s is not None}
    marks: list[Row] = [
        {"interval_s": each.interval_s, "lost": each.lost, "text": format_percent(each.lost), "rule": name,
         "interval": format_seconds(each.interval_s)}
        for rule, name in _RULES.items()
        if (each := known.get(rule)) is not None and each.interval_s and ends[0] <= each.interval_s <= ends[1]
    ]  # fmt: skip
    marks.reverse()  # the best is drawn last
    shown = [scales.PERCENT.shown("lost", "y")]
    times = [seconds for seconds, _ in TIMES if ends[0] <= seconds <= ends[1]]
    x = parts.measure("interval_s", "work between checkpoints", log=True, zero=False, scale={"nice": False},
                      axis={"labelExpr": parts.SECONDS} | ({"values": times} if times else {}))  # fmt: skip
    y = parts.measure("y", scales.PERCENT.of("lost"))
    hover = (("interval", "interval"), ("text", "lost"))
    paint = {
        name: colour
        for name, colour in (
            ("best", colours.GREEN),
            ("given", colours.PURPLE),
            ("Young", colours.ORANGE),
            ("Daly", colours.SKY),
        )
        if any(row["rule"] == name for row in marks)
    }
    line = {
        "mark": "line",
        "encoding": {"x": x, "y": y, "color": {"value": colours.BLUE}, "tooltip": parts.tips(*hover)},
    }
    dots = {"data": {"values": marks}, "transform": shown} | parts.points(
        x, y, parts.coloured("rule", paint), (("rule", "rule"), *hover), size=110
    )
    spec = parts.spec_of(rows, parts.HEIGHT, ("rule",), transform=shown, layer=[line, *([dots] if marks else [])])
    return (Figure(
        name="interval", title="Wall time lost over the checkpoint interval", spec=spec,
        words="A curve of the wall time lost over the work between two checkpoints, with the best interval marked.",
    ),)  # fmt: skip


def _levers(found: Goodput) -> tuple[Figure, ...]:
    if not found.levers:
        return ()
    rows: list[Row] = [{"change": each.change, "gain": each.gain, "text": f"{each.gain:+.2%}".replace("%", " points"),
             "goodput": format_percent(each.goodput)} for each in found.levers[: parts.MOST_BARS]]  # fmt: skip
    spec = parts.bars(
        rows, label="change", value="gain", unit=scales.PERCENT, title="more goodput, points", text="text",
        colour=colours.GREEN, words=("change",),
        hover=(("change", "change"), ("text", "gain"), ("goodput", "goodput")),
    )  # fmt: skip
    return (Figure(name="levers", title="What a change would bring", spec=spec,
                   words="A bar for the goodput that each change alone would add."),)  # fmt: skip


def _finish(found: Goodput) -> tuple[Figure, ...]:
    """Of simulated runs, how many are done by when."""
    if found.finish is None:
        return ()
    end = found.finish
    rows: list[Row] = [
        {"part_of_runs": int(name[1:]), "days": days, "text": f"{days:,.2f} days", "share": f"{name[1:]} %"}
        for name, days in end.percentiles.items()
    ]
    x = parts.measure("days", "days", zero=False, scale={"padding": 12, "nice": True})
    y = parts.measure("part_of_runs", "of runs are done [%]")
    hover = (("share", "of runs by"), ("text", "wall time"))
    colour = parts.plain_colour(colours.BLUE)
    line = {"mark": {"type": "line"}, "encoding": {"x": x, "y": y, "color": colour}}
    spec = parts.spec_of(rows, parts.HEIGHT, layer=[line, parts.points(x, y, colour, hover)])
    return (Figure(name="finish", title="When the work is done", spec=spec,
                   words="The part of simulated runs that is done, over days of wall time."),)  # fmt: skip


def _causes(found: Goodput) -> tuple[Figure, ...]:
    if not found.causes:
        return ()
    rows: list[Row] = [
        {
            "cause": parts.name_of(each.cause),
            "count": each.count,
            "share": format_percent(each.fraction, 1),
            "text": f"{format_exact(each.count)}, {format_percent(each.fraction, 1)}",
        }
        for each in found.causes
    ]
    rows = parts.top(rows, "count", label="cause")
    for row in rows:
        row.setdefault("text", format_exact(row["count"]))
    spec = parts.bars(
        rows, label="cause", value="count", unit=scales.Unit("", 1), title="interrupts seen", text="text",
        colour=colours.RED, words=("cause",), hover=(("cause", "cause"), ("text", "seen")),
    )  # fmt: skip
    return (Figure(name="causes", title="Causes of interrupts", spec=spec,
                   words="A bar for how often each cause interrupted."),)  # fmt: skip


def _downtime(found: MeasuredGoodput) -> tuple[Figure, ...]:
    """Down and replayed, by cause."""
    shown = found.causes[: parts.MOST_BARS]
    rows: list[Row] = [
        {"cause": label, "what": what, "seconds": seconds, "text": format_seconds(seconds),
         "count": format_exact(each.count), "share": format_percent(each.fraction)}
        for each, label in zip(shown, parts.unique(parts.name_of(each.cause) for each in shown), strict=True)
        for what, seconds in (("down", each.seconds), ("replayed", each.replay_s)) if seconds
    ]  # fmt: skip
    if not rows:
        return ()
    spec = parts.stack(
        rows, label="cause", part="what", value="seconds", unit=scales.seconds(row["seconds"] for row in rows),
        title="lost", colours={"down": colours.PURPLE, "replayed": colours.RED}, words=("what",),
        hover=(("cause", "cause"), ("what", "what"), ("text", "time"), ("count", "interrupts"),
               ("share", "of wall time")),
    )  # fmt: skip
    return (Figure(name="downtime", title="Badput by cause of interrupt", spec=spec,
                   words="A bar for each cause of interrupts: the time down, and the time replayed."),)  # fmt: skip
