"""Presets as architectures: the format decides the reader, the preset's own words come before the reader's."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.catalog.presets import Preset
from suanli.errors import ConfigError, InputError
from suanli.readers.preset import read_preset, with_image

DECODER = {"hidden": 8, "num_layers": 2, "heads": 4, "ffn": 12, "vocab": 10}
GPT2 = {"model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 2, "vocab_size": 11, "n_positions": 5}


def preset(format: str, config: dict[str, Any], **more: Any) -> Preset:
    return Preset(name="net", title="Net", format=format, config=config, source="a paper", **more)


# format, config: parameters
FORMATS: list[tuple[str, dict[str, Any], int]] = [
    # lookup 88, positions 40, a layer 12·64 + 13·8, last norm 16
    ("hf", GPT2, 88 + 40 + 2 * (768 + 104) + 16),
    # lookup and head 80, a layer 256 + 192 + 32, last norm 16
    ("decoder", DECODER, 160 + 2 * 480 + 16),
    ("encoder-decoder", {**DECODER, "encoder_layers": 1, "decoder_layers": 1}, 80 + 3 * 272 + 2 * 228),
    ("estimate", {"params_per_expert": 3, "experts": 4, "experts_per_token": 1, "shared_params": 5}, 17),
    ("expression", {"expression": "linear(3, 4)"}, 16),
]


@pytest.mark.parametrize(("format", "config", "params"), FORMATS, ids=[row[0] for row in FORMATS])
def test_formats(format: str, config: dict[str, Any], params: int) -> None:
    arch = read_preset(preset(format, config))
    assert (arch.params_total, arch.name, arch.title, arch.sources) == (params, "net", "Net", ("a paper",))


def test_the_presets_words_come_first() -> None:
    plain = read_preset(preset("hf", GPT2))
    assert (plain.task, plain.max_positions, plain.notes) == ("causal-lm", 5, ())
    told = read_preset(preset("hf", GPT2, task="pretraining", max_positions=99, notes="by hand"))
    assert (told.task, told.max_positions, told.notes) == ("pretraining", 99, ("by hand",))


def test_notes_of_reader_and_preset_both_stand() -> None:
    notes = read_preset(preset("decoder", {**DECODER, "relative_positions": True}, notes="by hand")).notes
    assert notes == ("products with relative positions are not counted, their weights are", "by hand")


@pytest.mark.parametrize("format", ["hf", "decoder"])
def test_a_fault_says_which_preset(format: str) -> None:
    config = {**GPT2, "n_embd": 0} if format == "hf" else {**DECODER, "hidden": 0}
    with pytest.raises(ConfigError, match="is not possible in preset net: "):
        read_preset(preset(format, config))


IMAGES: list[tuple[dict[str, Any], tuple[int, ...] | None, dict[str, Any]]] = [
    ({"a": 1}, None, {"a": 1}),
    ({"a": 1}, (4, 6), {"a": 1, "image_size": [4, 6]}),
    ({"image_size": 224}, (4, 6), {"image_size": [4, 6]}),
    (
        {"vision_config": {"image_size": 224, "b": 2}},
        (4, 6),
        {"image_size": [4, 6], "vision_config": {"image_size": [4, 6], "b": 2}},
    ),
    ({"vision_config": 3}, (4, 6), {"image_size": [4, 6], "vision_config": 3}),
]


@pytest.mark.parametrize(("config", "image", "changed"), IMAGES)
def test_another_picture(config: dict[str, Any], image: tuple[int, ...] | None, changed: dict[str, Any]) -> None:
    before = repr(config)
    assert with_image(config, image) == changed
    assert repr(config) == before  # the catalogue's own row stays


def test_an_expression_takes_the_picture_too() -> None:
    row = preset("expression", {"expression": "conv2d(3, 4, kernel=3) @ 8x8"})
    small, large = (read_preset(row, size).leaves()[0].layer for size in (None, (10, 12)))
    assert small.out_size == (6, 6)  # type: ignore[attr-defined]
    assert large.out_size == (8, 10)  # type: ignore[attr-defined]


def test_a_picture_smaller_than_a_patch_is_refused() -> None:
    vit = {
        "model_type": "vit", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 4,
    }  # fmt: skip
    with pytest.raises(InputError, match="the patch is larger than the picture"):
        read_preset(preset("hf", vit), (8, 8))
