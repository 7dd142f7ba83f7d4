"""Configs that are wrong: each gives one ConfigError that says what and where, and nothing else."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.readers.configs import read_config
from suanli.readers.diffusers import is_diffusers, read_diffusers_config
from suanli.readers.diffusers.classes import READERS

ODD: list[dict[str, Any]] = json.loads(Path(__file__).with_name("odd.json").read_text(encoding="utf-8"))
JUNK = [
    None, True, -1, 0, 7, 10**6, 10**400, 1.5, math.nan, math.inf, "", "7", "x" * 10**5, [], [0], [1, 2], [None, {}],
    {}, {"a": 1}, [[1]], [10**9] * 200, list(range(5000)),
]  # fmt: skip


@pytest.mark.parametrize("case", ODD, ids=lambda case: case["name"])
def test_junk_under_every_key(case: dict[str, Any]) -> None:
    """Read or refused in words, quickly, whatever stands under a key; an architecture's books close."""
    config = case["config"] | case["sizes"][0]
    for key in config:
        for value in JUNK:
            start = time.process_time()
            try:
                arch = read_diffusers_config(config | {key: value}, "junk")
            except ConfigError as problem:
                assert problem.faults and all(fault.where and fault.message for fault in problem.faults)
                assert len(str(problem)) < 5000
            else:
                assert arch.params_total > 0
            assert time.process_time() - start < 2


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_bare_class_is_read_or_says_what_it_lacks(name: str) -> None:
    lacking = {"HunyuanDiT2DModel": "in_channels", "Transformer2DModel": "norm_type"}
    if name in lacking:
        with pytest.raises(ConfigError, match=f"missing key {lacking[name]}"):
            read_diffusers_config({"_class_name": name}, "bare")
    else:
        assert read_diffusers_config({"_class_name": name}, "bare").params_total > 0


MESSAGES: list[tuple[dict[str, Any], str]] = [
    (
        {"_class_name": "FluxTransfomer2DModel"},
        "unknown _class_name 'FluxTransfomer2DModel' in config: _class_name; nearest: FluxTransformer2DModel, "
        "Flux2Transformer2DModel, Transformer2DModel. Known by formula: 21 classes of diffusers. --trace counts any "
        "class of diffusers, run on --input.",
    ),
    ({"_class_name": None}, "unknown _class_name None in config: _class_name. Known by formula: "),
    ({"_class_name": ["x"] * 10}, "unknown _class_name a list of 10 in config: _class_name. "),
    (
        {"_class_name": "DiTTransformer2DModel", "image_size": [256, 128]},
        "the model makes square pictures only in config: image_size; got 256x128.",
    ),
    (
        {"_class_name": "FluxTransformer2DModel", "image_size": [1000, 1024]},
        "the picture's height does not divide into patches in config: image_size; got 1000x1024; expected a multiple "
        "of 16 pixels.",
    ),
    (
        {"_class_name": "WanTransformer3DModel", "num_frames": 80},
        "the frames do not divide into latent frames in config: num_frames; got 80; expected a multiple of 4, and one.",
    ),
    (
        {"_class_name": "SD3Transformer2DModel", "caption_projection_dim": 1536},
        "caption_projection_dim is not the width of the blocks in config: caption_projection_dim; got 1,536; expected "
        "1,152.",
    ),
    (
        {"_class_name": "SD3Transformer2DModel", "image_size": [2048, 2048]},
        "the picture has more patches in a row than there are positions in config: image_size; got 128; expected at "
        "most 96.",
    ),
    (
        {"_class_name": "UNet2DConditionModel", "down_block_types": ["KDownBlock2D"] * 4},
        "down_block_types has an unknown entry in config: down_block_types; got 'KDownBlock2D'; expected DownBlock2D, "
        "CrossAttnDownBlock2D.",
    ),
    (
        {"_class_name": "UNet2DConditionModel", "attention_head_dim": [8, 8, 8]},
        "attention_head_dim has not one entry a stage in config: attention_head_dim; got 3; expected 4.",
    ),
    (
        {"_class_name": "UNet2DConditionModel", "only_cross_attention": True},
        "only_cross_attention is not read by formula in config: only_cross_attention.",
    ),
    (
        {"_class_name": "HunyuanDiT2DModel", "in_channels": 4, "patch_size": 2, "hidden_size": 1408, "num_layers": 5},
        "blocks that read earlier ones come in pairs in config: num_layers; expected an even number.",
    ),
    (
        {"_class_name": "AutoencoderKL", "block_out_channels": [8, 16], "image_size": [33, 64]},
        "the picture does not divide into cells of the latent in config: image_size; got 33x64; expected a multiple of "
        "2 pixels.",
    ),
    (
        {"_class_name": "Transformer2DModel", "in_channels": 320, "norm_type": "ada_norm_zero"},
        "only a transformer on patches is read by formula in config: patch_size.",
    ),
]


@pytest.mark.parametrize(("config", "message"), MESSAGES, ids=lambda part: str(part)[:60])
def test_messages(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_diffusers_config(config, "wrong")
    assert str(caught.value).startswith(message)
    assert len(READERS) == 21


def test_faults_are_told_together() -> None:
    config = {"_class_name": "FluxTransformer2DModel", "in_channels": -1, "num_layers": "x", "guidance_embeds": 1}
    with pytest.raises(ConfigError) as caught:
        read_diffusers_config(config, "wrong")
    assert [fault.where for fault in caught.value.faults] == [
        "config: in_channels", "config: num_layers", "config: guidance_embeds",
    ]  # fmt: skip


def test_a_config_of_transformers_is_not_one_of_diffusers() -> None:
    assert is_diffusers({"_class_name": "X"}) and not is_diffusers({"model_type": "gpt2"})
    with pytest.raises(ConfigError, match="missing key model_type"):
        read_config({}, "empty", "config")
