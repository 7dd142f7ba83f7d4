"""Groups of rows alike in several columns, against a dictionary of tuples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.explain.grouping import alike

VALUES = st.one_of(st.integers(-3, 3), st.sampled_from([-(2**62), 2**62, 10**15]))


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=20))
def test_rows_are_together_exactly_when_equal(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[i] for row in rows], dtype=np.int64) for i in range(3)]
    first, group = alike(*columns)
    together: dict[tuple[int, int, int], set[int]] = {}
    for row, at in zip(rows, group.tolist(), strict=True):
        together.setdefault(row, set()).add(at)
    assert all(len(groups) == 1 for groups in together.values())
    assert len(first) == len(together)
    assert [rows.index(rows[at]) for at in first] == first.tolist()  # the first of each group
    assert group[first].tolist() == list(range(len(first)))


@pytest.mark.parametrize("kind", [np.int16, np.uint8, bool, np.int32])
def test_any_whole_numbers(kind: type) -> None:
    first, group = alike(np.array([1, 0, 1, 0], dtype=kind), np.array([0, 0, 0, 1], dtype=kind))
    assert (len(first), group[0], len(set(group.tolist()))) == (3, group[2], 3)


def test_no_rows() -> None:
    first, group = alike(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert (len(first), len(group)) == (0, 0)
