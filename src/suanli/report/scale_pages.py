"""The report of `scale`."""

from __future__ import annotations

import math

from suanli.nouns.result import Result
from suanli.nouns.scaling import METRICS, Fit, Pair, Scaling
from suanli.report.chart import Chart, Curve
from suanli.report.common import NOT_GIVEN, closing, exact
from suanli.report.document import Document, Lines, Table
from suanli.units import format_percent, format_seconds


def scale_document(result: Result) -> Document:
    """Sizes beside the ideal, pairs in every form, the laws, the projection, what to know."""
    found: Scaling = result.result
    first, last = found.sizes[0], found.sizes[-1]
    return Document(
        f"{format_percent(last.ratio)} of linear from {first.gpus:,} to {last.gpus:,} GPUs [{found.by}, {found.kind}]",
        (
            _sizes(found),
            _chart(found),
            Table(
                "Linear speed-up ratio in each form", ("from", "to", "by", "ratio", "by the last digits", "forms"),
                tuple(row for pair in found.pairs for row in _pair(pair)), (True, True, False, True, True, False),
            ),
            Table(
                "Laws", ("law", "parameters, 90 %", "fits within", "held out", "most GPUs", ""),
                tuple(_fit(fit) for fit in found.fits), (False, False, True, True, True, False),
            ),
            _planned(found),
            Table(
                "Projection", ("GPUs", "ratio", "90 % from", "to", "speed-up"),
                tuple((exact(each.gpus), format_percent(each.ratio), format_percent(each.low),
                       format_percent(each.high), f"{each.speedup:,.2f}") for each in found.projection),
                (True,) * 5,
            ),
            Lines("Warnings", found.warnings),
            Lines("What limits", found.advice),
            Lines("Not given", tuple(f"{name}: {why}" for name, why in found.reasons.items())),
            *closing(result),
        ),
    )  # fmt: skip


def _sizes(found: Scaling) -> Table:
    """Each size beside the smallest."""
    unit = METRICS[found.by].unit
    rows = tuple(
        (
            exact(row.gpus),
            NOT_GIVEN if row.global_batch is None else exact(row.global_batch),
            f"{row.value:,.6g}",
            format_percent(row.ratio),
            f"{row.speedup:,.2f}",
        )
        for row in found.sizes
    )
    columns = ("GPUs", "batch", f"{found.by} [{unit}]", "of linear", "speed-up")
    return Table("Sizes", columns, rows, (True,) * 5)


MOST_TICKS = 8


def _chart(found: Scaling) -> Chart:
    """Speed-up over GPUs, both logarithmic: what was measured and projected beside linear."""
    first = found.sizes[0].gpus
    last = max((found.sizes[-1].gpus, *(each.gpus for each in found.projection)))
    most = last / first
    law = found.fit.law if found.fit else ""
    curves = (
        Curve("linear", "·", "dim", ((first, 1.0), (last, most)), line=True),
        Curve(law, "─", "cyan", tuple((each.gpus, each.speedup) for each in found.curve), line=True),
        Curve("projected", "○", "magenta", tuple((each.gpus, each.speedup) for each in found.projection)),
        Curve("measured", "●", "bold green", tuple((row.gpus, row.speedup) for row in found.sizes)),
    )
    whole = [(each, each.speedup / each.ratio) for each in found.projection]
    ranges = tuple((float(each.gpus), each.low * times, each.high * times) for each, times in whole)
    powers = range(math.floor(math.log2(most)) + 1)
    every = -(-len(powers) // MOST_TICKS)
    gpus = sorted({row.gpus for row in found.sizes} | {each.gpus for each in found.projection})
    return Chart(
        "Speed-up over GPUs, log–log", curves, tuple((each, exact(each)) for each in gpus),
        tuple((2.0**each, f"{2**each:,}×") for each in powers[::every]), "GPUs", "speed-up", ranges=ranges,
        legend="│ 90 %" if ranges else "",
    )  # fmt: skip


def _pair(pair: Pair) -> list[tuple[str, ...]]:
    words = {None: "", True: "agree", False: "DISAGREE"}
    return [
        (
            exact(pair.from_) if not place else "", exact(pair.to) if not place else "", form.by,
            format_percent(form.ratio, 3), f"{format_percent(form.low)} – {format_percent(form.high)}",
            words[pair.agree] if not place else "",
        )
        for place, form in enumerate(pair.forms)
    ]  # fmt: skip


def _planned(found: Scaling) -> Table:
    """What the planner of layouts says of each size, before its factor."""
    sizes = found.planner.sizes if found.planner else ()
    rows = tuple((exact(each.gpus), exact(each.global_batch), format_seconds(each.step_time_s), each.layout)
                 for each in sizes)  # fmt: skip
    return Table("By the planner of layouts", ("GPUs", "batch", "step", "layout"), rows, (True, True, True, False))


def _fit(fit: Fit) -> tuple[str, ...]:
    parts = []
    for each in fit.parameters:
        ends = "" if each.low is None or each.high is None else f" ({each.low:.3g} to {each.high:.3g})"
        parts.append(f"{each.name.replace('_', ' ')} {each.value:.4g}{ends}")
    return (
        fit.law, "; ".join(parts), format_percent(fit.error), NOT_GIVEN if fit.held_out is None
        else format_percent(fit.held_out), NOT_GIVEN if fit.peak_gpus is None else f"{fit.peak_gpus:,.0f}",
        "chosen" if fit.chosen else "",
    )  # fmt: skip
