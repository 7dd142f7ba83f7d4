"""The report of `goodput`."""

from __future__ import annotations

import math

from suanli.nouns.goodput import Goodput, Loss, MeasuredGoodput, Rate
from suanli.nouns.result import Result
from suanli.report.chart import Chart, Curve
from suanli.report.common import NOT_GIVEN, closing, exact, whole
from suanli.report.document import Document, Facts, Table
from suanli.units import DAY, HOUR, MINUTE, format_percent, format_seconds


def goodput_document(result: Result) -> Document:
    """Useful time, where the rest goes, the best interval, what a change would bring."""
    if isinstance(result.result, MeasuredGoodput):
        return _measured(result)
    found: Goodput = result.result
    job = "" if found.gpus is None else f"{found.gpus:,} GPU{'s' if found.gpus > 1 else ''}: "
    every = "" if found.interval_s is None else f", a checkpoint every {format_seconds(found.interval_s)}"
    return Document(
        f"{job}goodput {format_percent(found.goodput)}{every}",
        (
            _reliability(found),
            _account("Wall time", found.account),
            _intervals(found),
            _chart(found),
            _first_order(found),
            _finish(found),
            Table(
                "What a change would bring", ("change", "goodput", "gain"),
                tuple((each.change, format_percent(each.goodput), f"{each.gain:+.2%}".replace("%", " points"))
                      for each in found.levers),
            ),
            Table(
                "Causes of interrupts", ("cause", "seen", ""),
                tuple((each.cause, exact(each.count), format_percent(each.fraction, 1)) for each in found.causes),
            ),
            *closing(result),
        ),
    )  # fmt: skip


def _reliability(found: Goodput) -> Facts:
    rows = [
        _mtti(found.rate),
        ("MTTR", format_seconds(found.mttr_s), "from an interrupt until work goes on"),
        ("availability", format_percent(found.availability), "MTTI / (MTTI + MTTR)"),
        ("goodput (ETTR)", format_percent(found.goodput), _between(found)),
    ]
    if found.gpus is not None:
        rows.insert(1, ("MTBF of a GPU", f"{whole(found.rate.gpu_hours)} h", MTBF_WHAT))
    if found.useful_mfu is not None:
        rows.append(("goodput × MFU", format_percent(found.useful_mfu), "useful model FLOPs over peak, of wall time"))
    return Facts("Reliability", tuple(rows))


def _mtti(rate: Rate) -> tuple[str, str, str]:
    if rate.low_s is None or rate.high_s is None:
        return "MTTI", format_seconds(rate.mtti_s), rate.source
    return "MTTI", format_seconds(rate.mtti_s), f"90 %: {format_seconds(rate.low_s)} to {format_seconds(rate.high_s)}"


def _between(found: Goodput) -> str:
    if found.goodput_interval is None:
        return "useful part of wall time"
    low, high = found.goodput_interval
    return f"useful part of wall time; 90 % by the failures seen: {format_percent(low)} to {format_percent(high)}"


def _account(title: str, account: tuple[Loss, ...]) -> Table:
    rows = tuple((entry.entry, format_percent(entry.fraction), entry.why) for entry in account)
    total = ("total", format_percent(sum(entry.fraction for entry in account)), "")
    return Table(title, ("entry", "of wall time", ""), (*rows, total), right=(False, True, False))


def _intervals(found: Goodput) -> Table:
    rows = tuple(
        (
            each.rule,
            NOT_GIVEN if each.interval_s is None else format_seconds(each.interval_s),
            format_percent(each.lost),
        )
        for each in found.intervals
    )
    return Table("Checkpoint interval by rule", ("rule", "interval", "wall time lost"), rows)


MTBF_WHAT = "GPU-hours of one interrupt: a GPU with its share of the rest"
MOST_TICKS = 5
STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # between two marks of what is lost
TIMES = (
    *((each, f"{each} s") for each in (1, 2, 5, 10, 20)),
    *((each * MINUTE, f"{each} min") for each in (1, 2, 5, 10, 20)),
    *((each * HOUR, f"{each} h") for each in (1, 2, 5, 10)), *((each * DAY, f"{each} d") for each in (1, 2, 5, 10, 20)),
)  # fmt: skip


def _chart(found: Goodput) -> Chart:
    """Wall time lost over the interval between checkpoints, the best marked."""
    points = tuple((each.interval_s, each.lost) for each in found.curve)
    known = {each.rule: each for each in found.intervals}
    best = [(each.interval_s, each.lost) for name in ("exact", "given")
            if (each := known.get(name)) is not None and each.interval_s is not None and points]  # fmt: skip
    marks = (Curve("best", "●", "bold green", tuple(best[:1])), Curve("given", "○", "magenta", tuple(best[1:])))
    if not points:
        return Chart("", (), (), ((0.0, ""),), "", "")
    most = max(lost for _, lost in points)
    step = next((each for each in STEPS if most / each < MOST_TICKS), STEPS[-1])
    marked = [step * each for each in range(math.floor(most / step) + 1)]
    times = tuple(each for each in TIMES if points[0][0] <= each[0] <= points[-1][0])
    ends = times or ((points[0][0], format_seconds(points[0][0])),)
    curves = (Curve("lost", "─", "cyan", points, line=True), *marks)
    percents = tuple((each, format_percent(each, 0 if step >= STEPS[3] else 1)) for each in marked)
    return Chart(
        "Wall time lost over the checkpoint interval", curves, ends, percents, "work between checkpoints", "lost",
        log_y=False,
    )  # fmt: skip


def _first_order(found: Goodput) -> Facts:
    order = found.first_order
    names = {"checkpoint": "C/τ", "replay": "τ/2M", "restart": "R/M"}
    rows = tuple((name, format_percent(order[key]), key) for key, name in names.items())
    total = ("together", format_percent(sum(order.values())), "of useful time, not of wall time")
    return Facts("First order, at Young's interval", (*rows, total))


def _finish(found: Goodput) -> Facts:
    if found.finish is None:
        return Facts("Finish", ())
    end = found.finish
    rows = [("work", f"{end.work_days:,.2f} days", "useful time"), ("expected", f"{end.mean_days:,.2f} days", "")]
    rows += [(f"{name[1:]} % of runs by", f"{days:,.2f} days", "") for name, days in end.percentiles.items()]
    return Facts(f"Finish, {end.runs:,} simulated runs, seed {end.seed}", tuple(rows))


def _measured(result: Result) -> Document:
    found: MeasuredGoodput = result.result
    rows = [
        ("wall time", f"{found.wall_s / DAY:,.3f} days", ""),
        ("goodput (ETTR)", format_percent(found.goodput), "training over wall time"),
        ("interrupts", exact(found.interrupts), ""),
    ]
    if found.rate is not None and found.mttr_s is not None and found.availability is not None:
        rows += [
            _mtti(found.rate),
            (
                "MTBF of a GPU" if found.gpus else "MTBF",
                f"{found.rate.gpu_hours:,.2f} h",
                MTBF_WHAT if found.gpus else "of the job (--gpus N gives that of a GPU)",
            ),
            ("MTTR", format_seconds(found.mttr_s), "mean length of a restart"),
            ("availability", format_percent(found.availability), "MTTI / (MTTI + MTTR)"),
        ]
    else:
        rows.append(("MTTI", NOT_GIVEN, found.reasons["rate"]))
    causes = tuple(
        (
            each.cause,
            exact(each.count),
            format_seconds(each.seconds),
            format_seconds(each.replay_s),
            format_percent(each.fraction),
        )
        for each in found.causes
    )
    return Document(
        f"measured goodput {format_percent(found.goodput)} of {found.wall_s / DAY:,.3f} days",
        (
            Facts("Reliability", tuple(rows)),
            _account("Wall time", found.account),
            Table("Badput by cause of interrupt", ("cause", "interrupts", "down", "replayed", "of wall time"), causes),
            *closing(result),
        ),
    )
