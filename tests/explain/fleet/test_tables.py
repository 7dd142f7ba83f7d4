"""Steps and kernels over ranks, by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.explain.fleet.whole import explain_fleet
from suanli.nouns.summary import RankSummary


def kernel(name: str, length: int) -> dict[str, Any]:
    return {"name": name, "work_class": "compute", "collective": None, "start_ns": 0, "duration_ns": length}


def test_kernels(rows_of: Callable[..., list[RankSummary]]) -> None:
    report = explain_fleet(rows_of([kernel("a", 10), kernel("a", 20)], [kernel("a", 50)], [kernel("b", 7)]))
    found = [(row.name, row.ranks, row.count, row.slowest_rank) for row in report.kernels]
    assert found == [("a", 2, 3, 1), ("b", 1, 1, 2)]
    first = report.kernels[0]
    assert (first.total_s, first.median_s, first.longest_s) == pytest.approx((80e-9, 40e-9, 50e-9))  # 30 and 50


def test_communication_is_no_kernel_here(rows_of: Callable[..., list[RankSummary]]) -> None:
    assert explain_fleet(rows_of([{"start_ns": 0, "duration_ns": 5}])).kernels == ()


def test_steps(summaries: Callable[..., list[RankSummary]]) -> None:
    report = explain_fleet(summaries(ranks=5, slow={3: 1.3}, steps=2))
    assert [(row.name, row.ranks, row.slowest_rank) for row in report.steps] == [
        ("ProfilerStep#10", 5, 3), ("ProfilerStep#11", 5, 3),
    ]  # fmt: skip
    for row in report.steps:
        # three layers of 400 + 100 µs, 1.3 times on rank 3; kernels vary by 1 %
        assert row.compute_median_s == pytest.approx(1500e-6, rel=0.02)
        assert row.compute_longest_s == pytest.approx(1950e-6, rel=0.02)
        assert row.median_s <= row.longest_s < 1.01 * row.median_s  # the all-reduce makes all as long
