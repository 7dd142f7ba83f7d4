"""Times of blocks kept from one question to the next: only new ones are made, whatever stands beside them."""

from __future__ import annotations

import pytest

from suanli.plan import known_times
from suanli.plan.known_times import KnownTimes

np = pytest.importorskip("numpy")


class Maker:
    """Makes two tables [2, 3, combination] of numbers that tell their combination, and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[tuple[float, ...]]] = []

    def __call__(self, keys):
        self.asked.append(list(map(tuple, keys.T.tolist())))
        value = 10 * keys[0] + keys[1]
        return [np.ones((2, 3, 1)) * value, -np.ones((2, 3, 1)) * value]


def keys(*columns: tuple[float, float]):
    return np.array(columns, dtype=float).T


def test_only_new_combinations_are_made():
    known, make = KnownTimes(), Maker()
    first = known.times(keys((1, 2), (3, 4)), make)
    second = known.times(keys((3, 4), (5, 6), (1, 2)), make)
    assert make.asked == [[(1, 2), (3, 4)], [(5, 6)]]
    assert [each[0, 0].tolist() for each in first] == [[12, 34], [-12, -34]]
    assert [each[1, 2].tolist() for each in second] == [[34, 56, 12], [-34, -56, -12]]
    assert len(known) == 3


def test_what_is_known_is_not_made_again():
    known, make = KnownTimes(), Maker()
    for _ in range(3):
        known.times(keys((1, 2)), make)
    assert make.asked == [[(1, 2)]]


def test_all_is_forgotten_where_it_would_be_too_much(monkeypatch):
    monkeypatch.setattr(known_times, "MOST", 3)
    known, make = KnownTimes(), Maker()
    known.times(keys((1, 1), (2, 2)), make)
    found = known.times(keys((2, 2), (3, 3)), make)
    assert len(known) == 3
    found = known.times(keys((3, 3), (4, 4)), make)
    assert (len(known), found[0][0, 0].tolist()) == (2, [33, 44])
    assert make.asked[-1] == [(3, 3), (4, 4)]


def test_more_than_is_kept_is_made_and_not_kept(monkeypatch):
    monkeypatch.setattr(known_times, "MOST", 1)
    known, make = KnownTimes(), Maker()
    assert known.times(keys((1, 2), (3, 4)), make)[0][0, 0].tolist() == [12, 34]
    assert len(known) == 0


def test_what_was_given_out_does_not_change_what_is_kept():
    known, make = KnownTimes(), Maker()
    known.times(keys((1, 2)), make)[0][:] = 0
    assert known.times(keys((1, 2)), make)[0][0, 0].tolist() == [12]
