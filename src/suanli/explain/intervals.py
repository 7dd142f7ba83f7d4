"""Unions and lengths of half-open intervals of whole nanoseconds, exact, as sweeps over sorted columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def union(start_ns: Array, end_ns: Array) -> tuple[Array, Array]:
    """Disjoint intervals [start, end) in order that cover the same instants; empty intervals vanish."""
    kept = end_ns > start_ns
    start_ns, end_ns = start_ns[kept], end_ns[kept]
    if not len(start_ns):
        return start_ns, end_ns
    order = np.argsort(start_ns, kind="stable")
    start_ns, end_ns = start_ns[order], np.maximum.accumulate(end_ns[order])
    first = np.concatenate(([True], start_ns[1:] > end_ns[:-1]))  # touching intervals become one
    last = np.concatenate((first[1:], [True]))
    return start_ns[first], end_ns[last]


def covered_ns(start_ns: Array, end_ns: Array) -> int:
    """Nanoseconds that at least one of the intervals covers."""
    start_ns, end_ns = union(start_ns, end_ns)
    return int((end_ns - start_ns).sum())


def gaps(start_ns: Array, end_ns: Array) -> tuple[Array, Array]:
    """The intervals between the first start and the last end that nothing covers, in order.

    Empty intervals cover nothing, and yet may be the first or the last.
    """
    if not len(start_ns):
        return start_ns, end_ns
    starts, ends = union(start_ns, end_ns)
    free_from, free_to = np.append(start_ns.min(), ends), np.append(starts, end_ns.max())
    free = free_to > free_from
    return free_from[free], free_to[free]


class Cover:
    """The union of intervals, asked how much of it lies between two instants."""

    def __init__(self, start_ns: Array, end_ns: Array) -> None:
        self.start, self.end = union(np.asarray(start_ns, dtype=np.int64), np.asarray(end_ns, dtype=np.int64))
        self.before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(self.end - self.start)))

    def up_to(self, at_ns: Array) -> Array:
        """Covered nanoseconds before each instant."""
        place = np.searchsorted(self.start, at_ns, side="right")
        if not len(self.start):
            return np.zeros(len(place), dtype=np.int64)
        running = np.maximum(self.end[place - 1] - at_ns, 0) * (place > 0)
        covered: Array = self.before[place] - running
        return covered

    def between(self, start_ns: Array, end_ns: Array) -> Array:
        """Covered nanoseconds of each interval; an interval that ends before it starts has none."""
        end_ns = np.maximum(start_ns, end_ns)
        covered: Array = self.up_to(end_ns) - self.up_to(start_ns)
        return covered
