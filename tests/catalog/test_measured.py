"""The measured steps that ship, and what is known of each source."""

from __future__ import annotations

from collections import Counter

import pytest

from suanli.catalog.fabrics import node_fabric
from suanli.catalog.measured import measured_steps, source_facts
from suanli.catalog.profiles import find_profile
from suanli.catalog.stacks import find_stack

# rows of each source, as its tables have them
ROWS = {
    "2205.05198 T5": 8, "2205.05198 text": 1, "2104.04473 T1": 6, "2104.04473 T2 PTD": 4, "2104.04473 T2 ZeRO3": 5,
    "2201.11990 s2.4": 3, "MegaScale T2 Megatron-LM": 5, "MegaScale T2 MegaScale": 5, "2407.21783 T4": 2,
    "vTrain-multi": 94, "vTrain-single": 1080, "NVIDIA dgxc-benchmarking v25.04.02": 44,
    "MosaicML llm-foundry FSDP": 154,
}  # fmt: skip


def test_every_row_is_read() -> None:
    assert Counter(step.source for step in measured_steps()) == ROWS


def test_a_row_in_base_units() -> None:
    step = next(step for step in measured_steps() if step.id == "530B-sel+sp")
    assert (step.gpus, step.tp, step.pp, step.dp, step.vpp, step.micro_batch) == (280, 8, 35, 1, 3, 1)
    assert (step.recompute, step.sp, step.zero, step.step_s) == ("selective", True, 0, 37.83)


def test_what_was_not_published_is_none() -> None:
    steps = {step.id: step for step in measured_steps()}
    assert (steps["1.7B"].micro_batch, steps["1.7B"].vpp) == (None, None)
    assert (steps["174.6B-384"].micro_batch, steps["174.6B-384"].vpp) == (1, None)


def test_ranks_are_the_gpus() -> None:
    assert [s.id for s in measured_steps() if s.tp * s.pp * s.dp * s.cp != s.gpus] == []


@pytest.mark.parametrize("source", ROWS)
def test_every_source_has_a_stack_and_a_node(source: str) -> None:
    facts = source_facts()[source]
    assert find_profile(facts.stack).rows and find_stack(facts.stack)
    assert facts.node == "usual" or node_fabric(facts.node)
    assert facts.why
