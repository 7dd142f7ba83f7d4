"""Layouts as arrays: nothing is lost on the way there and back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout

DEGREE = st.sampled_from([1, 2, 4, 8])


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    tp, pp, vpp, dp = draw(DEGREE), draw(DEGREE), draw(st.sampled_from([1, 2])), draw(DEGREE)
    schedule = draw(st.sampled_from(["1f1b", "zero-bubble"]))
    recompute = draw(st.sampled_from(["none", "selective", "full"]))
    vpp = vpp if pp > 1 else 1
    return Layout(
        tp=tp, pp=pp, dp=dp, cp=draw(DEGREE), ep=draw(st.sampled_from([1, tp])), vpp=vpp,
        micro_batch=draw(DEGREE), zero=draw(st.sampled_from([0, 1, 2, 3])), recompute=recompute,
        sp=tp > 1 and draw(st.booleans()), schedule="interleaved" if vpp > 1 else schedule,
        recompute_layers=2 if recompute == "full" and draw(st.booleans()) else None,
        shards=draw(st.sampled_from([None, dp])), offload=draw(st.booleans()),
    )  # fmt: skip


@given(st.lists(layouts(), min_size=1, max_size=5))
def test_there_and_back(chosen: list[Layout]) -> None:
    grid = Grid.of(chosen)
    assert len(grid) == len(chosen)
    assert [grid.at(place) for place in range(len(chosen))] == grid.layouts() == chosen
    assert list(grid.gpus) == [layout.gpus for layout in chosen]
    assert list(grid.expert_dp) == [layout.expert_dp for layout in chosen]


def test_some_of_them() -> None:
    grid = Grid.of([Layout(dp=dp) for dp in (1, 2, 4)])
    assert list(grid.take(np.array([2, 0])).dp) == [4, 1]
    assert list(grid.take(grid.dp > 1).dp) == [2, 4]


def test_ranks_that_share_states() -> None:
    # dp 8 · cp 2 = 16 replicas of dense states; experts have tp · cp · dp / (ep · etp) = 2 · 2 · 8 / 8 = 4
    whole = Layout(tp=2, cp=2, dp=8, ep=8)
    eight, two = (Layout(tp=2, cp=2, dp=8, ep=8, shards=shards) for shards in (8, 2))
    grid = Grid.of([whole, eight, two])
    assert list(grid.state_ranks) == [16, 8, 2]
    assert list(grid.expert_state_ranks) == [4, 4, 2]
