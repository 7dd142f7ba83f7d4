"""Gradients added up over micro-batches: how often they are scattered, what stands whole, and what both cost."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.curves import find_curves
from suanli.catalog.fabrics import node_fabric
from suanli.catalog.profiles import find_profile, stack_names
from suanli.catalog.stacks import find_stack
from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout
from suanli.nouns.stack import SCATTERS
from suanli.nouns.workload import Workload
from suanli.plan.accumulation import scatters, whole_fraction
from suanli.plan.memory import memory_estimate
from suanli.plan.predict import step_times
from suanli.plan.step_time import Job, account, features
from suanli.readers.model import read_model

GPT = read_model("gpt2-medium")  # 24 layers
H100, DGX = find_curves("h100-sxm"), node_fabric("hgx-h100")

# when without a pipeline, when with one; pp, vpp, micro-batches → scatters a step, the part that stands whole
RULES = [
    ("micro-batch", "turn", 1, 1, 8, 8, 0),
    ("micro-batch", "turn", 4, 1, 8, 8, 0),  # without chunks there are no turns
    ("micro-batch", "turn", 4, 6, 8, 2, 1 / 6),  # turns of 4 micro-batches; one chunk of six at a time
    ("micro-batch", "step", 4, 1, 8, 1, 1),
    ("micro-batch", "step", 1, 1, 8, 8, 0),
    ("step", "step", 1, 1, 8, 1, 1),
    ("step", "step", 1, 1, 1, 1, 0),  # one micro-batch: nothing to add up
    ("micro-batch", "turn", 4, 6, 4, 1, 1 / 6),
]


@pytest.mark.parametrize(("alone", "piped", "pp", "vpp", "count", "times", "part"), RULES)
def test_scatters_and_what_stands_whole(alone, piped, pp, vpp, count, times, part) -> None:
    stack = SimpleNamespace(scatters=alone, pipeline_scatters=piped)
    assert scatters(stack, pp, vpp, count) == times
    assert whole_fraction(stack, pp, vpp, count) == pytest.approx(part)
    many = (np.array([each] * 3, dtype=float) for each in (pp, vpp, count))
    assert scatters(stack, *many) == pytest.approx([times] * 3)


@pytest.mark.parametrize("name", stack_names())
def test_memory_and_time_know_the_same_of_a_stack(name: str) -> None:
    stack, traits = find_stack(name), find_profile(name).traits
    assert (stack.scatters, stack.pipeline_scatters) == (traits.scatters, traits.pipeline_scatters)


# --- time ---------------------------------------------------------------------------------------------------------


def job(name: str) -> Job:
    return Job(arch=GPT, seq=1024, dtype="bf16", curves=H100, fabric=DGX, traits=find_profile(name).traits)


def seconds(name: str, batch: int, **layout: object) -> list[float]:
    grid = Grid.of([Layout(**layout, zero=stage) for stage in range(4)])  # type: ignore[arg-type]
    return list(map(float, step_times(features(job(name), grid, float(batch)), find_profile(name).numbers)))


LAYOUTS = [
    {"dp": 64}, {"dp": 16, "tp": 4, "sp": True}, {"dp": 16, "pp": 4}, {"dp": 64, "shards": 8},
    {"dp": 16, "pp": 4, "vpp": 3, "schedule": "interleaved"}, {"dp": 32, "cp": 2},
]  # fmt: skip


@given(
    name=st.sampled_from(stack_names()), layout=st.sampled_from(LAYOUTS), turns=st.integers(1, 8),
    size=st.sampled_from([1, 2]),
)  # fmt: skip
def test_sharding_more_takes_no_less_time(name: str, layout: dict[str, int], turns: int, size: int) -> None:
    """Under accumulation: ZeRO 1 scatters once, ZeRO 2 at least as often, ZeRO 3 gathers as well."""
    layout = layout | {"shards": layout.get("shards")}
    batch = layout["dp"] * size * 4 * turns  # 4 micro-batches a turn
    found = seconds(name, batch, micro_batch=size, **layout)
    assert found[1] <= found[2] * (1 + 1e-12)
    assert found[2] <= found[3] * (1 + 1e-12)


def test_zero_2_costs_what_zero_1_costs_where_nothing_accumulates() -> None:
    _, one, two, _ = seconds("megatron-core", 64, dp=64)
    assert one == pytest.approx(two)
    _, one, two, _ = seconds("megatron-core", 64 * 8, dp=64)
    assert two > 1.02 * one


def test_scatters_are_an_entry_of_their_own() -> None:
    """Seven of eight micro-batches scatter beside their backward pass; the last does as under ZeRO 1."""
    grid = Grid.of([Layout(dp=64, zero=stage) for stage in (1, 2, 3)])
    found = features(job("megatron-core"), grid, 512.0)
    assert found.scattered.tolist() == [0, 7 / 8, 1]
    entries = account(found, find_profile("megatron-core").numbers)
    assert [value > 0 for value in entries["gradient scatters"].tolist()] == [False, True, False]
    assert [value > 0 for value in entries["weight gathers"].tolist()] == [False, False, True]
    assert entries["data parallel"][0] == entries["data parallel"][1]


def test_turns_scatter_less_often_and_whole_steps_once() -> None:
    """16 micro-batches on 4 stages: 16 scatters, 4 in turns of 4, or 1, where one is as under ZeRO 1."""
    own, profile = job("megatron-core"), find_profile("megatron-core").numbers
    grid = Grid.of([Layout(dp=16, pp=4, vpp=3, schedule="interleaved", zero=stage) for stage in (1, 2)])
    found = {}
    for when in SCATTERS:
        traits = replace(own.traits, pipeline_scatters=when)
        one, found[when] = map(float, step_times(features(replace(own, traits=traits), grid, 256.0), profile))
    assert found["micro-batch"] > found["turn"] > found["step"] == pytest.approx(one)


# --- memory -------------------------------------------------------------------------------------------------------


def held(name: str, batch: int, **layout: object) -> list[int]:
    return [
        memory_estimate(GPT, Workload(phase="train", seq=1024), Layout(**layout, zero=stage),  # type: ignore[arg-type]
                        find_stack(name), global_batch=batch).total
        for stage in range(4)
    ]  # fmt: skip


@pytest.mark.parametrize("name", [each for each in stack_names() if each != "torchtitan"])
@pytest.mark.parametrize("layout", [{"dp": 64, "recompute": "full"}, {"dp": 16, "tp": 4, "recompute": "full"}], ids=str)
def test_sharding_more_holds_no_more(name: str, layout: dict[str, object]) -> None:
    found = held(name, 512, **layout)
    assert found[0] > found[1] > found[2]


def test_gradients_kept_whole_are_no_gain_over_zero_1() -> None:
    """torchtitan's pipeline: all gradients stand until the last micro-batch, so ZeRO 2 saves none of them."""
    stack, layout = find_stack("torchtitan"), {"dp": 16, "pp": 4}
    workload = Workload(phase="train", seq=1024)
    one, two = (
        memory_estimate(GPT, workload, Layout(**layout, zero=stage), stack, global_batch=256).fullest  # type: ignore[arg-type]
        for stage in (1, 2)
    )
    assert two.gradients >= one.gradients
    alone = memory_estimate(GPT, workload, Layout(dp=64, zero=2), stack, global_batch=256).fullest
    assert alone.gradients < alone.params * 4 / 32


def test_one_chunk_stands_whole_in_turns() -> None:
    """24 layers on 4 · 6 chunks: a sixth of a rank's gradients beside its shard of all."""
    workload, stack = Workload(phase="train", seq=1024), find_stack("megatron-core")
    layout = Layout(dp=16, pp=4, vpp=6, schedule="interleaved", zero=2, recompute="full")
    stage = memory_estimate(GPT, workload, layout, stack, global_batch=256).stages[1]  # neither embedding nor head
    assert stage.gradients == pytest.approx(4 * stage.params * (1 / 16 + 1 / 6), rel=1e-6)
