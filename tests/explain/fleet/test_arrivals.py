"""Arrivals, waits and transfers of a call, by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.explain.fleet.whole import explain_fleet
from suanli.nouns.summary import RankSummary

Rows = Callable[..., list[RankSummary]]
US = 1000


def call(start: int, end: int, sequence: int = 1, **said: Any) -> dict[str, Any]:
    return {"group": "g", "sequence": sequence, "start_ns": start * US, "duration_ns": (end - start) * US, **said}


def test_one_call_by_hand(rows_of: Rows) -> None:
    # ranks come at 0, 30 and 70 µs; all leave at 100. The last defines the start:
    # 70 and 40 µs of waiting, 30 of transfer
    report = explain_fleet(rows_of([call(0, 100)], [call(30, 100)], [call(70, 100)]))
    assert [row.waiting_s for row in report.ranks] == pytest.approx([70e-6, 40e-6, 0])
    assert [row.waited_for_s for row in report.ranks] == pytest.approx([0, 0, 110e-6])
    assert [row.last for row in report.ranks] == [0, 0, 1]
    (row,) = report.collectives
    assert (row.skew_median_s, row.skew_max_s) == pytest.approx((70e-6, 70e-6))
    assert (row.transfer_s, row.total_s, row.waiting_s) == pytest.approx((30e-6, 200e-6, 110e-6))
    assert [(each.waiting, each.waited_for, each.calls) for each in report.waits] == [(0, 2, 1), (1, 2, 1)]
    assert [each.seconds for each in report.waits] == pytest.approx([70e-6, 40e-6])


def test_several_last_at_once_the_first_stands_for_them(rows_of: Rows) -> None:
    report = explain_fleet(rows_of([call(0, 100)], [call(50, 100)], [call(50, 100)]))
    assert report.collectives[0].last_rank == 1
    assert [(each.waiting, each.waited_for) for each in report.waits] == [(0, 1)]


def test_rates_use_the_transfer_alone(rows_of: Rows) -> None:
    # 4 ranks of 3 MB: 2·3/4 · 3 MB over the 30 µs of the last = 150 GB/s, whatever the others waited
    said = {"bytes": 3_000_000, "group_size": 4}
    report = explain_fleet(rows_of(*([call(start, 100, **said)] for start in (0, 30, 50, 70))))
    (row,) = report.collectives
    assert row.algbw_bytes_per_s == pytest.approx(100e9) and row.busbw_bytes_per_s == pytest.approx(150e9)
    assert row.formula == "algbw = S/t, S in; busbw = algbw·2(n−1)/n"
    assert row.above_link is None and row.reasons["above_link"] == "the link of the device is not known"


def test_bytes_that_one_call_does_not_say(rows_of: Rows) -> None:
    ranks = [[call(0, 100, 1, bytes=8), call(200, 300, 2)]] * 2
    (row,) = explain_fleet(rows_of(*ranks)).collectives
    assert row.bytes is None
    assert row.reasons["busbw_bytes_per_s"] == "the file does not say the size of every call"


def test_groups_stand_apart(rows_of: Rows) -> None:
    ranks = [[call(0, 100, group="g"), call(200, 300, group="h", group_label="dp")]] * 2
    report = explain_fleet(rows_of(*ranks))
    assert sorted(each.group or "" for each in report.collectives) == ["g", "h (dp)"]


def test_a_send_waits_for_its_receiver(rows_of: Rows) -> None:
    said = {"collective": "send and receive", "members": "0,1", "group_size": 2, "bytes": 1000, "sequence": -1}
    report = explain_fleet(rows_of(
        [call(0, 100, **said | {"call": "send", "peer": 1})], [call(90, 100, **said | {"call": "recv", "peer": 0})],
    ))  # fmt: skip
    assert [row.waiting_s for row in report.ranks] == pytest.approx([90e-6, 0])
    (row,) = report.collectives
    assert (row.calls, row.last_rank) == (1, 1) and row.busbw_bytes_per_s == pytest.approx(1000 / 10e-6)
