"""Exchange of tokens: bytes that come in, by rank and group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.explain.fleet.experts import NONE, UNSAID, expert_groups
from suanli.explain.fleet.pool import pool
from suanli.nouns.fleet import ExpertGroup
from suanli.nouns.summary import RankSummary

Rows = Callable[..., list[RankSummary]]


def call(received: int, **said: Any) -> dict[str, Any]:
    return {"start_ns": 0, "duration_ns": 1, "collective": "all-to-all", "group": "e", "out_bytes": received, **said}


def found(rows_of: Rows, *ranks: list[dict[str, Any]]) -> tuple[tuple[ExpertGroup, ...], str | None]:
    return expert_groups(pool(enumerate(rows_of(*ranks))))


def test_bytes_are_added_up_by_rank(rows_of: Rows) -> None:
    (group,), why = found(rows_of, [call(10), call(20)], [call(40), call(50)], [call(0), call(0)])
    # 30, 90 and 0: the mean is 40, the most 90, 1.25 above it
    assert (group.received_bytes, group.mean_bytes, group.busiest, group.calls) == ((30, 90, 0), 40.0, 1, 2)
    assert group.imbalance == pytest.approx(1.25) and group.ranks == (0, 1, 2) and why is None


def test_groups_stand_apart_the_least_even_first(rows_of: Rows) -> None:
    groups, _ = found(rows_of, [call(1)], [call(1)], [call(1, group="f")], [call(3, group="f")])
    assert [(each.group, each.ranks) for each in groups] == [("f", (2, 3)), ("e", (0, 1))]
    # the same name with other members is another group
    groups, _ = found(rows_of, [call(1, members="0,1")], [call(1, members="0,1")], [call(1, members="2,3")],
                      [call(1, members="2,3")])  # fmt: skip
    assert [each.ranks for each in groups] == [(0, 1), (2, 3)]


def test_dispatch_and_combine_count_where_they_say_bytes(rows_of: Rows) -> None:
    (group,), _ = found(rows_of, [call(1, collective="dispatch"), call(2, collective="combine")], [call(3)])
    assert group.received_bytes == (3, 3) and group.imbalance == 0


@pytest.mark.parametrize(
    ("ranks", "why"),
    [
        (([], []), NONE),
        (([call(5, collective="all-reduce")],), NONE),
        (([call(-1)], [call(-1)]), UNSAID),
        (([call(5)], []), NONE),  # one rank of the group is here: with whom should it be compared?
    ],
)
def test_none(rows_of: Rows, ranks: tuple[list[dict[str, Any]], ...], why: str) -> None:
    assert found(rows_of, *ranks) == ((), why)


def test_nothing_is_received(rows_of: Rows) -> None:
    (group,), _ = found(rows_of, [call(0)], [call(0)])
    assert group.imbalance is None
