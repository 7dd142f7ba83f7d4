"""Summaries put together: words of all files are one list, kernels are added up, rows know their unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from suanli.explain.fleet.pool import NEEDED, pool
from suanli.nouns.summary import RankSummary

Rows = Callable[..., list[RankSummary]]


def kernel(name: str, length: int, **said: Any) -> dict[str, Any]:
    return {"name": name, "work_class": "matmul", "collective": None, "start_ns": 0, "duration_ns": length, **said}


def test_words_of_several_files_are_one_list(rows_of: Rows) -> None:
    ranks = (
        [{"start_ns": 1, "duration_ns": 2, "group": "x"}],
        [{"start_ns": 3, "duration_ns": 4, "group": each} for each in "yx"],
    )
    fleet = pool(enumerate(rows_of(*ranks)))
    assert [fleet.word("group", place) for place in fleet.calls["group"]] == ["x", "y", "x"]
    assert fleet.calls["unit"].tolist() == [0, 1, 1] and fleet.calls["end_ns"].tolist() == [3, 7, 7]
    assert fleet.word("group", -1) is None


def test_kernels_are_added_up_by_unit(rows_of: Rows) -> None:
    copy = kernel("copy", 9, work_class="copy")
    fleet = pool(enumerate(rows_of([kernel("a", 1), kernel("b", 2), kernel("a", 3), copy], [kernel("b", 5)])))
    found = {
        (int(unit), fleet.word("name", int(name))): (int(count), int(total))
        for unit, name, count, total in zip(
            *(fleet.kernels[key] for key in ("unit", "name", "count", "total_ns")), strict=True
        )
    }
    assert found == {(0, "a"): (2, 4), (0, "b"): (1, 2), (1, "b"): (1, 5)}


def test_several_devices_of_one_file_are_units(rows_of: Rows) -> None:
    (summary,) = rows_of([kernel("a", 1, device=0), kernel("a", 2, device=1), kernel("a", 4, device=7)])
    devices = tuple(replace(summary.about.devices[0], device=number) for number in (0, 1))
    fleet = pool([(5, replace(summary, about=replace(summary.about, devices=devices)))])
    assert [(unit.rank, unit.device) for unit in fleet.units] == [(5, 0), (5, 1)]
    assert fleet.kernels["total_ns"].tolist() == [1, 2]  # of device 7 the file gives no account


def test_units_must_come_in_the_order_of_ranks(rows_of: Rows) -> None:
    first, second = rows_of([], [])
    with pytest.raises(AssertionError, match="by rank"):
        pool([(1, second), (0, first)])


def test_no_more_columns_are_needed_than_it_says(rows_of: Rows) -> None:
    (summary,) = rows_of([kernel("a", 1), {"start_ns": 1, "duration_ns": 2}])
    less = replace(summary, columns={name: summary.columns[name] for name in NEEDED})
    assert np.array_equal(pool([(0, less)]).calls["end_ns"], pool([(0, summary)]).calls["end_ns"])


def test_none_at_all() -> None:
    fleet = pool([])
    assert (fleet.units, len(fleet.calls["unit"]), len(fleet.kernels["name"])) == ((), 0, 0)
