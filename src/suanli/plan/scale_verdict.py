"""The section `scaling` of `verify`: the largest size of every published series, projected from the smaller ones."""

from __future__ import annotations

from functools import cache
from statistics import fmean

from suanli.catalog.scaling import published_series
from suanli.nouns.claim import PREDICTED, ClaimResult, SourceSummary, Verification
from suanli.plan.scale_check import Projection, agreement, projections

SECTION = "scaling"
_WHY = "a series' own largest size is never fitted; what is usual comes from the others"


@cache
def verify_scaling() -> Verification:
    """Rates of one GPU at the largest size, as parts of those at the smallest: projected and measured."""
    found = projections(published_series())
    return Verification(tuple(map(_claim, found)), (_summary(found),))


def _claim(found: Projection) -> ClaimResult:
    return ClaimResult(
        id=f"scaling-{found.series.name[:60]}-{found.gpus}", source=found.series.name[:60], section=SECTION,
        statement=f"rate of a GPU, {found.series.points[0][0]:,} to {found.gpus:,} GPUs", expected=found.measured,
        got=found.projected, error=found.projected - found.measured, status=PREDICTED, unit="fraction",
        quantity="linear_ratio", why=f"{'inside' if found.inside else 'outside'} its 90 % interval",
    )  # fmt: skip


def _summary(found: tuple[Projection, ...]) -> SourceSummary:
    over = agreement(found)
    worst = max(found, key=lambda each: each.error)
    return SourceSummary(
        source=f"{over.n} series of four sizes or more", section=SECTION, n=over.n,
        within=sum(each.inside for each in found), failed=0, median_error=None, worst=worst.series.name[:60],
        worst_error=worst.error, mape_fitted=None, mape_held_out=fmean(each.error for each in found),
        why_not_fitted=_WHY, median_held_out=over.median, ninetieth_held_out=over.ninetieth,
        median_constant=over.constant_median, coverage=over.coverage, fold="series",
    )  # fmt: skip
