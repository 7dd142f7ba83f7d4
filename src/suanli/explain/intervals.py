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
