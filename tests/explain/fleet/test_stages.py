"""Stages of a pipeline: by groups called so, by chains of sends, and not where neither is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.explain.fleet.pool import pool
from suanli.explain.fleet.stages import stage_of
from suanli.nouns.summary import RankSummary

Rows = Callable[..., list[RankSummary]]


def call(peer: int = -1, **said: Any) -> dict[str, Any]:
    return {"start_ns": 0, "duration_ns": 1, "peer": peer, "collective": "send and receive", "call": "send", **said}


def found(rows_of: Rows, *ranks: list[dict[str, Any]]) -> dict[int, int]:
    return stage_of(pool(enumerate(rows_of(*ranks))))


@pytest.mark.parametrize(
    ("said", "stages"),
    [
        ({"group_label": "PIPELINE_MODEL_PARALLEL_GROUP", "members": "0,2,4"}, {0: 0, 2: 1, 4: 2}),
        ({"group_label": "mesh_pp", "members": "1,3"}, {1: 0, 3: 1}),
        ({"group": "pp", "members": "0,1"}, {0: 0, 1: 1}),
        ({"group_label": "PIPELINE_EMBEDDING_GROUP", "members": "0,4"}, {}),
        ({"group_label": "mapped", "members": "0,1"}, {}),  # no pp of its own
        ({"group_label": "pp"}, {}),  # members are not listed
    ],
)
def test_by_groups(rows_of: Rows, said: dict[str, Any], stages: dict[int, int]) -> None:
    assert found(rows_of, [call(**said)], []) == stages


@pytest.mark.parametrize(
    ("peers", "stages"),
    [
        ([[1], [0, 2], [1]], {0: 0, 1: 1, 2: 2}),
        ([[2], [3], [0], [1]], {0: 0, 2: 1, 1: 0, 3: 1}),  # two chains
        ([[1], [0], [3], [4], [3]], {}),  # chains of different lengths
        ([[1, 2, 3], [0], [0], [0]], {}),  # a star is no pipeline
        ([[1], [2], [0]], {}),  # a ring has no end
        ([[], []], {}),
    ],
)
def test_by_peers(rows_of: Rows, peers: list[list[int]], stages: dict[int, int]) -> None:
    assert found(rows_of, *([call(peer) for peer in each] for each in peers)) == stages


def test_a_peer_is_a_place_in_its_group(rows_of: Rows) -> None:
    assert found(rows_of, [], [call(1, members="1,3")], [], []) == {1: 0, 3: 1}
