"""Stragglers: of steps and kernels, against ranks that do the same work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from suanli.explain.fleet.pool import pool
from suanli.explain.fleet.stragglers import step_table, stragglers
from suanli.nouns.summary import RankSummary, StepTime

Rows = Callable[..., list[RankSummary]]


def kernel(name: str, length: int) -> dict[str, Any]:
    return {"name": name, "work_class": "matmul", "collective": None, "start_ns": 0, "duration_ns": length}


def stepped(summary: RankSummary, computes: dict[str, float]) -> RankSummary:
    steps = tuple(
        StepTime(name=name, device=0, start_ns=0, end_ns=1, seconds=9.0, compute_s=value, communication_s=0,
                 exposed_communication_s=0, idle_s=0)
        for name, value in computes.items()
    )  # fmt: skip
    return replace(summary, about=replace(summary.about, steps=steps))


def found(made: list[RankSummary], of: dict[int, int] | None = None) -> list[tuple[Any, ...]]:
    fleet = pool(enumerate(made))
    return [
        (each.rank, each.by, each.what, each.times, each.of) for each in stragglers(fleet, step_table(fleet), of or {})
    ]


@pytest.mark.parametrize(
    ("computes", "expected"),
    [
        ([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.2, 1.2]], [(3, 2, 2)]),
        ([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.04, 1.04]], []),  # 4 %: below the 5 % that matter
        ([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.2, 1.0]], []),  # one step of two is not most of them
        ([[1.0] * 3, [1.0] * 3, [1.0] * 3, [1.2, 1.0, 1.3]], [(3, 2, 3)]),
        ([[0.8], [1.0], [1.2], [1.3]], []),  # a spread of 0.2: 5 × 1.4826 × 0.2 above 1.1
        ([[1.0], [2.0]], []),  # two: who is slow and who fast?
    ],
)
def test_steps(rows_of: Rows, computes: list[list[float]], expected: list[tuple[int, int, int]]) -> None:
    made = [
        stepped(summary, {f"s{k}": each for k, each in enumerate(own)})
        for summary, own in zip(rows_of(*([] for _ in computes)), computes, strict=True)
    ]
    assert [(rank, times, of) for rank, _, _, times, of in found(made)] == expected


def test_ranks_of_other_stages_are_not_beside(rows_of: Rows) -> None:
    made = [stepped(each, {"s": 1.0 + (k >= 3)}) for k, each in enumerate(rows_of(*([] for _ in range(6))))]
    assert found(made, {k: k // 3 for k in range(6)}) == []
    assert [rank for rank, *_ in found(made[:5])] == [3, 4]


def test_steps_are_the_same_by_name(rows_of: Rows) -> None:
    made = [stepped(each, names) for each, names in zip(rows_of([], []), ({"b": 1, "c": 2}, {"c": 3}), strict=True)]
    table = step_table(pool(enumerate(made)))
    assert table.names == ("b", "c")
    assert np.array_equal(table.compute, [[1, 2], [np.nan, 3]], equal_nan=True)


def test_kernels(rows_of: Rows) -> None:
    # rank 3 takes 150 where the others take 100; `other` runs once more there, so that it is other work
    ranks = [[kernel("gemm", 100), kernel("other", 10)] for _ in range(3)]
    ranks.append([kernel("gemm", 150), kernel("other", 90), kernel("other", 90)])
    assert found(rows_of(*ranks)) == [(3, "kernel", "gemm", 1, 1)]


def test_waiting_is_no_slowness(rows_of: Rows) -> None:
    ranks = [[{"start_ns": 0, "duration_ns": length}] for length in (100, 100, 100, 900)]
    assert found(rows_of(*ranks)) == []
