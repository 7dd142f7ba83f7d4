"""Operators around launches: against a search of every span, and fast."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from suanli.explain.link import climb, first_of, links, parents
from suanli.nouns.trace import HostKind, Trace

Make = Callable[..., Trace]


def test_work_belongs_to_the_innermost_operator_around_its_launch(make: Make) -> None:
    host = [
        {"name": "aten::linear", "kind": "op", "start_ns": 0, "end_ns": 100},
        {"name": "aten::addmm", "kind": "op", "start_ns": 10, "end_ns": 90},
        {"name": "cudaLaunchKernel", "start_ns": 20, "end_ns": 25},
        {"name": "cudaLaunchKernel", "start_ns": 95, "end_ns": 97},
        {"name": "cudaLaunchKernel", "start_ns": 200, "end_ns": 205},
        {"name": "cudaLaunchKernel", "start_ns": 20, "end_ns": 25, "thread": 1},
    ]
    work = [{"start_ns": 300 + i, "launch": launch} for i, launch in enumerate((2, 3, 4, 5, -1))]
    trace = make(work, host)
    found = links(trace)
    names = [trace.names[trace.host.name[row]] if row >= 0 else None for row in found.op]
    assert names == ["aten::addmm", "aten::linear", None, None, None]


def test_what_the_file_ties_to_an_operator_stays_tied(make: Make) -> None:
    host = [
        {"name": "a", "kind": "op", "start_ns": 0, "end_ns": 100},
        {"name": "b", "kind": "op", "start_ns": 200, "end_ns": 300},
        {"name": "cudaLaunchKernel", "start_ns": 20, "end_ns": 25},
    ]
    trace = make([{"launch": 2, "op": 1}, {"start_ns": 1, "op": 0}], host)
    assert [trace.names[trace.host.name[row]] for row in links(trace).op] == ["b", "a"]


def test_marks_and_calls_are_no_operators(make: Make) -> None:
    host = [
        {"name": "ProfilerStep#1", "kind": "mark", "start_ns": 0, "end_ns": 100},
        {"name": "cudaGraphLaunch", "start_ns": 5, "end_ns": 90},
        {"name": "cudaLaunchKernel", "start_ns": 20, "end_ns": 25},
    ]
    assert (links(make([{"launch": 2}], host)).op == -1).all()


def test_a_span_that_starts_at_anothers_end_is_not_inside(make: Make) -> None:
    host = [
        {"name": "a", "kind": "op", "start_ns": 0, "end_ns": 10},
        {"name": "cudaLaunchKernel", "start_ns": 10, "end_ns": 12},
    ]
    assert parents(make([], host).host).tolist() == [-1, -1]


SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12), st.booleans()), max_size=25)


@given(SPANS)
def test_spans_against_a_search_of_all(make: Make, rows: list[tuple[int, int, int, bool]]) -> None:
    """The last operator that started before on the thread and is still open, spans that overlap without nesting too."""
    spans = [
        {"start_ns": start, "end_ns": start + length, "thread": thread, "kind": "op" if op else "runtime"}
        for thread, start, length, op in rows
    ]
    host = make([], spans).host
    found = parents(host)
    for row in range(len(host)):
        same = (host.thread[:row] == host.thread[row]) & (host.kind[:row] == HostKind.OP)
        still_open = np.nonzero(same & (host.end_ns[:row] > host.start_ns[row]))[0]
        assert found[row] == (still_open[-1] if len(still_open) else -1)


def test_climbing_finds_the_nearest_wanted_one() -> None:
    parent = np.array([-1, 0, 1, 2, -1, 4], dtype=np.int32)
    wanted = np.array([True, False, True, False, False, False])
    rows = np.array([0, 1, 2, 3, 4, 5, -1], dtype=np.int32)
    assert climb(rows, parent, wanted).tolist() == [0, 0, 2, 2, -1, -1, -1]


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=30))
def test_climbing_step_by_step_is_the_same(tree: list[tuple[int, bool]]) -> None:
    """Parents come before their children, as in a table of spans."""
    parent = np.array([up % (i + 1) - 1 for i, (up, _) in enumerate(tree)], dtype=np.int32)
    wanted = np.array([want for _, want in tree], dtype=bool)
    for row, found in enumerate(climb(np.arange(len(tree)), parent, wanted)):
        at = row
        while at >= 0 and not wanted[at]:
            at = int(parent[at])
        assert found == at


def test_climbing_far_is_climbing_all_the_same() -> None:
    """Thirty operators, each inside the one before it: only the outermost is wanted, or none is."""
    parent = np.arange(-1, 29, dtype=np.int32)
    wanted = np.arange(30) == 0
    assert (climb(np.arange(30), parent, wanted) == 0).all()
    assert (climb(np.arange(30), parent, np.zeros(30, dtype=bool)) == -1).all()


def test_parents_of_a_table_are_found_once_and_of_another_anew(make: Make) -> None:
    op = {"name": "a", "kind": "op", "start_ns": 0, "end_ns": 100}
    first = make([], [op, {"name": "launch", "start_ns": 5, "end_ns": 6}])
    second = make([], [op, {"name": "launch", "start_ns": 500, "end_ns": 600}])
    assert links(first).parent is links(first).parent
    assert (links(first).parent.tolist(), links(second).parent.tolist()) == ([-1, 0], [-1, -1])


def test_values_of_rows_and_of_none() -> None:
    assert first_of(np.array([1, -1, 0]), np.array([7, 8])).tolist() == [8, -1, 7]
    assert first_of(np.array([-1, -1]), np.array([], dtype=np.int64)).tolist() == [-1, -1]


def test_a_million_spans_take_less_than_a_second_of_the_processor(make: Make) -> None:
    """200,000 operators, each with four launches inside."""
    count = 1_000_000
    at = np.arange(count, dtype=np.int64)
    op = at % 5 == 0
    host = make().host.__class__(
        start_ns=at * 10, end_ns=at * 10 + np.where(op, 49, 5), thread=np.zeros(count, dtype=np.int32),
        name=np.zeros(count, dtype=np.int32), kind=np.where(op, HostKind.OP, HostKind.RUNTIME).astype(np.uint8),
        detail=at * 0 - 1, collective=at * 0 - 1, sequence=at * 0 - 1, forward_thread=at * 0 - 1,
        correlation=at * 0 - 1,
    )  # fmt: skip
    taken = []
    for _ in range(2):
        before = time.process_time()
        found = parents(host)
        taken.append(time.process_time() - before)
    assert (found[~op] == at[~op] // 5 * 5).all()
    assert min(taken) < 1
