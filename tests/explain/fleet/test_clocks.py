"""Clocks aligned by collectives: planted offsets come back to less than a microsecond, whatever their size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from suanli.explain.fleet.clocks import align, same_call
from suanli.explain.fleet.match import match
from suanli.explain.fleet.pool import Fleet, pool
from suanli.nouns.summary import RankSummary

Summaries = Callable[..., list[RankSummary]]
MS = 1_000_000


def fleet_of(summaries: list[RankSummary]) -> Fleet:
    return pool(enumerate(summaries))


@pytest.mark.parametrize(
    "clocks",
    [
        {},
        {1: 137},
        {1: 3_500_000_123, 2: -41_000_777},  # seconds, as NTP leaves where it does not run
        {0: -(91 * 86_400 * 10**9), 3: 5_000},  # the base time of another three months
    ],
)
def test_planted_offsets_are_recovered(summaries: Summaries, clocks: dict[int, int]) -> None:
    fleet = fleet_of(summaries(ranks=4, clocks=clocks))
    found = align(fleet, match(fleet))
    planted = np.array([clocks.get(rank, 0) - clocks.get(0, 0) for rank in range(4)])
    # ends of the made collectives differ by up to 200 ns, which is all that may be left
    assert np.abs(found.offset_ns - planted).max() < 200
    assert found.component.tolist() == [0, 0, 0, 0]
    assert (found.residual_ns < 200).all()


def test_ranks_that_share_no_group_are_joined_through_others(rows_of: Summaries) -> None:
    # groups {0, 1} and {1, 2}: rank 1 is 1 ms ahead of 0, rank 2 is 5 ms ahead of 1
    def call(group: str, members: str, end: int) -> dict[str, Any]:
        return {"group": group, "members": members, "sequence": 1, "start_ns": end - 100, "duration_ns": 100}

    fleet = fleet_of(rows_of(
        [call("a", "0,1", 10 * MS)],
        [call("a", "0,1", 11 * MS), call("b", "1,2", 21 * MS)],
        [call("b", "1,2", 26 * MS)],
    ))  # fmt: skip
    found = align(fleet, match(fleet))
    assert found.offset_ns.tolist() == [0, MS, 6 * MS]
    assert found.component.tolist() == [0, 0, 0]


def test_sets_that_share_nothing_keep_clocks_of_their_own(rows_of: Summaries) -> None:
    def call(group: str, end: int) -> dict[str, Any]:
        return {"group": group, "sequence": 1, "start_ns": end - 100, "duration_ns": 100}

    fleet = fleet_of(rows_of([call("a", 1000)], [call("a", 1700)], [call("b", 5000)], [call("b", 5500)], []))
    found = align(fleet, match(fleet))
    assert found.component.tolist() == [0, 0, 2, 2, -1]
    assert found.offset_ns.tolist() == [0, 700, 0, 500, 0]


def test_one_wrong_call_moves_nothing(rows_of: Summaries) -> None:
    # five calls, rank 1 is 1000 ns ahead; in one of them its kernel lasted 9 ms too long
    def calls(ahead: int, odd: int) -> list[dict[str, Any]]:
        return [
            {"group": "a", "sequence": k, "start_ns": k * 100 * MS + ahead, "duration_ns": MS + (odd if k == 2 else 0)}
            for k in range(5)
        ]

    fleet = fleet_of(rows_of(calls(0, 0), calls(1000, 9 * MS)))
    found = align(fleet, match(fleet))
    assert found.offset_ns.tolist() == [0, 1000] and found.residual_ns.tolist() == [0, 0]
    assert same_call(fleet, match(fleet), found).tolist() == [True, True, False, True, True]


def test_the_residual_is_the_distance_from_the_others(rows_of: Summaries) -> None:
    # ends of rank 1 against rank 0: −100, 0, 40 µs: the offset is 0, the median distance 40
    def calls(off: tuple[int, ...]) -> list[dict[str, Any]]:
        return [
            {"group": "a", "sequence": k, "start_ns": k * MS, "duration_ns": 900_000 + each}
            for k, each in enumerate(off)
        ]

    fleet = fleet_of(rows_of(calls((0, 0, 0)), calls((-100_000, 0, 40_000))))
    found = align(fleet, match(fleet))
    assert found.offset_ns.tolist() == [0, 0] and found.residual_ns.tolist() == [40_000, 40_000]


def test_a_root_that_leaves_early_says_nothing_of_the_clock(rows_of: Summaries) -> None:
    # the broadcast's root is gone 3 ms before the other; the all-reduce has both end together
    def calls(end: int) -> list[dict[str, Any]]:
        reduce = {"group": "a", "sequence": 1, "start_ns": 0, "duration_ns": 10 * MS}
        cast = {"group": "a", "collective": "broadcast", "start_ns": 20 * MS, "duration_ns": end - 20 * MS}
        return [reduce, *({**cast, "sequence": k} for k in (2, 3))]

    fleet = fleet_of(rows_of(calls(21 * MS), calls(24 * MS)))
    found = align(fleet, match(fleet))
    assert found.offset_ns.tolist() == [0, 0]
    assert same_call(fleet, match(fleet), found).all()
