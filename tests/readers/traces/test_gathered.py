"""Names once, faults counted, launches joined, devices by id."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from suanli.nouns.trace import TraceDevice, TraceFault
from suanli.readers.traces.gathered import LARGEST, Faults, Names, devices_seen, distinct, joined, sound, within


def test_names_are_kept_once() -> None:
    names = Names()
    assert names.column(["a", "b", "a"]).tolist() == [0, 1, 0]
    assert names.items == ["a", "b"]


def test_faults_add_up() -> None:
    faults = Faults([TraceFault(code="given", count=1, message="as it is")])
    faults.add("lost", 0, "{count} were lost")
    faults.add("bad", 1200, "{count} were bad")
    faults.add("bad", 34, "another sentence")
    faults.note("odd", "cannot be counted")
    assert [(fault.code, fault.count, fault.message) for fault in faults.found()] == [
        ("given", 1, "as it is"),
        ("odd", 0, "cannot be counted"),
        ("bad", 1234, "1,234 were bad"),
    ]


def test_times_that_can_be() -> None:
    start = np.array([0, 5, 0, -(2**63), LARGEST], dtype=np.int64)
    end = np.array([0, 4, LARGEST, 0, LARGEST], dtype=np.int64)
    faults = Faults()
    assert sound(start, end, faults, "{spans|span}").tolist() == [True, False, False, False, False]
    assert [(fault.code, fault.count, fault.message) for fault in faults.found()] == [
        ("no-time", 3, "3 spans without a time that can be are left out"),
        ("negative-duration", 1, "1 span that ends before it starts is left out"),
    ]


def test_the_smallest_number_is_outside() -> None:
    assert within(np.array([-(2**63), -9, 9, 10], dtype=np.int64), 10).tolist() == [False, True, True, False]


PAIRS = st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 5)), max_size=20)


@given(PAIRS, PAIRS)
def test_joins_are_those_of_a_dictionary(ours: list[tuple[int, int]], theirs: list[tuple[int, int]]) -> None:
    known: dict[tuple[int, int], int] = {}
    for row, pair in enumerate(theirs):
        known.setdefault(pair, row)
    expected = [known.get(pair, -1) if min(pair) >= 0 else -1 for pair in ours]
    left, right = (np.array(pairs, dtype=np.int64).reshape(-1, 2) for pairs in (ours, theirs))
    assert joined(left[:, 0], left[:, 1], right[:, 0], right[:, 1]).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-5, 5), st.just(7)), min_size=1, max_size=30))
def test_combinations_are_numbered(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    first, number = distinct(columns)
    assert [rows[first[place]] for place in number] == rows
    assert len(first) == len(set(rows))
    assert all(rows.index(rows[place]) == place for place in first)


def test_no_rows_no_combinations() -> None:
    first, number = distinct([np.empty(0, dtype=np.int64)])
    assert (len(first), len(number)) == (0, 0)


def test_devices_described_and_seen() -> None:
    described = [TraceDevice(id=3, name="a"), TraceDevice(id=3, name="b"), TraceDevice(id=1)]
    assert devices_seen(described, [0, 3]) == (TraceDevice(id=0), TraceDevice(id=1), TraceDevice(id=3, name="a"))
