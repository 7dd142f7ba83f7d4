"""Profiles of stacks: what ships, whom to ask for an unknown one, and every fault of a file at once."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from suanli.catalog.profiles import find_profile, prior_profile, read_facts, read_profiles, stack_names
from suanli.catalog.stacks import find_stack
from suanli.errors import ConfigError, UnknownNameError
from suanli.nouns.profile import Profile, Traits, spreads


@pytest.mark.parametrize("name", stack_names())
def test_every_stack_can_be_planned_with(name: str) -> None:
    found = find_profile(name)
    assert all(getattr(found.numbers, each.name) > 0 for each in fields(Profile))
    assert 0 < found.half_width < 1 and found.half_width <= found.routed_half_width
    assert found.doc and found.command == "suanli calibrate --shipped all" and found.date
    assert found.rows or "no runs of its own" in found.sources[0]
    assert find_stack(name).flash == found.traits.fused_attention  # memory and time know the same stack


def test_a_stack_like_another_has_its_numbers_and_a_wider_interval() -> None:
    like, own = find_profile("megatron-core"), find_profile("nemo")
    assert like.numbers == own.numbers
    assert like.half_width == pytest.approx(1.5 * own.half_width)


def test_unknown_stacks_name_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as problem:
        find_profile("megatron-cor")
    assert str(problem.value).startswith("unknown stack 'megatron-cor' in --stack; expected one of 12 known; nearest: ")
    assert problem.value.faults[0].nearest[0] == "megatron-core"


def test_labels_shift_numbers() -> None:
    found = find_profile("nemo")
    shifted = found.at("h100-sxm fp8", "")
    factor = found.labels["h100-sxm fp8"]["matmul"]
    assert factor != 1
    assert shifted.matmul == pytest.approx(found.numbers.matmul * factor)
    assert found.at("a device nobody ran it on") == found.numbers


def test_beliefs_differ_where_the_file_says() -> None:
    assert prior_profile("nemo").prior == Profile()
    assert prior_profile("megatron-bridge").prior.experts == 1.7
    assert prior_profile("megatron-2021").traits == Traits(
        fused_attention=False, dropout=True, fused_loss=False, overlaps_data=False
    )


def test_only_imbalance_is_given_and_not_fitted() -> None:
    assert {each.name for each in fields(Profile)} - set(spreads()) == {"imbalance"}


BAD = """
[odd]
doc = "x"
fused_atention = true
dropout = 1
gradient_bytes = -2
[odd.prior]
matmul = 0
matmull = 1.1
[odd.spreads]
devices = { matmul = 0.1 }
family = { "experts memori" = 0.1 }
"""
FAULTS = [
    "unknown key 'fused_atention' in f: odd; nearest: fused_attention, fused_loss, state_bytes.",
    "dropout cannot be that in f: odd; got 1; expected true or false.",
    "gradient_bytes cannot be that in f: odd; got -2; expected a number above 0.",
    "matmul cannot be that in f: odd.prior; got 0; expected a number above 0.",
    "unknown key 'matmull' in f: odd.prior; nearest: matmul.",
    "unknown key 'devices' in f: odd.spreads; nearest: device, release.",
    "unknown key 'memori' in f: odd.spreads.family; nearest: memory, network.",
]


def test_every_fault_of_the_facts_at_once() -> None:
    with pytest.raises(ConfigError) as problem:
        read_facts(BAD, "f")
    assert str(problem.value).splitlines() == FAULTS


def test_every_fault_of_the_numbers_at_once() -> None:
    facts: dict[str, Any] = read_facts('[one]\ndoc = "x"', "f")
    text = '[on]\nnumbers = {}\n[one]\n[one.numbers]\nmatmul = -1\n[one.labels."h100 bf16"]\nspeed = 2'
    with pytest.raises(ConfigError) as problem:
        read_profiles(text, "p", facts, {})
    assert str(problem.value).splitlines() == [
        "no facts of the stack 'on' in p; nearest: one.",
        "matmul cannot be that in p: one.numbers; got -1; expected a number above 0.",
        "unknown key 'speed' in p: one.h100 bf16; nearest: send_exposed, expert_exposed.",
    ]
