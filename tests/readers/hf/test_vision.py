"""ViT and CLIP on small pictures: patches, classifier and both towers by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.nouns.layers import Attention, Conv
from suanli.readers.config import Config
from suanli.readers.hf import read_hf_config
from suanli.readers.hf.vision import FAMILIES, image_size

VIT: dict[str, Any] = {
    "model_type": "vit", "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 12,
    "image_size": 8, "patch_size": 4, "num_labels": 5,
}  # fmt: skip
LAYER = 256 + 32 + 192 + 20 + 2 * 16
PATCH = 3 * 4 * 4 * 8  # of three colours
VIT_TOTAL = 8 + 5 * 8 + PATCH + 8 + 2 * LAYER + 16 + 8 * 5 + 5  # class token, 2·2 + 1 positions, …, classifier

PICTURES: list[tuple[dict[str, Any], int, int]] = [
    # what is changed: parameters, positions
    ({}, VIT_TOTAL, 5),
    ({"image_size": [8, 12]}, VIT_TOTAL + 2 * 8, 7),  # 2·3 patches
    ({"image_size": (12, 12)}, VIT_TOTAL + 5 * 8, 10),
    ({"image_size": 11}, VIT_TOTAL, 5),  # what is left of a patch is cut off
    ({"num_channels": 1}, VIT_TOTAL - 2 * 128, 5),
    ({"num_labels": 7}, VIT_TOTAL + 2 * 9, 5),
    ({"num_labels": None}, VIT_TOTAL - 3 * 9, 5),  # two unless told
    ({"num_labels": None, "id2label": {str(i): "a" for i in range(6)}}, VIT_TOTAL + 9, 5),
    ({"num_labels": None, "label2id": {"a": 0, "b": 1, "c": 2}}, VIT_TOTAL - 2 * 9, 5),
    ({"num_labels": None, "id2label": {}}, VIT_TOTAL - 3 * 9, 5),
    ({"patch_size": 2}, VIT_TOTAL + 12 * 8 - (PATCH - 3 * 4 * 8), 17),
]


@pytest.mark.parametrize(("changed", "params", "positions"), PICTURES)
def test_vit(changed: dict[str, Any], params: int, positions: int, reading: Callable[..., Any]) -> None:
    found = reading({**VIT, **changed})
    assert found.params == params
    patch, colours = changed.get("patch_size", 4), changed.get("num_channels", 3)
    labels = (params - VIT_TOTAL) // 9 + 5 if "num_labels" in changed else 5
    conv = 2 * (positions - 1) * colours * patch * patch * 8
    layers = 2 * (2 * positions * 448 + positions**2 * 32)
    assert found.forward == conv + layers + 2 * 8 * labels  # classified once a picture
    assert found.arch.max_positions == positions


def test_seq_changes_nothing(reading: Callable[..., Any]) -> None:
    assert reading(VIT).forward == reading(VIT, seq=999).forward
    assert reading(VIT, batch=3).forward == 3 * reading(VIT).forward


def test_pixels_need_no_gradient(reading: Callable[..., Any]) -> None:
    """Three forwards less the patches' input gradient, 2·4·48·8."""
    assert reading(VIT, phase="train").forward == 3 * reading(VIT).forward - 2 * 4 * 48 * 8


def test_what_a_vit_is() -> None:
    arch = read_hf_config(VIT, "net")
    assert (arch.main_stream, arch.unit, arch.task, arch.decodes) == ("patches", "patch", "image-classification", False)
    assert arch.notes == ("picture 8x8: 5 positions with the class token",)
    assert arch.shape is not None and arch.shape.vocab == 5
    conv = next(placed.layer for placed in arch.leaves() if isinstance(placed.layer, Conv))
    assert (conv.kernel, conv.in_size, conv.out_size, conv.bias) == ((4, 4), (8, 8), (2, 2), True)


def test_names_of_a_vit() -> None:
    held = [placed.path for placed in read_hf_config(VIT, "net").leaves() if placed.layer.params]
    at = "vit.layers.0-1"
    assert held == [
        "vit.embeddings.cls_token",
        "vit.embeddings.position_embeddings",
        "vit.embeddings.patch_embeddings.projection",
        f"{at}.layernorm_before",
        *(f"{at}.attention.{name}_proj" for name in "qkvo"),
        f"{at}.layernorm_after",
        f"{at}.mlp.fc1",
        f"{at}.mlp.fc2",
        "vit.layernorm",
        "classifier",
    ]


# --- CLIP ---------------------------------------------------------------------------------------------------------

TEXT = {
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 12, "vocab_size": 10,
    "max_position_embeddings": 7,
}  # fmt: skip
PICTURE = {
    "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 6, "image_size": 8,
    "patch_size": 4,
}  # fmt: skip
CLIP: dict[str, Any] = {"model_type": "clip", "projection_dim": 3, "text_config": TEXT, "vision_config": PICTURE}
WORDS = 80 + 56 + 2 * LAYER + 16
PIXEL_LAYER = 64 + 16 + 48 + 10 + 2 * 8
PIXELS = 4 + 3 * 16 * 4 + 5 * 4 + 8 + PIXEL_LAYER + 8  # class, patches without bias, positions, norms before and after
JOINED = 4 * 3 + 8 * 3 + 1  # projections and the scale of the logits

CLIPS = [
    (CLIP, WORDS + PIXELS + JOINED),
    ({**CLIP, "projection_dim": None}, WORDS + PIXELS + 12 * 512 + 1),
    ({**CLIP, "text_config": {**TEXT, "vocab_size": None}}, WORDS - 80 + 49_408 * 8 + PIXELS + JOINED),
    ({**CLIP, "text_config": {**TEXT, "max_position_embeddings": None}}, WORDS + 70 * 8 + PIXELS + JOINED),
    ({**CLIP, "vision_config": {**PICTURE, "num_channels": 1}}, WORDS + PIXELS - 2 * 64 + JOINED),
]


@pytest.mark.parametrize(("config", "params"), CLIPS)
def test_parameters_of_clip(config: dict[str, Any], params: int, reading: Callable[..., Any]) -> None:
    assert reading(config).params == params


@pytest.mark.parametrize("batch", [1, 3])
def test_flops_of_clip(batch: int, reading: Callable[..., Any]) -> None:
    """Text of five tokens, causal; picture of five positions; every text against every picture: 2·B·3·B."""
    text = 2 * (2 * 5 * 448 + 15 * 32)
    picture = 2 * 4 * 48 * 4 + 2 * 5 * 112 + 25 * 16
    projections = 2 * (4 * 3 + 8 * 3)
    assert reading(CLIP, batch=batch).forward == batch * (text + picture + projections) + 2 * batch * 3 * batch


def test_towers_of_clip() -> None:
    arch = read_hf_config(CLIP, "net")
    cores = [(p.stream, p.times, p.layer.mask, p.layer.heads) for p in arch.leaves() if isinstance(p.layer, Attention)]
    assert cores == [("tokens", 2, "causal", 4), ("patches", 1, "full", 2)]
    assert (arch.max_positions, arch.task, arch.main_stream) == (7, "contrastive", "tokens")
    assert arch.notes == ("one text of --seq tokens with one picture 8x8 (5 positions)",)
    assert not arch.decodes


def test_every_family_is_here() -> None:
    assert set(FAMILIES) == {VIT["model_type"], CLIP["model_type"]}


# --- sizes and faults ---------------------------------------------------------------------------------------------

SIZES = [
    ({}, (224, 224)),
    ({"image_size": 8}, (8, 8)),
    ({"image_size": [8, 12]}, (8, 12)),
    ({"image_size": (8, 12)}, (8, 12)),
]


@pytest.mark.parametrize(("values", "size"), SIZES)
def test_sizes_of_pictures(values: dict[str, Any], size: tuple[int, int]) -> None:
    assert image_size(Config(values, "config")) == size


FAULTS = [
    (
        {**VIT, "image_size": 3},
        ["the patch is larger than the picture in config: patch_size; got 4, picture 3x3."],
    ),
    (
        {**VIT, "image_size": [8, 3]},
        ["the patch is larger than the picture in config: patch_size; got 4, picture 8x3."],
    ),
    (
        {**VIT, "num_attention_heads": 3},
        ["the number of heads does not divide the width in config: num_attention_heads; got 3 heads, width 8."],
    ),
    (
        {**CLIP, "text_config": None, "vision_config": {**PICTURE, "num_attention_heads": 3}},
        [
            "missing part text_config in config: text_config; expected a nested description.",
            "missing key hidden_size in config: text_config: hidden_size; expected a whole number.",
            "missing key num_attention_heads in config: text_config: num_attention_heads; expected a whole number.",
            "the number of heads does not divide the width in config: vision_config: num_attention_heads; "
            "got 3 heads, width 4.",
            "missing key intermediate_size in config: text_config: intermediate_size; expected a whole number.",
            "missing key num_hidden_layers in config: text_config: num_hidden_layers; expected a whole number.",
        ],
    ),
]


@pytest.mark.parametrize(("config", "sentences"), FAULTS)
def test_faults(config: dict[str, Any], sentences: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_hf_config(config, "net")
    assert [fault.sentence() for fault in caught.value.faults] == sentences
