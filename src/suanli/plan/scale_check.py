"""How well `scale` projects: the largest size of each published series, fitted on the smaller ones.

Nothing of a series goes into its own projection: the usual slope and the width of intervals come from the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from suanli.catalog.scaling import PublishedSeries, projectable, slope_of
from suanli.plan.scale import project

COVERED = 0.9


@dataclass(frozen=True)
class Projection:
    """One series' largest size, projected and measured: rates of one GPU over that at the smallest size."""

    series: PublishedSeries
    gpus: int
    measured: float
    projected: float
    unit: float
    width: float
    last: float

    @property
    def error(self) -> float:
        """|projected − measured| over measured."""
        return abs(self.projected / self.measured - 1)

    @property
    def constant_error(self) -> float:
        """The same of "the last size's rate stays"."""
        return abs(self.last / self.measured - 1)

    @property
    def units(self) -> float:
        """|log error| in units of its own."""
        return abs(math.log(self.projected / self.measured)) / self.unit

    @property
    def inside(self) -> bool:
        """Whether the measured rate lies in the 90 % interval."""
        return self.units <= self.width


def projections(series: Sequence[PublishedSeries]) -> tuple[Projection, ...]:
    """Every series that can be projected, each with what the others say is usual."""
    usable = projectable(tuple(series))
    bare = [_one(each, slope_of(tuple(other for other in usable if other is not each))) for each in usable]
    return tuple(
        Projection(*_parts(each), width=width_of([other for other in bare if other is not each]), last=each.last)
        for each in bare
    )


def _one(series: PublishedSeries, slope: float) -> Projection:
    *before, (gpus, measured) = series.points
    projected, unit = project(before, gpus, slope)
    return Projection(series, gpus, measured, projected, unit, math.inf, before[-1][1])


def _parts(each: Projection) -> tuple[PublishedSeries, int, float, float, float]:
    return each.series, each.gpus, each.measured, each.projected, each.unit


def width_of(others: Sequence[Projection]) -> float:
    """Units that hold nine of ten of one more series (split conformal: Vovk 2005; the (n + 1)·0.9-th smallest)."""
    units = sorted(each.units for each in others)
    return units[min(len(units), math.ceil((len(units) + 1) * COVERED)) - 1]


@dataclass(frozen=True)
class Agreement:
    """Errors over many series."""

    n: int
    median: float
    ninetieth: float
    constant_median: float
    coverage: float


def agreement(found: Sequence[Projection]) -> Agreement:
    """Median and 90th percentile of the errors, beside the rule, and the part inside the interval."""
    errors = sorted(each.error for each in found)
    return Agreement(
        n=len(errors), median=median(errors), ninetieth=errors[math.ceil(COVERED * len(errors)) - 1],
        constant_median=median(each.constant_error for each in found),
        coverage=sum(each.inside for each in found) / len(found),
    )  # fmt: skip
