"""A table that grows by parts is the parts laid end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.readers.traces import growing
from suanli.readers.traces.growing import GrowingTable, constant, is_constant

KINDS = {"start_ns": np.int64, "end_ns": np.int64, "name": np.int32, "kind": np.uint8}


def table(*parts: dict[str, Any]) -> dict[str, list[int]]:
    made = GrowingTable(KINDS)
    for part in parts:
        made.add({name: np.array(values) for name, values in part.items()})
    return {name: column.tolist() for name, column in made.taken().items()}


def test_columns_that_some_parts_have() -> None:
    first = {"start_ns": [1, 2], "end_ns": [3, 4]}
    second = {"start_ns": [5], "end_ns": [6], "name": [7], "kind": [1]}
    assert table(first, second, first) == {
        "start_ns": [1, 2, 5, 1, 2], "end_ns": [3, 4, 6, 3, 4],
        "name": [-1, -1, 7, -1, -1], "kind": [255, 255, 1, 255, 255],
    }  # fmt: skip


def test_rows_that_stay() -> None:
    kept = {"start_ns": [1, 2, 3], "end_ns": [4, 5, 6], "kept": [True, False, True]}
    found = table(kept, kept)
    assert (found["start_ns"], found["end_ns"]) == ([1, 3, 1, 3], [4, 6, 4, 6])


def test_nothing() -> None:
    made = GrowingTable(KINDS).taken()
    assert {name: (len(column), column.dtype) for name, column in made.items()} == {
        name: (0, np.dtype(kind)) for name, kind in KINDS.items()
    }
    made["start_ns"] += 1  # empty, and yet to be written to like the others


def test_a_column_without_values_takes_no_memory() -> None:
    made = GrowingTable(KINDS)
    made.add({"start_ns": np.zeros(10**6, dtype=np.int64), "end_ns": np.ones(10**6, dtype=np.int64)})
    columns = made.taken()
    assert {name for name, column in columns.items() if is_constant(column)} == {"name", "kind"}
    assert not is_constant(columns["start_ns"])
    assert columns["name"].tolist() == [-1] * 10**6
    with pytest.raises(ValueError, match="read-only"):
        columns["name"][0] = 3


def test_a_constant() -> None:
    column = constant(-1, 3, np.uint8)
    assert (column.tolist(), column.dtype, is_constant(column)) == ([255, 255, 255], np.uint8, True)
    assert not is_constant(np.full(3, -1))


@given(st.lists(st.lists(st.integers(-9, 9), max_size=5), max_size=12), st.integers(1, 4))
def test_parts_laid_end_to_end(parts: list[list[int]], first_rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing, "_FIRST_ROWS", first_rows)
        found = table(*({"start_ns": part, "end_ns": part, "name": part} for part in parts))
    laid = [value for part in parts for value in part]
    assert (found["start_ns"], found["name"]) == (laid, laid)
