"""Rows that are alike in several columns, told apart fast: columns are packed into one, two at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def alike(*columns: Array) -> tuple[Array, Array]:
    """The first row of each group of rows that are equal in every column, and the group of each row.

    Columns hold whole numbers of any sign, all of one length. Groups are in the order of their values.
    """
    packed = _ranks(columns[0])
    for column in columns[1:]:
        ranks = _ranks(column)
        width = int(ranks.max(initial=0)) + 1
        packed = _ranks(packed * width + ranks)
    _, first, group = np.unique(packed, return_index=True, return_inverse=True)
    return first, group.reshape(-1)


def _ranks(column: Array) -> Array:
    """Place of each value among the different ones, int64: products of two such never overflow."""
    values = np.asarray(column, dtype=np.int64)
    low = int(values.min(initial=0))
    if int(values.max(initial=0)) - low <= 4 * len(values) + 16:
        used = np.zeros(int(values.max(initial=0)) - low + 1, dtype=bool)  # no sorting where values lie close
        used[values - low] = True
        ranks: Array = (np.cumsum(used) - 1)[values - low]
        return ranks
    _, place = np.unique(values, return_inverse=True)
    return place.reshape(-1)
