"""`quantization_config` as a Scheme: each method, what it leaves alone, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.plan.serving.weights import weight_bytes
from suanli.readers.preset import read_named_preset
from suanli.readers.quantization import read_scheme


def config(**entry: Any) -> dict[str, Any]:
    return {"model_type": "llama", "quantization_config": entry}


def compressed(**weights: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights}
    return config(quant_method="compressed-tensors", config_groups={"group_0": group}, ignore=["lm_head"])


# config: bits, inputs and outputs of a scale, bytes of it, zero bits, index bytes
METHODS: list[tuple[dict[str, Any], tuple[int | Fraction, int | None, int | None, int, int, int]]] = [
    (config(quant_method="fp8", weight_block_size=[128, 128]), (8, 128, 128, 4, 0, 0)),
    (config(quant_method="fp8", weight_block_size=[1, 64]), (8, 64, 1, 4, 0, 0)),
    (config(quant_method="fp8"), (8, None, None, 0, 0, 0)),
    (config(quant_method="gptq", bits=4, group_size=128, desc_act=True), (4, 128, 1, 2, 4, 4)),
    (config(quant_method="gptq", bits=8, group_size=-1), (8, None, 1, 2, 8, 4)),
    (config(quant_method="awq", bits=4, group_size=64, zero_point=True), (4, 64, 1, 2, 4, 0)),
    (config(quant_method="awq", w_bit=4, group_size=128, zero_point=False), (4, 128, 1, 2, 0, 0)),
    (config(quant_method="mxfp4"), (4, 32, 1, 1, 0, 0)),
    (config(quant_method="modelopt", quant_algo="NVFP4"), (4, 16, 1, 1, 0, 0)),
    (config(quant_method="modelopt", quantization={"quant_algo": "FP8"}), (8, None, None, 0, 0, 0)),
    (config(quant_method="bitsandbytes", load_in_4bit=True), (4, 64, 1, 4, 0, 0)),
    (config(quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_use_double_quant=True), (4, 64, 1, 1, 0, 0)),
    (config(quant_method="bitsandbytes", load_in_8bit=True), (8, None, 1, 4, 0, 0)),
    (compressed(num_bits=8, type="float", strategy="channel", symmetric=True), (8, None, 1, 2, 0, 0)),
    (compressed(num_bits=4, type="int", strategy="group", group_size=128, symmetric=False), (4, 128, 1, 2, 4, 0)),
    (compressed(num_bits=4, type="float", strategy="tensor_group", group_size=16), (4, 16, 1, 1, 0, 0)),
    (compressed(num_bits=8, type="float", strategy="block", block_structure=[128, 128]), (8, 128, 128, 4, 0, 0)),
    (compressed(num_bits=8, type="float", strategy="tensor"), (8, None, None, 2, 0, 0)),
]


@pytest.mark.parametrize(("values", "fields"), METHODS, ids=[str(n) for n in range(len(METHODS))])
def test_a_method(values: dict[str, Any], fields: tuple[Any, ...]) -> None:
    found = read_scheme(values)
    assert found is not None
    got = (found.bits, found.group_in, found.group_out, found.scale_bytes, found.zero_bits, found.index_bytes)
    assert got == fields
    assert found.targets and found.source.startswith("config.json: quantization_config, quant_method ")


def test_a_config_without_one() -> None:
    assert read_scheme({"model_type": "llama"}) is None


@pytest.mark.parametrize("key", ["modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules"])
def test_what_is_left_alone(key: str) -> None:
    found = read_scheme(
        config(quant_method="fp8", weight_block_size=[128, 128], **{key: ["model.layers.0", "lm_head"]})
    )
    assert found is not None and found.skip == ("model.layers.0", "lm_head")
    arch = read_named_preset("llama-3.2-1b")
    layer = 2048 * (2 * 2048 + 2 * 512 + 3 * 8192)  # a byte more for each weight of one layer, less its scales
    more = weight_bytes(arch, found).total - weight_bytes(arch, "fp8-block").total
    assert more == layer - layer // 128**2 * 4


def test_gpt_oss_as_published() -> None:
    """Its config lists attention, router, table and head; none of them is among the experts."""
    values = config(
        quant_method="mxfp4",
        modules_to_not_convert=[
            "model.layers.*.self_attn",
            "model.layers.*.mlp.router",
            "model.embed_tokens",
            "lm_head",
        ],
    )
    found = read_scheme(values)
    assert found is not None
    assert weight_bytes(read_named_preset("gpt-oss-20b"), found).total == 13_761_264_768


REFUSED = [
    ({"quantization_config": 3}, "not an object in config.json: quantization_config; got 3."),
    (config(quant_method="gptqx"), "unknown method of quantisation 'gptqx' in config.json: "
     "quantization_config.quant_method; got"),
    (config(quant_method="gptq", group_size=128), "a key is missing in config.json: quantization_config.bits; "
     "expected a "
     "whole number."),
    (config(quant_method="gptq", bits=99, group_size=0), "not a possible number in config.json: "
     "quantization_config.bits; "
     "got 99; expected a whole number from 1 to 16."),
    (config(quant_method="fp8", weight_block_size=[128]), "not two whole numbers in config.json: "
     "quantization_config.weight_block_size; got [128]."),
    (config(quant_method="fp8", ignore="lm_head"), "not a list of names in config.json: "
     "quantization_config.ignore; got "
     "'lm_head'."),
    (compressed(num_bits=8, strategy="diagonal"), "unknown strategy 'diagonal' in config.json: "
     "quantization_config.config_groups.group_0.weights.strategy; expected one of tensor, channel, group, "
     "tensor_group, "
     "block."),
    (config(quant_method="compressed-tensors", config_groups={"a": {}, "b": {}}), "several groups of modules in "
     "config.json: quantization_config.config_groups; got 2 groups; expected one."),
    (config(quant_method="compressed-tensors"), "an object is missing in config.json: "
     "quantization_config.config_groups."),
    (config(quant_method="modelopt", quant_algo="W4A3"), "unknown quant_algo 'W4A3'"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "message"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_what_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_scheme(values)
    assert message.removesuffix("; got") in str(caught.value)


def test_all_faults_come_together() -> None:
    with pytest.raises(ConfigError) as caught:
        read_scheme(config(quant_method="gptq", bits=99, group_size=0))
    assert [fault.where for fault in caught.value.faults] == [
        "config.json: quantization_config.bits", "config.json: quantization_config.group_size",
    ]  # fmt: skip
