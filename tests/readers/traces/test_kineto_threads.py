"""Threads have one place however they are printed, and numbers are found fast with the same places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.readers.traces.interning import Places
from suanli.readers.traces.kineto_events import Width
from suanli.readers.traces.kineto_threads import Threads

NUMBERS = st.one_of(st.integers(-3, 5), st.integers(-(2**63), 2**63 - 1), st.integers(2**63, 2**70))
PAIRS = st.lists(st.tuples(st.one_of(st.just(7), NUMBERS), NUMBERS), max_size=20)


@given(st.lists(PAIRS, max_size=4))
def test_numbers_have_the_places_they_have_as_text(texts: list[list[tuple[int, int]]]) -> None:
    fast, slow = Threads(Places()), Threads(Places())
    for pairs in texts:
        if pairs:
            pids, tids = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            found = fast.of(pids, tids, Width.WHOLE)
            assert found.tolist() == slow.of(pids, tids, Width.ANY).tolist()
            assert found.dtype == "int32"


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=9), max_size=6))
def test_places_follow_the_first_sight(texts: list[list[int]]) -> None:
    places = Places()
    threads = Threads(places)
    found = [place for tids in texts for place in threads.of([1] * len(tids), tids, Width.WHOLE).tolist()]
    order = list(dict.fromkeys(tid for tids in texts for tid in tids))
    assert found == [order.index(tid) for tids in texts for tid in tids]
    assert places.values_made == [("1", str(tid)) for tid in order]


@pytest.mark.parametrize("width", Width)
def test_several_processes(width: Width) -> None:
    threads = Threads(Places())
    assert threads.of([1, 2, 1, 2], [5, 5, 5, 6], width).tolist() == [0, 1, 0, 2]
    assert threads.of([2, 2], [6, 7], width).tolist() == [2, 3]


def test_quotes_change_nothing() -> None:
    threads = Threads(Places())
    assert threads.of([9, 9], [5, 6], Width.WHOLE).tolist() == [0, 1]
    assert threads.of(["9", 9, "Spans"], ["5", "6", 9], Width.ANY).tolist() == [0, 1, 2]


def test_what_is_not_said() -> None:
    threads = Threads(Places())
    assert threads.of([9, ""], ["", 6], Width.WHOLE).tolist() == [0, 1]


def test_long_names_are_cut() -> None:
    places = Places()
    Threads(places).of(["p" * 999], ["t" * 999])
    assert places.values_made == [("p" * 200, "t" * 200)]
