"""Unions, gaps and covers against counting every instant."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from suanli.explain.intervals import Cover, covered_ns, gaps, union

INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=25)


def arrays(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    start = np.array([each[0] for each in rows], dtype=np.int64)
    return start, start + np.array([each[1] for each in rows], dtype=np.int64)


@given(INTERVALS)
def test_the_union_covers_each_instant_once(rows: list[tuple[int, int]]) -> None:
    start, end = arrays(rows)
    instants = {instant for first, length in rows for instant in range(first, first + length)}
    assert covered_ns(start, end) == len(instants)
    starts, ends = union(start, end)
    assert (starts[1:] > ends[:-1]).all()
    assert {instant for pair in zip(starts, ends, strict=True) for instant in range(*pair)} == instants


@given(INTERVALS)
def test_gaps_are_what_the_union_leaves_between_first_and_last(rows: list[tuple[int, int]]) -> None:
    start, end = arrays(rows)
    instants = {instant for first, length in rows for instant in range(first, first + length)}
    free = {t for pair in zip(*gaps(start, end), strict=True) for t in range(*pair)}
    span = range(min(start, default=0), max(end, default=0))  # empty ones mark a first or last instant too
    assert free == set(span) - instants


@given(INTERVALS, st.integers(-5, 90), st.integers(-5, 90))
def test_a_cover_knows_how_much_lies_between_two_instants(rows: list[tuple[int, int]], one: int, other: int) -> None:
    cover = Cover(*arrays(rows))
    instants = {instant for first, length in rows for instant in range(first, first + length)}
    found = cover.between(np.array([one]), np.array([other]))
    assert found.tolist() == [len(instants & set(range(one, other)))]
