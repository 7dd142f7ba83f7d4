"""Requests as typed: numbers with units, defaults said, all faults together."""

from __future__ import annotations

import json
from typing import Any

import pytest

import suanli
from suanli.api.request import Request, read_image
from suanli.errors import InputError, QuantityError, SuanliError


def test_numbers_may_be_typed() -> None:
    """Suffixes are decimal: 8K is 8,000, 8Ki is 8,192."""
    assert suanli.count("llama-3-8b", seq="8Ki").inputs["seq"] == "8Ki"
    assert suanli.count("llama-3-8b", seq="8Ki").flops == suanli.count("llama-3-8b", seq=8192).flops
    assert suanli.count("llama-3-8b", seq="8K").units == 8000


def test_defaults_are_said() -> None:
    found = suanli.count("gpt2")
    assert found.inputs["assumed"] == {
        "convention": "causal", "trainable": "all", "seq": 1024, "batch": 1, "phase": "forward", "dtype": "bf16",
        "optimizer": "adamw", "recompute": "none",
    }  # fmt: skip
    assert found.notes[0].startswith("assumed: convention causal")


def test_seq_is_2048_or_the_models_own() -> None:
    assert suanli.count("llama-3.1-405b").units == 2048
    assert suanli.count("bert-base").units == 512


def test_a_length_past_the_models_is_said() -> None:
    assert any("past the model's 1,024 positions" in note for note in suanli.count("gpt2", seq=4096).notes)


def test_a_length_that_changes_nothing_is_said() -> None:
    assert any("--seq changes nothing" in note for note in suanli.count("vit-b16", seq=4096).notes)


def test_picture_size() -> None:
    """ViT-B/16 at 384: 24·24 + 1 = 577 positions."""
    assert suanli.count("vit-b16", image="384x384").units == 577
    base, wide = suanli.count("resnet-50"), suanli.count("resnet-50", image="448x448")
    assert wide.flops.forward == pytest.approx(4 * base.flops.forward, rel=1e-3)


@pytest.mark.parametrize("text", ["0x0", "axb", "224x", "1x2x3x4", "-1x2", "9999999x2", ""])
def test_bad_picture_sizes(text: str) -> None:
    with pytest.raises(InputError, match=r"the size cannot be read in --image; got .*expected height and width"):
        read_image(text)


def test_every_fault_of_a_request_at_once() -> None:
    with pytest.raises(InputError) as caught:
        suanli.mfu("llama9", gpu="h1000", seq="0.5", peak="989", recompute="half", convention="pam",
                   tokens_per_second="many", memory_used="x")  # fmt: skip
    codes = [fault.code for fault in caught.value.faults]
    assert codes == [
        "unknown_model", "unknown_convention", "unknown_recompute_policy", "unknown_device", "missing_unit",
        "bad_quantity", "bad_quantity", "bad_quantity",
    ]  # fmt: skip


def test_one_fault_keeps_its_own_class() -> None:
    with pytest.raises(QuantityError):
        suanli.count("gpt2", seq="1x")


def test_zero_is_not_the_default() -> None:
    with pytest.raises(InputError, match="seq is not a possible length in --seq; got 0"):
        suanli.count("gpt2", seq=0)
    with pytest.raises(InputError, match="batch is not a possible length"):
        suanli.count("gpt2", batch=0)


def test_tflops_say_their_unit_by_name() -> None:
    bare, united = (suanli.mfu("gpt2", gpu="a100-80gb-sxm", tflops_per_gpu=rate) for rate in (140, "140TFLOPS"))
    assert bare.mfu == united.mfu == pytest.approx(140 / 312)


def test_whole_numbers_only() -> None:
    request = Request()
    assert request.whole("gpus", "1.5") is None
    with pytest.raises(InputError, match=r"not a whole number in --gpus; got '1.5'"):
        request.check()


@pytest.mark.parametrize("call", [
    lambda: suanli.count("gpt2", phase="train", recompute="full"),
    lambda: suanli.count("mixtral-8x7b", phase="decode", kv_len=4096, by="kind"),
    lambda: suanli.mfu("gpt2", gpu="h100-sxm", tokens_per_second=1e5),
    lambda: suanli.mfu("gpt2", gpu="h100-sxm", tokens_per_second=1e9),
    lambda: suanli.train("llama-3.1-405b", tokens="15.6T", gpu="h100-sxm", gpus=16384),
    lambda: suanli.train(params="175B", tokens="300B", gpus=1024, tflops_per_gpu=140, recompute="full"),
    lambda: suanli.gpus("h100-sxm"),
    suanli.gpus,
    lambda: suanli.models("gpt2"),
    lambda: suanli.why("flops.model", "gpt2"),
    lambda: suanli.verify("articles"),
])  # fmt: skip
def test_every_result_is_json_and_round_trips(call: Any) -> None:
    found = call()
    text = found.to_json()
    assert json.loads(text) == json.loads(json.dumps(found.to_dict()))
    assert found.to_dict()["ok"] is True


ERRORS = [
    lambda: suanli.count("nobody-knows-this"),
    lambda: suanli.count("gpt2", by="colour"),
    lambda: suanli.count(42),
    lambda: suanli.count(""),
    lambda: suanli.count("bert-base", phase="decode"),
    lambda: suanli.count("resnet-50", convention="neox"),
    lambda: suanli.count("torch:my.module:make"),
    lambda: suanli.train("gpt2", tokens="1T", gpu="h100-sxm", recompute="selective-published"),
    lambda: suanli.train(None, tokens="1T"),
    lambda: suanli.gpus("h100", sort="x"),
    lambda: suanli.gpus(sort="colour"),
    lambda: suanli.gpus(filter="vendor>3"),
    lambda: suanli.verify("everything"),
]


@pytest.mark.parametrize("call", ERRORS)
def test_every_error_has_the_one_shape(call: Any) -> None:
    with pytest.raises(SuanliError) as caught:
        call()
    shape = caught.value.to_dict()
    assert shape["ok"] is False
    assert shape["error"] == shape["errors"][0]  # type: ignore[index]
    assert list(shape["error"]) == ["code", "message", "where", "got", "expected", "nearest", "hint"]  # type: ignore[call-overload]
    json.dumps(shape)


def test_params_replace_n() -> None:
    """6N and PaLM per token of GPT-3 with N = 175e9: 1.050000e12 and 1.078991e12."""
    options: dict[str, Any] = {"seq": 2048, "phase": "train", "params": "175B"}
    six = suanli.count("gpt3-175b-megatron", convention="6n-all", **options)
    assert six.flops_per_token == six.ideal["6n"] / 2048 == 1.05e12
    palm = suanli.count("gpt3-175b-megatron", convention="palm", **options)
    assert palm.flops_per_token == 1_078_991_029_248
    assert (
        suanli.count("gpt3-175b-megatron", convention="megatron-full", **options).flops.model == 2_204_555_173_429_248
    )
