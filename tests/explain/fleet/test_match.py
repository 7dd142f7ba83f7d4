"""Which kernels are one call: numbers first, order within a step else, and what is never taken for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.explain.fleet.match import ALONE, APART, UNEVEN, match, without
from suanli.explain.fleet.pool import pool
from suanli.nouns.summary import RankSummary

Rows = Callable[..., list[RankSummary]]
Row = dict[str, Any]


def call(at: int = 0, **said: Any) -> Row:
    return {"start_ns": at, "duration_ns": 10, **said}


def matched(rows_of: Rows, *ranks: list[Row]) -> tuple[list[int], dict[str, int]]:
    found = match(pool(enumerate(rows_of(*ranks))))
    return found.instance.tolist(), dict(found.reasons)


@pytest.mark.parametrize(
    ("ranks", "instances", "reasons"),
    [
        # two calls by their numbers, in another order on rank 1
        (([call(0, group="a", sequence=1), call(20, group="a", sequence=2)],
          [call(0, group="a", sequence=2), call(20, group="a", sequence=1)]), [0, 1, 1, 0], {}),
        # the window of rank 1 begins one call later: its number says so
        (([call(0, group="a", sequence=1), call(20, group="a", sequence=2)], [call(0, group="a", sequence=2)]),
         [-1, 0, 0], {ALONE: 1}),
        # the same number in another group, or in a group of the same name with other members, is another call
        (([call(group="a", sequence=1)], [call(group="b", sequence=1)]), [-1, -1], {ALONE: 2}),
        (([call(group="a", members="0,1", sequence=1)], [call(group="a", members="2,3", sequence=1)]), [-1, -1],
         {ALONE: 2}),
        # several calls under one number (coalesced): by their order
        (([call(0, group="a", sequence=1, nth=0), call(20, group="a", sequence=1, nth=1)],
          [call(0, group="a", sequence=1, nth=0), call(20, group="a", sequence=1, nth=1)]), [0, 1, 0, 1], {}),
        # no numbers: the nth of the step
        (([call(0, step="s1"), call(20, step="s2")], [call(0, step="s1"), call(20, step="s2")]), [0, 1, 0, 1], {}),
        # no numbers, and rank 1 has one fewer in the step: nobody can say which
        (([call(0, step="s1", nth=0), call(20, step="s1", nth=1)], [call(0, step="s1", nth=0)]), [-1, -1, -1],
         {UNEVEN: 3}),
        # other collectives are other calls
        (([call(collective="all-reduce")], [call(collective="all-gather")]), [-1, -1], {ALONE: 2}),
    ],
)  # fmt: skip
def test_calls(rows_of: Rows, ranks: tuple[list[Row], ...], instances: list[int], reasons: dict[str, int]) -> None:
    assert matched(rows_of, *ranks) == (instances, reasons)


def send(peer: int, **more: Any) -> Row:
    return call(collective="send and receive", call="send", peer=peer, group="p", **more)


def receive(peer: int, **more: Any) -> Row:
    return call(collective="send and receive", call="recv", peer=peer, group="p", **more)


def test_a_send_is_the_receive_of_its_peer(rows_of: Rows) -> None:
    # 0 → 1 and 1 → 0 are two calls, numbered differently on each side
    ranks = [send(1, sequence=5), receive(1, sequence=6)], [receive(0, sequence=1), send(0, sequence=2)]
    assert matched(rows_of, *ranks) == ([0, 1, 0, 1], {})


def test_a_peer_is_a_place_in_its_group(rows_of: Rows) -> None:
    # group of ranks 1 and 3: place 1 is rank 3
    ranks = [], [send(1, members="1,3")], [], [receive(0, members="1,3")]
    assert matched(rows_of, *ranks) == ([0, 0], {})


def test_nobody_communicates(rows_of: Rows) -> None:
    found = match(pool(enumerate(rows_of([], []))))
    assert (len(found.rows), found.count, dict(found.reasons)) == (0, 0, {})


def test_who_leaves_together_and_who_early(rows_of: Rows) -> None:
    found = match(pool(enumerate(rows_of(
        [call(), call(collective="broadcast"), send(1), call(collective="mystery")],
        [call(), call(collective="broadcast"), receive(0), call(collective="mystery")],
    ))))  # fmt: skip
    assert found.synchronising.tolist() == [True, False, False, False] * 2
    assert found.leaves_early.tolist() == [False, True, True, False] * 2


def test_what_is_let_go_is_counted(rows_of: Rows) -> None:
    import numpy as np

    found = match(pool(enumerate(rows_of(*[[call(0, group="a", sequence=1), call(20, group="a", sequence=2)]] * 3))))
    assert found.count == 2
    less = without(found, np.array([True, False]))
    assert less.instance.tolist() == [-1, 0] * 3 and less.count == 1 and dict(less.reasons) == {APART: 3}
