"""Rows keep their partners when the tables are sorted."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.readers.traces.columns import by_begin, sorted_tables


def test_rows_are_sorted_and_places_follow() -> None:
    work = {"start_ns": [30, 10], "end_ns": [40, 20], "device": [0, 0], "launch": [1, 0], "op": [-1, 2]}
    host = {"start_ns": [5, 25, 1], "end_ns": [6, 26, 9], "thread": [0, 0, 0]}
    pieces, spans = sorted_tables(work, host)
    assert spans.start_ns.tolist() == [1, 5, 25]
    assert pieces.start_ns.tolist() == [10, 30]
    assert pieces.launch.tolist() == [1, 2]  # host rows 0 and 1 as given are rows 1 and 2 now
    assert pieces.op.tolist() == [0, -1]
    assert pieces.graph.tolist() == [-1, -1]  # not given


def test_a_parent_stands_before_a_child_of_the_same_start() -> None:
    host = {"start_ns": [0, 0], "end_ns": [5, 9], "thread": [0, 0], "name": [7, 8]}
    _, spans = sorted_tables({"start_ns": [], "end_ns": []}, host)
    assert spans.name.tolist() == [8, 7]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=30))
def test_columns_that_are_given_up_are_sorted_alike(rows: list[tuple[int, int, int]]) -> None:
    starts, lengths, lanes = (np.array(column) for column in zip(*rows, strict=True))
    host = {"start_ns": starts, "end_ns": starts + lengths, "thread": lanes.astype(np.int32), "name": lanes + 7,
            "kind": lanes.astype(np.uint8), "correlation": np.arange(len(rows))}  # fmt: skip
    work = {"start_ns": starts[::-1], "end_ns": (starts + lengths)[::-1], "launch": np.arange(len(rows))[::-1]}
    kept = sorted_tables(work, host)
    given_up = sorted_tables(work, {name: column.copy() for name, column in host.items()}, given_up=True)
    for table, same in zip(kept, given_up, strict=True):
        for field in fields(table):
            column, other = getattr(table, field.name), getattr(same, field.name)
            assert (column.tolist(), column.dtype) == (other.tolist(), other.dtype)
    assert host["start_ns"].tolist() == [row[0] for row in rows]  # what is not given up stays


def test_a_column_nobody_knows_is_a_fault_of_the_reader() -> None:
    with pytest.raises(AssertionError, match=r"no such columns: \['colour'\]"):
        sorted_tables({"start_ns": [], "end_ns": [], "colour": []}, {"start_ns": [], "end_ns": [], "thread": []})


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 3)), min_size=1, max_size=30))
def test_every_piece_keeps_its_launch(rows: list[tuple[int, int, int]]) -> None:
    starts, lengths, lanes = (np.array(column) for column in zip(*rows, strict=True))
    host = {"start_ns": starts, "end_ns": starts + lengths, "thread": lanes, "correlation": np.arange(len(rows))}
    work = {
        "start_ns": starts[::-1],
        "end_ns": (starts + lengths)[::-1],
        "device": lanes[::-1],
        "launch": np.arange(len(rows))[::-1],
        "correlation": np.arange(len(rows))[::-1],
    }
    pieces, spans = sorted_tables(work, host)
    assert (spans.correlation[pieces.launch] == pieces.correlation).all()
    assert (np.diff(pieces.device) >= 0).all()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=40))
def test_spans_stand_by_thread_then_start_then_the_longer_first(rows: list[tuple[int, int, int]]) -> None:
    """Against a sort by three keys; what is equal in all of them stays in the order of the file."""
    thread, start, length = (np.array(column) for column in zip(*rows, strict=True))
    host = {"start_ns": start, "end_ns": start + length, "thread": thread, "correlation": np.arange(len(rows))}
    _, spans = sorted_tables({"start_ns": [], "end_ns": []}, host)
    assert spans.correlation.tolist() == np.lexsort((-(start + length), start, thread)).tolist()


def test_rows_by_begin() -> None:
    """The longer first; of equal ones the one that came first."""
    table = {"start_ns": np.array([5, 5, 2, 5]), "end_ns": np.array([6, 9, 3, 9]), "name": np.array([0, 1, 2, 3])}
    assert {name: values.tolist() for name, values in by_begin(table).items()} == {
        "start_ns": [2, 5, 5, 5],
        "end_ns": [3, 9, 9, 6],
        "name": [2, 1, 3, 0],
    }
