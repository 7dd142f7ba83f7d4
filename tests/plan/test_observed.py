"""Measured rows as observations: model, layouts that may have been, device, network, stack."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suanli.catalog.measured import measured_steps
from suanli.catalog.runs import published_runs
from suanli.errors import UnknownNameError
from suanli.nouns.layers import Attention
from suanli.plan.observed import Observation, observe_run, observe_step
from suanli.plan.predict import fitting


def step(id_: str) -> Observation:
    return observe_step(next(each for each in measured_steps() if each.id == id_))


def run(id_: str) -> Observation | None:
    return observe_run(next(each for each in published_runs() if each.id == id_))


def test_a_row_with_all_published() -> None:
    found = step("GPT3-175B-fp8-1024")
    assert (found.device, found.dtype, found.stack, found.gpus) == ("h100-sxm", "fp8", "nemo", 1024)
    (layout,) = found.layouts
    assert (layout.tp, layout.pp, layout.vpp, layout.dp, layout.schedule) == (4, 8, 6, 32, "interleaved")
    assert found.fabric.nics_bytes_per_s == 400e9
    assert found.arch.params_total == pytest.approx(175e9, rel=0.01)
    assert found.labels == ("h100-sxm fp8", "", "GPT3-175B")


def test_what_was_not_published_is_every_legal_value() -> None:
    # 96 layers on 12 stages, 384 micro-batches a replica: chunks that divide 8 layers a stage
    assert [layout.vpp for layout in step("174.6B-384").layouts] == [1, 2, 4, 8]
    # 512 sequences on 32 replicas: 16 each
    assert [layout.micro_batch for layout in step("1.7B").layouts] == [1, 2, 4, 8, 16]


def test_of_these_only_those_that_fit() -> None:
    found = step("529.6B")
    assert max(layout.micro_batch for layout in found.layouts) == 8
    assert {(layout.micro_batch, layout.vpp) for layout in fitting(found)} == {(1, 1), (1, 3), (2, 1)}
    assert len(fitting(step("GPT3-175B-fp8-1024"))) == 1


def test_a_published_rate_is_a_time() -> None:
    found = run("megatron-bridge-0036")
    assert found is not None
    # 1,536 × 8,192 tokens at 843 tokens/s on each of 256
    assert found.step_s == pytest.approx(1536 * 8192 / 843 / 256)
    assert (found.release, found.stack, found.dtype) == ("26.06", "megatron-bridge", "fp8")
    assert found.fabric.gpus_per_node == 72 and found.fabric.nics_bytes_per_s == 72 * 50e9


# id of a row of Megatron-Bridge: what is read out of it
WORDS = [
    ("megatron-bridge-0269", {"dtype": "mxfp8", "release": "25.09"}),  # printed as FP8-CS, the columns exchanged
    ("megatron-bridge-0268", {"dtype": "fp8"}),
    ("megatron-bridge-0022", {"release": "26.06", "family": "GPT"}),  # a patch release counts as its release
    ("megatron-bridge-0256", {"family": "DeepSeekV3"}),
]


@pytest.mark.parametrize(("id_", "expected"), WORDS)
def test_words_of_rows(id_: str, expected: dict[str, str]) -> None:
    found = run(id_)
    assert {name: getattr(found, name) for name in expected} == expected


def test_multi_token_prediction_is_a_layer_more() -> None:
    with_it, without = run("megatron-bridge-0256"), run("megatron-bridge-0282")
    assert with_it is not None and without is not None
    layers = [sum(isinstance(p.layer, Attention) * p.times for p in each.arch.leaves()) for each in (with_it, without)]
    assert layers == [62, 61]


def test_an_impossible_spread_of_experts_is_taken_as_the_whole_stage() -> None:
    found = run("megatron-bridge-0273")  # printed: EP 64 on 32 GPUs a stage
    assert found is not None
    assert found.layouts[0].ep == 32


@pytest.mark.parametrize("id_", ["megatron-bridge-0003", "megatron-bridge-0064", "llm-foundry-0001"])
def test_rows_that_are_none(id_: str) -> None:
    assert run(id_) is None  # no shape printed; fine-tuning; another group


def test_rows_that_cannot_be_read_are_left_out() -> None:
    row = next(each for each in published_runs() if each.id == "megatron-bridge-0036")
    for change in ({"precision": "FP6"}, {"gpu": "Z100"}, {"gbs_seqs": None}):
        assert observe_run(replace(row, **change)) is None
    assert observe_run(row) is not None


def test_an_unknown_source_says_where_to_name_its_stack() -> None:
    row = next(each for each in measured_steps() if each.id == "530B-DP8")
    with pytest.raises(UnknownNameError) as problem:
        observe_step(replace(row, source="2205.05198 T6"))
    text = str(problem.value)
    assert text.startswith("unknown source '2205.05198 T6' in measured_sources.toml; expected one of 13 known")
    assert text.endswith("Say there which stack, node and network its runs had.")
    assert problem.value.faults[0].nearest[0] == "2205.05198 T5"
