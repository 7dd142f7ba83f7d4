"""Medians by group in whole numbers, and when a figure stands out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suanli.explain.intervals import Array

NORMAL = 1.4826  # of a normal distribution: its deviation over its MAD
SCALES = 5.0  # deviations above the median from which a figure stands out
LEAST_FRACTION = 0.05  # above the median, from which it matters
FEWEST = 3  # figures a median needs to be one of others
RULE = (
    f"slower than the median of the ranks beside it by {SCALES:g} × {NORMAL} × MAD and by {LEAST_FRACTION:.0%} of it, "
    f"{FEWEST} ranks or more"
)


def lower_medians(group: Array, values: Array, count: int) -> Array:
    """int64 [count]: of each group 0 … count−1, none empty, the value in the middle, the lower of two: it is one of the
    group, so that a shift of all shifts it by the same, exactly.
    """
    order = np.lexsort((values, group))
    size = np.bincount(group, minlength=count)
    begin = np.cumsum(size) - size
    medians: Array = values[order][begin + (size - 1) // 2]
    return medians


@dataclass(frozen=True, eq=False)
class Spread:
    """A set of figures: median, MAD, and from where one stands out."""

    median: float
    mad: float
    threshold: float


def spread(values: Array) -> Spread | None:
    """Of figures without NaN; None for fewer than three, or a median of 0."""
    if len(values) < FEWEST:
        return None
    median = float(np.median(values))
    if median <= 0:
        return None
    mad = float(np.median(np.abs(values - median)))
    return Spread(median, mad, median + max(SCALES * NORMAL * mad, LEAST_FRACTION * median))
