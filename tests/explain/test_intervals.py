"""Unions against counting every instant."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from suanli.explain.intervals import covered_ns, union

INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=25)


@given(INTERVALS)
def test_the_union_covers_each_instant_once(rows: list[tuple[int, int]]) -> None:
    start = np.array([each[0] for each in rows], dtype=np.int64)
    end = start + np.array([each[1] for each in rows], dtype=np.int64)
    instants = {instant for first, length in rows for instant in range(first, first + length)}
    assert covered_ns(start, end) == len(instants)
    starts, ends = union(start, end)
    assert (starts[1:] > ends[:-1]).all()
    assert {instant for pair in zip(starts, ends, strict=True) for instant in range(*pair)} == instants
