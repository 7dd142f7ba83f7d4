"""Owners of instants against looking at every instant."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.explain.sweep import Pieces, cut, new_ns, owned_ns, shared_ns

ROWS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(-1, 3)), max_size=20)
Row = tuple[int, int, int]


def columns(rows: list[Row]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = sorted(rows, key=lambda row: (row[0], row[0] + row[1]))
    start = np.array([row[0] for row in rows], dtype=np.int64)
    return start, start + np.array([row[1] for row in rows], dtype=np.int64), np.array([row[2] for row in rows])


def by_instant(start: np.ndarray, end: np.ndarray, rank: np.ndarray) -> list[int]:
    """Each instant belongs to the running row of the lowest rank that stands first."""
    owned = [0] * len(start)
    for instant in range(int(end.max(initial=0))):
        running = [k for k in range(len(start)) if start[k] <= instant < end[k] and rank[k] >= 0]
        if running:
            owned[min(running, key=lambda k: (rank[k], k))] += 1
    return owned


@given(ROWS)
def test_every_instant_has_the_owner_of_a_sweep_by_hand(rows: list[Row]) -> None:
    start, end, rank = columns(rows)
    assert owned_ns(start, end, rank).tolist() == by_instant(start, end, rank)


@given(ROWS, st.lists(st.integers(0, 70), min_size=2, max_size=6))
def test_cutting_moves_no_time_and_puts_each_piece_into_its_period(rows: list[Row], borders: list[int]) -> None:
    start, end, _ = columns(rows)
    border = np.array(sorted(borders), dtype=np.int64)
    pieces = cut(np.arange(len(start)), start, end, border)
    lengths = np.bincount(pieces.row, weights=pieces.end - pieces.start, minlength=len(start))
    assert lengths.tolist() == (end - start).tolist()
    assert (np.diff(pieces.start) >= 0).all()
    inside = pieces.period >= 0
    assert (pieces.start[inside] >= border[pieces.period[inside]]).all()
    assert (pieces.end[inside] <= border[pieces.period[inside] + 1]).all()
    outside = ~inside & (pieces.end > pieces.start)
    assert ((pieces.end[outside] <= border[0]) | (pieces.start[outside] >= border[-1])).all()


@given(ROWS, st.lists(st.integers(0, 70), min_size=2, max_size=5))
def test_periods_own_what_lies_between_their_borders(rows: list[Row], borders: list[int]) -> None:
    start, end, _ = columns(rows)
    border = np.array(sorted(borders), dtype=np.int64)
    pieces = cut(np.arange(len(start)), start, end, border)
    owned = pieces.total(owned_ns(pieces.start, pieces.end, np.zeros(len(pieces.row))), len(border) - 1)
    for k, busy in enumerate(owned):
        instants = range(int(border[k]), int(border[k + 1]))
        assert busy == sum(bool(((start <= t) & (t < end)).any()) for t in instants)


@given(ROWS)
def test_new_nanoseconds_add_up_to_the_union(rows: list[Row]) -> None:
    start, end, _ = columns(rows)
    assert new_ns(start, end).tolist() == owned_ns(start, end, np.zeros(len(start))).tolist()


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-9, 9), st.booleans()), max_size=9))
def test_totals_of_one_period_and_of_several(rows: list[tuple[int, int, bool]]) -> None:
    period, values, chosen = (np.array([row[k] for row in rows], dtype=int) for k in range(3))
    pieces = Pieces(np.arange(len(rows)), values, values + 1, period)
    expected = [sum(row[1] for row in rows if row[0] == k) for k in range(3)]
    assert pieces.total(values, 3).tolist() == expected
    first = Pieces(pieces.row, pieces.start, pieces.end, np.where(period > 0, -1, period))
    assert first.total(values, 1).tolist() == expected[:1]
    own = pieces.only(chosen.astype(bool))
    assert own.total(own.start, 3).tolist() == [sum(row[1] for row in rows if row[0] == k and row[2]) for k in range(3)]


def test_a_total_of_truths_is_a_count() -> None:
    pieces = Pieces(np.arange(3), np.zeros(3), np.ones(3), np.array([0, 0, -1]))
    assert pieces.total(np.array([True, True, True]), 1).tolist() == [2]


@given(ROWS)
def test_shares_add_up_to_the_union_and_are_equal_where_rows_run_together(rows: list[Row]) -> None:
    start, end, _ = columns(rows)
    expected = np.zeros(len(start))
    for instant in range(int(end.max(initial=0))):
        running = (start <= instant) & (instant < end)
        expected += running / max(running.sum(), 1)
    assert shared_ns(start, end) == pytest.approx(expected, abs=1e-9)


def test_two_products_at_once_share_their_time() -> None:
    # 0..10 and 5..15: 5 alone, 5 together, 5 alone: 5 + 5/2 each
    assert shared_ns(np.array([0, 5]), np.array([10, 15])).tolist() == [7.5, 7.5]


def test_a_row_of_negative_rank_hides_nothing() -> None:
    start, end = np.array([0, 0]), np.array([10, 10])
    assert owned_ns(start, end, np.array([-1, 2])).tolist() == [0, 10]


def test_no_rows_own_nothing() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert len(owned_ns(none, none, none)) == len(shared_ns(none, none)) == 0
