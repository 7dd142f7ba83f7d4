"""Unions of a window by the definition that other tools share, against counting instants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.explain.sweep import Pieces
from suanli.explain.usage import seconds, usages
from suanli.nouns.attribution import WorkClass
from suanli.nouns.explained import Usage

MATMUL, COMPUTE, COMM, PEER, COPY = (int(each) for each in WorkClass)
ROWS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15), st.integers(0, 4)), min_size=1, max_size=15)


def of(rows: list[tuple[int, int, int]], *, labelled: tuple[int, ...] = ()) -> Usage:
    """Usage of rows (start, length, class) over their own window; rows in `labelled` are kernels by their label."""
    rows = sorted(rows, key=lambda row: row[0])
    start = np.array([row[0] for row in rows], dtype=np.int64)
    end = start + np.array([row[1] for row in rows], dtype=np.int64)
    kinds = np.array([row[2] for row in rows])
    kernel = (kinds <= COMM) | np.isin(np.arange(len(rows)), labelled)
    zeros = np.zeros(len(rows), dtype=np.int64)
    pieces = Pieces(np.arange(len(rows)), start, end, zeros)
    return usages(pieces, kinds, kernel, np.array([end.max() - start.min()]))[0]


@given(ROWS)
def test_every_union_against_its_instants(rows: list[tuple[int, int, int]]) -> None:
    found = of(rows)

    def instants(*kinds: int) -> set[int]:
        return {t for first, length, kind in rows if kind in kinds for t in range(first, first + length)}

    compute, comm, copies = instants(MATMUL, COMPUTE), instants(COMM), instants(PEER, COPY)
    assert found.compute_s == seconds(len(compute))
    assert found.matmul_s == seconds(len(instants(MATMUL)))
    assert found.communication_s == seconds(len(comm))
    assert found.exposed_communication_s == seconds(len(comm - compute))  # copies hide none of it
    assert found.copies_s == seconds(len(copies))
    assert found.exposed_copies_s == seconds(len(copies - compute - comm))
    assert found.busy_s == seconds(len(compute | comm | copies))
    assert found.busy_s + found.idle_s == pytest.approx(found.window_s, abs=1e-18)


def test_communication_beside_a_copy_alone_is_exposed() -> None:
    # all-reduce 0..100; copy 0..100; product 60..100: exposed is 60, overlapped 40 %
    found = of([(0, 100, COMM), (0, 100, COPY), (60, 40, MATMUL)])
    assert found.exposed_communication_s == seconds(60)
    assert found.overlapped_fraction == pytest.approx(0.4)


def test_a_copy_that_the_profiler_labels_a_kernel_is_compute_as_elsewhere() -> None:
    assert of([(0, 10, COPY)], labelled=(0,)).compute_s == seconds(10)
    assert of([(0, 10, COPY)], labelled=(0,)).copies_s == 0


def test_without_communication_the_overlap_is_not_a_number_but_none() -> None:
    assert of([(0, 10, COMPUTE)]).overlapped_fraction is None


def test_an_empty_window_has_no_fraction() -> None:
    assert of([(5, 0, COMPUTE)]).idle_fraction is None


@given(ROWS, st.tuples(st.integers(0, 40), st.integers(0, 15), st.integers(0, 4)))
def test_one_more_row_never_makes_the_device_less_busy(
    rows: list[tuple[int, int, int]], more: tuple[int, int, int]
) -> None:
    assert of([*rows, more]).busy_s >= of(rows).busy_s


def test_a_copy_that_a_collective_makes_is_communication_alone() -> None:
    zeros = np.zeros(1, dtype=np.int64)
    pieces = Pieces(zeros, zeros, zeros + 10, zeros)
    (found,) = usages(pieces, np.array([COMM]), np.array([False]), np.array([10]))
    assert (found.communication_s, found.copies_s) == (seconds(10), 0.0)
