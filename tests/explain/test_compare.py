"""Two traces, and a trace and a plan, entry by entry: the differences close."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.explain import account as a
from suanli.explain.against import EXPLAINED, GROUPS, PREDICTED, against_layout
from suanli.explain.compare import MEAN_STEP, WINDOW, compare_traces
from suanli.explain.whole import explain_trace
from suanli.nouns.explained import Explained
from suanli.nouns.step import Entry
from suanli.nouns.trace import Trace
from suanli.plan.columns import ENTRIES as PLANNED


def run(make: Callable[..., Trace], lengths: list[int], *, marked: bool = True) -> Explained:
    """Steps of 1000 ns with a product of each length, launched at their start."""
    host: list[dict[str, Any]] = [
        {"name": "cudaLaunchKernel", "start_ns": 1000 * k, "end_ns": 1000 * k + 5} for k in range(len(lengths))
    ]
    marks = [
        {"name": f"ProfilerStep#{k}", "kind": "mark", "start_ns": 1000 * k, "end_ns": 1000 * k + 990}
        for k in range(len(lengths))
    ]
    work = [
        {"name": "ampere_sgemm_128x64_nn", "start_ns": 1000 * k + 20, "end_ns": 1000 * k + 20 + n, "launch": k}
        for k, n in enumerate(lengths)
    ]
    return explain_trace(make(work, [*host, *(marks if marked else [])]))


def test_mean_steps_are_compared_where_both_have_steps(make: Callable[..., Trace]) -> None:
    first, second = run(make, [600, 600, 600]), run(make, [400, 400, 400])
    found = compare_traces(first, second)
    assert found.basis == MEAN_STEP
    # two steps of 1000 and a last one of its own work: (1000 + 1000 + 600) / 3
    assert found.first_s == pytest.approx(2600e-9 / 3)
    assert sum(row.difference for row in found.rows) == pytest.approx(found.difference_s, rel=1e-9)
    by_entry = {row.entry: row.difference for row in found.rows}
    assert by_entry[a.UNATTRIBUTED] == pytest.approx(-200e-9)
    assert found.rows[0].entry == a.UNATTRIBUTED  # the largest difference first


def test_kernels_are_on_the_same_basis(make: Callable[..., Trace]) -> None:
    found = compare_traces(run(make, [600, 600, 600]), run(make, [400, 400, 400]))
    (kernel,) = found.kernels
    assert kernel.entry == "ampere_sgemm_128x64_nn"
    assert kernel.first == pytest.approx(600e-9)
    assert kernel.difference == pytest.approx(-200e-9)


def test_whole_windows_where_one_has_no_steps(make: Callable[..., Trace]) -> None:
    found = compare_traces(run(make, [600, 600]), run(make, [300], marked=False))
    assert found.basis == WINDOW
    assert (found.first_s, found.second_s) == pytest.approx((1600e-9, 300e-9))
    assert sum(row.difference for row in found.rows) == pytest.approx(found.difference_s, rel=1e-9)


def test_a_trace_compared_with_itself_differs_in_nothing(make: Callable[..., Trace]) -> None:
    one = run(make, [600, 500])
    assert {row.difference for row in compare_traces(one, one).rows} == {0.0}


def test_a_plan_and_a_step_meet_in_groups(make: Callable[..., Trace]) -> None:
    plan = [Entry("matmul", 300e-9), Entry("memory-bound", 50e-9), Entry("bubble", 20e-9), Entry("data parallel", 7e-9)]
    found = against_layout(run(make, [600, 600, 600]), plan)
    rows = {row.entry: (row.first, row.second) for row in found.rows}
    assert tuple(rows)[: len(GROUPS)] == GROUPS
    assert rows["products"] == pytest.approx((300e-9, 600e-9))
    assert rows["other kernels"] == (50e-9, 0.0)
    assert rows["communication"] == (7e-9, 0.0)
    assert rows["idle"] == pytest.approx((20e-9, (2600 / 3 - 600) * 1e-9))
    assert found.first_s == pytest.approx(377e-9)
    assert sum(row.difference for row in found.rows) == pytest.approx(found.difference_s, rel=1e-9)
    assert found.basis == MEAN_STEP


def test_an_entry_that_is_not_known_is_kept(make: Callable[..., Trace]) -> None:
    found = against_layout(run(make, [300], marked=False), [Entry("gremlins", 1e-6)])
    assert ("gremlins", 1e-6, 0.0) in [(row.entry, row.first, row.second) for row in found.rows]
    assert found.basis == "whole window, taken as one step"


def test_every_entry_of_both_accounts_has_a_group() -> None:
    others = {"recompute", "launch", "weight gathers", "sends", "bubble", "data parallel", "optimizer", "fixed"}
    assert set(PREDICTED) == set(PLANNED.values()) | others
    assert set(EXPLAINED) == set(a.ENTRIES)
    assert set(PREDICTED.values()) | set(EXPLAINED.values()) == set(GROUPS)


def test_without_a_device_there_is_nothing_to_compare_and_no_fault(make: Callable[..., Trace]) -> None:
    empty = explain_trace(make())
    found = compare_traces(empty, run(make, [300], marked=False))
    assert (found.first_s, found.second_s) == (0.0, pytest.approx(300e-9))
