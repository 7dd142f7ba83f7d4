"""Impossible durations are cut, possible overlaps are kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from suanli.explain.durations import clip
from suanli.nouns.trace import Trace


def row(start_us: float, end_us: float, **more: object) -> dict[str, object]:
    return {"start_ns": int(start_us * 1000), "end_ns": int(end_us * 1000), **more}


def test_a_row_that_runs_far_into_the_next_is_cut_to_its_start(make: Callable[..., Trace]) -> None:
    trace = make([row(0, 5000), row(10, 20), row(30, 40)])
    found = clip(trace.work)
    assert found.end_ns.tolist() == [10_000, 20_000, 40_000]
    assert (found.rows, found.cut_ns) == (1, 4_990_000)  # 5000 - 10 µs


@pytest.mark.parametrize(
    ("what", "rows"),
    [
        ("3.7 µs, as programmatic launches overlap on a B200", [row(0, 13.7), row(10, 20)]),
        ("another stream", [row(0, 5000), row(10, 20, stream=8)]),
        ("another device", [row(0, 5000), row(10, 20, device=1)]),
        ("nodes of a graph, which run side by side", [row(0, 5000, graph=3), row(10, 20, graph=3)]),
        ("just at the limit of 100 µs", [row(0, 110), row(10, 20)]),
    ],
)
def test_what_can_be_stays(what: str, rows: list[dict[str, object]], make: Callable[..., Trace]) -> None:
    trace = make(rows)
    assert clip(trace.work).rows == 0, what
    assert (clip(trace.work).end_ns == trace.work.end_ns).all()


def test_a_stream_that_overlaps_all_the_time_is_no_queue(make: Callable[..., Trace]) -> None:
    # 10 rows that each run 1 ms, a new one every 10 µs: concurrency, not a broken clock
    trace = make([row(10 * k, 10 * k + 1000) for k in range(10)])
    assert clip(trace.work).rows == 0


def test_seven_of_many_are_cut_as_in_the_public_report(make: Callable[..., Trace]) -> None:
    # TraceLens #669: 7 rows of 55,423 held 62 % of the time; here 7 of 700, each 90 ms long
    rows = [row(10 * k, 10 * k + (90_000 if k % 100 == 50 else 9)) for k in range(700)]
    found = clip(make(rows).work)
    assert found.rows == 7
    assert (found.end_ns <= 7_000_000).all()


def test_equal_starts_do_not_go_below_zero(make: Callable[..., Trace]) -> None:
    found = clip(make([row(0, 5), row(0, 9000), row(1, 2)]).work)
    assert (found.end_ns >= 0).all()
    assert found.end_ns.tolist() == [5000, 1000, 2000]


def test_no_work_at_all(make: Callable[..., Trace]) -> None:
    assert clip(make().work).rows == 0
