"""`why`: the numbers put in give the verb's own value."""

from __future__ import annotations

from typing import Any

import pytest

import suanli
from suanli.errors import InputError, UnknownNameError
from suanli.formulas import all_formulas
from suanli.why import QUANTITIES, known_ids

MFU: dict[str, Any] = {"gpu": "h100-sxm", "seq": 8192, "tokens_per_second": 800, "recompute": "full"}
TRAIN: dict[str, Any] = {"tokens": "300B", "gpu": "a100-80gb-sxm", "gpus": 1000, "mfu": 0.462}
OPTIONS = {"count": {"seq": 512, "phase": "train", "recompute": "full"}, "mfu": MFU, "train": TRAIN}
MODELS = ["llama-3-8b", "deepseek-v2-lite", "t5-small", "minimax-text-01"]
SUMS = {"params.total", "params.active", "flops.forward", "flops.model", "flops.hardware", "bytes.kv_cache"}


@pytest.mark.parametrize("id_", QUANTITIES)
@pytest.mark.parametrize("model", MODELS)
def test_steps_give_the_value(id_: str, model: str) -> None:
    found = suanli.why(id_, model, **OPTIONS[QUANTITIES[id_].verb]).result
    assert found.value is not None and found.unit and found.formula and found.steps
    if id_ == "flops.hardware":
        per_op = suanli.count(model, **OPTIONS["count"]).flops
        assert found.value == per_op.hardware == sum(step.value for step in found.steps)
    elif id_ in SUMS:
        assert sum(step.value for step in found.steps if step.unit == found.unit) >= found.value
        if id_ != "flops.model":
            assert sum(step.value for step in found.steps) == found.value
    elif id_ != "flops_per_token":
        assert found.steps[-1].value == pytest.approx(found.value, rel=1e-12)


def test_each_step_is_its_formula_applied_to_its_numbers() -> None:
    """Forward rows: the registered function on the numbers shown, times the copies, is the row."""
    found = suanli.why("flops.forward", "llama-3-8b", seq=512)
    for step in found.steps:
        inputs = {name: value for name, value in step.values.items() if name != "pairs_of"}
        assert all_formulas()[step.formula].function(**inputs) * step.times == step.value


def test_value_equals_the_verb() -> None:
    assert suanli.why("mfu", "llama-3-8b", **MFU).value == suanli.mfu("llama-3-8b", **MFU).mfu
    assert suanli.why("days", "gpt3-175b", **TRAIN).value == suanli.train("gpt3-175b", **TRAIN).days
    assert suanli.why("bytes.kv_cache", "llama-3-8b").value == suanli.count("llama-3-8b").bytes.kv_cache


@pytest.mark.parametrize("id_", known_ids())
def test_every_id_can_be_asked_without_a_model(id_: str) -> None:
    found = suanli.why(id_).result
    assert found.formula and found.source and found.value is None


def test_unknown_id_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown quantity 'flops.foward' in ID.*nearest: flops.forward"):
        suanli.why("flops.foward", "gpt2")


def test_a_quantity_without_value_says_why() -> None:
    with pytest.raises(InputError, match=r"days has no value in ID; got neither --gpus nor --deadline"):
        suanli.why("days", "gpt2", tokens="1T", gpu="h100-sxm", mfu=0.4)


def test_steps_of_frozen_weights_hold_their_numbers() -> None:
    """Where the first layer stands apart, its rows are explained like the others."""
    found = suanli.why("flops.model", "gpt2", seq=64, phase="train", trainable="lora:r=4,targets=c_attn")
    assert all(step.values for step in found.steps)
    assert sum(step.value for step in found.steps) == found.value
