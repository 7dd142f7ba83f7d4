"""A table that grows by parts: each value is written once, to where it stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_FIRST_ROWS = 4096


class GrowingTable:
    """Columns of given types; -1 in the rows of a part that has nothing of one."""

    def __init__(self, columns: Mapping[str, type[np.generic]]) -> None:
        self._kinds = columns
        self._nothing = {name: np.array(-1).astype(kind) for name, kind in columns.items()}
        self._columns: dict[str, Array] = {}  # those that any part had; longer than the rows there are
        self._rows = self._room = 0

    def add(self, part: Mapping[str, Array]) -> None:
        """Rows behind those there are, of columns of one length, `start_ns` among them. `kept` (bool) says which stay;
        without it all do.
        """
        kept = part.get("kept")
        if kept is not None:
            part = {name: values[kept] for name, values in part.items() if name != "kept"}
        first, last = self._rows, self._rows + len(part["start_ns"])
        self._make_room(last)
        for name in part.keys() - self._columns.keys():
            self._columns[name] = np.empty(self._room, dtype=self._kinds[name])
            self._columns[name][:first] = self._nothing[name]
        for name, column in self._columns.items():
            column[first:last] = part.get(name, self._nothing[name])
        self._rows = last

    def _make_room(self, rows: int) -> None:
        if rows > self._room:
            self._room = max(2 * self._room, rows, _FIRST_ROWS)
            self._resize(self._room)

    def _resize(self, rows: int) -> None:
        for column in self._columns.values():
            column.resize(rows, refcheck=False)  # nobody else has them; room that is not written to takes no memory

    def taken(self) -> dict[str, Array]:
        """All columns, which are given up. One that no part had is -1 throughout and takes no memory (`constant`)."""
        self._resize(self._rows)
        columns, self._columns = self._columns, {}
        if not self._rows:
            return {name: np.empty(0, dtype=kind) for name, kind in self._kinds.items()}
        return {name: columns.get(name, constant(-1, self._rows, kind)) for name, kind in self._kinds.items()}


def constant(value: int, rows: int, kind: type[np.generic]) -> Array:
    """A column of one value, not to be written to."""
    return np.broadcast_to(np.array(value).astype(kind), rows)


def is_constant(column: Array) -> bool:
    """Whether it is a column that `constant` made."""
    return column.strides == (0,)
