"""Stages of a pipeline: which blocks they hold, how many micro-batches of each, for every schedule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.errors import InputError
from suanli.nouns.layout import Layout
from suanli.plan.pieces import parts_of
from suanli.plan.pipeline import stages_of
from suanli.readers.model import read_model

LLAMA = parts_of(read_model("llama-3.1-405b"))
DEEPSEEK = parts_of(read_model("deepseek-v3"))


def layers(stages: object) -> list[int]:
    return [sum(sum(chunk.blocks) for chunk in stage) for stage in stages]  # type: ignore[attr-defined]


def test_uneven_stages() -> None:
    stages = stages_of(LLAMA, Layout(pp=16, dp=128), 16)
    assert layers(stages) == [7, *[8] * 14, 7]
    assert [stage[0].in_flight for stage in stages] == list(range(16, 0, -1))
    assert [(chunk.first, chunk.last) for stage in stages for chunk in stage] == [
        (True, False), *[(False, False)] * 14, (False, True),
    ]  # fmt: skip


def test_no_pipeline() -> None:
    ((chunk,),) = stages_of(DEEPSEEK, Layout(), 4)
    assert (chunk.blocks, chunk.in_flight, chunk.first, chunk.last) == ((3, 58), 1, True, True)


def test_interleaved_stages_hold_chunks_far_apart() -> None:
    stages = stages_of(DEEPSEEK, Layout(pp=4, vpp=2, schedule="interleaved"), 8)
    assert [chunk.blocks for chunk in stages[0]] == [(3, 4), (0, 8)]
    assert [chunk.in_flight for chunk in stages[0]] == [7, 4]
    assert (stages[0][0].first, stages[3][1].last) == (True, True)
    with pytest.raises(InputError) as problem:
        stages_of(DEEPSEEK, Layout(pp=4, vpp=2, schedule="interleaved"), 6)
    assert str(problem.value) == (
        "micro-batches do not interleave evenly in --vpp; got 6 over 4 stages; expected a multiple of 4."
    )


def test_dualpipe_holds_both_ends_and_one_more_in_flight() -> None:
    """DeepSeek-V3 (arXiv:2412.19437 table 2): twice the parameters, pp + 1 micro-batches."""
    stages = stages_of(DEEPSEEK, Layout(pp=16, schedule="dualpipe"), 120)
    assert layers(stages)[:3] == [3 + 3, 4 + 3, 4 + 4]
    assert sum(layers(stages)) == 2 * 61
    assert {sum(chunk.in_flight for chunk in stage) for stage in stages} == {17}
    assert [(chunk.first, chunk.last) for chunk in stages[0]] == [(True, False), (False, True)]


def test_zero_bubble_holds_as_many_everywhere() -> None:
    stages = stages_of(LLAMA, Layout(pp=14, schedule="zero-bubble"), 64)
    assert [stage[0].in_flight for stage in stages] == [14] * 14


def test_recomputed_layers_and_tail() -> None:
    stages = stages_of(DEEPSEEK, Layout(pp=4, recompute="full", recompute_layers=4), 8, tail=20)
    assert [stage[0].recomputed for stage in stages] == [(3, 1), (0, 4), (0, 4), (0, 4)]
    assert [stage[0].tail for stage in stages] == [(0, 0), (0, 0), (0, 5), (0, 15)]
    everything = stages_of(DEEPSEEK, Layout(pp=4, recompute="full"), 8)
    assert all(chunk.recomputed == chunk.blocks and sum(chunk.tail) == 0 for (chunk,) in everything)


@given(pp=st.integers(1, 12), vpp=st.integers(1, 4), groups=st.integers(1, 8))
def test_every_layer_is_on_one_stage(pp: int, vpp: int, groups: int) -> None:
    schedule = "interleaved" if vpp > 1 else "1f1b"
    if vpp > 1 and pp == 1:
        return
    stages = stages_of(DEEPSEEK, Layout(pp=pp, vpp=vpp, schedule=schedule), groups * pp)
    for kind, count in enumerate((3, 58)):
        assert sum(chunk.blocks[kind] for stage in stages for chunk in stage) == count
    assert sum(chunk.first for stage in stages for chunk in stage) == 1
    assert sum(chunk.last for stage in stages for chunk in stage) == 1
