"""Which combinations of axes occur in a grid: what depends on some only is worked out once for each, and looked up."""

from __future__ import annotations

from typing import Any

from suanli.nouns.grid import Grid

Array = Any
SHARED = ("tp", "cp", "ep", "etp", "micro_batch", "sp")  # what one rank's work on one block depends on
DENSE = 16  # codes below this many times their number are counted in a table, larger ones sorted


def unique_codes(code: Array, size: int) -> tuple[Array, Array]:
    """Places of one of each code (all below `size`), and for each place which of them it is."""
    import numpy as np  # noqa: PLC0415

    if size > DENSE * max(len(code), 1 << 12):
        _, first, back = np.unique(code, return_index=True, return_inverse=True)
        return first, back
    present = np.zeros(size, dtype=bool)
    present[code] = True
    back = (np.cumsum(present) - 1)[code]
    first = np.empty(int(present.sum()), dtype=np.int64)
    first[back] = np.arange(len(code))
    return first, back


def unique_rows(columns: list[Array]) -> tuple[Array, Array]:
    """Places of one of each combination of columns, and for each row which combination it is."""
    import numpy as np  # noqa: PLC0415

    code, size = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        code, size = code * len(values) + place, size * len(values)
        if size > 1 << 40:  # keep the numbers small: what is distinct stays distinct
            values, code = np.unique(code, return_inverse=True)
            size = len(values)
    return unique_codes(code, size)


def columns_of(grid: Grid, names: tuple[str, ...]) -> list[Array]:
    """Some columns of a grid."""
    return [getattr(grid, name) for name in names]


class Keys:
    """Which combination of some axes each row of an enumeration has: `first` of each, and `of` each row."""

    def __init__(self, rows: Grid, names: tuple[str, ...]) -> None:
        self.first, self.of = unique_rows(columns_of(rows, names))

    def with_more(self, row: Array, *columns: Array) -> tuple[Array, Array]:
        """The combinations of these axes and columns of small whole numbers (vpp, layers recomputed) among layouts: a
        place of each, and which each layout has.
        """
        code, size = self.of[row], len(self.first)
        for column in columns:
            most = int(column.max(initial=0)) + 1
            code, size = code * most + column.astype("int64"), size * most
        return unique_codes(code, size)
