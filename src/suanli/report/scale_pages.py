"""The report of `scale`."""

from __future__ import annotations

from suanli.nouns.result import Result
from suanli.nouns.scaling import METRICS, Fit, Pair, Scaling
from suanli.report.common import NOT_GIVEN, closing, exact
from suanli.report.document import Document, Lines, Table
from suanli.units import format_percent

BAR = 40  # characters of a full bar


def scale_document(result: Result) -> Document:
    """Sizes beside the ideal, pairs in every form, the laws, the projection, what to know."""
    found: Scaling = result.result
    first, last = found.sizes[0], found.sizes[-1]
    return Document(
        f"{format_percent(last.ratio)} of linear from {first.gpus:,} to {last.gpus:,} GPUs [{found.by}, {found.kind}]",
        (
            _sizes(found),
            Table(
                "Linear speed-up ratio in each form", ("from", "to", "by", "ratio", "by the last digits", "forms"),
                tuple(row for pair in found.pairs for row in _pair(pair)), (True, True, False, True, True, False),
            ),
            Table(
                "Laws", ("law", "parameters, 90 %", "fits within", "held out", "most GPUs", ""),
                tuple(_fit(fit) for fit in found.fits), (False, False, True, True, True, False),
            ),
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
    """Each size with a bar of its ratio: a full bar is linear."""
    unit = METRICS[found.by].unit
    rows = tuple(
        (
            exact(row.gpus),
            NOT_GIVEN if row.global_batch is None else exact(row.global_batch),
            f"{row.value:,.6g}",
            format_percent(row.ratio),
            f"{row.speedup:,.2f}",
            "█" * round(min(row.ratio, 1.0) * BAR) + ("+" if row.ratio > 1 else ""),
        )
        for row in found.sizes
    )
    columns = ("GPUs", "batch", f"{found.by} [{unit}]", "of linear", "speed-up", "0 % to 100 %".ljust(BAR))
    return Table("Sizes", columns, rows, (True, True, True, True, True, False))


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
