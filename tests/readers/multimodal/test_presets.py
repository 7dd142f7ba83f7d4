"""Presets of multimodal models, and the descriptions a user may give: another picture, another phase, mistakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from suanli import count
from suanli.catalog.presets import presets
from suanli.errors import ConfigError
from suanli.readers.hf import COMPOSED, READERS, read_hf_config
from suanli.readers.hf.composed import SAME_AS
from suanli.readers.preset import read_named_preset, read_preset

NAMES = sorted(name for name, preset in presets().items() if preset.config.get("model_type") in COMPOSED)
SAMPLED = {"llava-1.5-7b", "gemma-3-4b-vision", "qwen2.5-vl-7b", "llama-3.2-11b-vision"}
LLAVA = dict(presets()["llava-1.5-7b"].config)


@pytest.mark.torch
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SAMPLED else pytest.mark.full) for name in NAMES]
)
def test_preset_has_the_parameters_of_its_class(name: str, module_differences: Any) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    auto = pytest.importorskip("transformers.models.auto.modeling_auto")
    names = {**auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, **auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES}
    values = dict(presets()[name].config)
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    with torch.device("meta"):
        model = getattr(transformers, names[config.model_type])._from_config(config, dtype=torch.bfloat16)
    arch = read_preset(presets()[name])
    assert arch.params_total == presets()[name].params == sum(each.numel() for each in model.parameters())
    assert module_differences(arch, model) == []


NEEDED = {"chameleon": {"vq_config": {}, "vocabulary_map": {"<image>": 5}}}  # what a default cannot do without
IMPOSSIBLE = {"aya_vision": "14 heads do not divide 1,152"}  # transformers cannot build its own default


@pytest.mark.torch
@pytest.mark.full
@pytest.mark.parametrize("kind", sorted(set(COMPOSED) - set(IMPOSSIBLE)))
def test_default_description_has_the_parameters_of_its_class(kind: str, module_differences: Any) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    auto = pytest.importorskip("transformers.models.auto.modeling_auto")
    names = {**auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, **auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES}
    config = transformers.AutoConfig.for_model(kind, **NEEDED.get(kind, {}))
    values = json.loads(json.dumps(config.to_dict(), default=str))
    decoder = values.get("text_config", values)["model_type"]
    if SAME_AS.get(decoder, decoder) not in READERS and kind not in OWN_DECODERS:
        pytest.skip(f"nobody reads {decoder} yet")
    with torch.device("meta"):
        model = getattr(transformers, names[kind])._from_config(config, dtype=torch.bfloat16)
    arch = read_hf_config(values, "default")
    assert module_differences(arch, model) == []
    assert arch.params_total == sum(each.numel() for each in model.parameters())


OWN_DECODERS = {"mllama", "git", "blip", "kosmos-2", "kosmos-2.5", "chameleon"}


def test_a_picture_that_cannot_be_cut_is_not_counted() -> None:
    config = dict(presets()["gemma-3-4b-vision"].config)
    odd = read_hf_config({**config, "vision_config": {**config["vision_config"], "image_size": 140}}, "odd")
    blind, text = (count(arch, seq=64).result for arch in (odd, "gemma-3-4b"))
    assert (blind.units, blind.flops.forward) == (text.units, text.flops.forward)
    assert odd.notes[0].startswith("pictures of 140x140 cannot be cut into tokens as the description says")
    held = odd.params_total - read_named_preset("gemma-3-4b-vision").params_total
    assert held == (10 * 10 - 64 * 64) * 1152  # the table of positions alone is shorter


# Forward FLOPs of transformers on the meta device, by FlopCounterMode (shared/data/expected_counts.csv).
EXPECTED = [
    (128, "full", 9_969_056_972_800), (2048, "full", 38_691_315_220_480), (8192, "full", 156_578_503_819_264),
    (128, "causal", 9_839_318_761_472), (2048, "causal", 36_887_043_080_192), (8192, "causal", 136_427_742_003_200),
]  # fmt: skip


@pytest.mark.parametrize(("seq", "convention", "flops"), EXPECTED)
def test_llava(seq: int, convention: str, flops: int) -> None:
    assert count("llava-1.5-7b", seq=seq, convention=convention).result.flops.forward == flops


def test_a_decoded_token_is_one_position_and_sees_the_picture() -> None:
    found = count("llava-1.5-7b", phase="decode", seq=1000).result
    assert found.units == 1
    rows = {row.name: row.hardware_flops for row in found.rows}
    assert not any(flops for name, flops in rows.items() if "vision_tower" in name or "projector" in name)
    # 32 layers of QKᵀ and AV over 1,000 tokens of text and 576 of the picture, 4,096 wide; beside four projections
    attention = rows["model.language_model.layers.0-31.self_attn"]
    assert attention == 32 * (2 * 2 * 1576 * 4096 + 4 * 2 * 4096 * 4096)
    cache = count("llava-1.5-7b", phase="decode", seq=1000).result.bytes.kv_cache
    assert cache == 2 * 2 * 32 * 4096 * 1576


def test_a_batch_has_a_picture_each() -> None:
    one, four = (count("gemma-3-4b-vision", seq=64, batch=batch).result.flops.forward for batch in (1, 4))
    assert four == 4 * one


def test_another_picture() -> None:
    small, large = (read_named_preset("qwen2.5-vl-7b", size) for size in ((224, 224), (1036, 700)))
    assert [max(stream.extra for stream in arch.streams) for arch in (small, large)] == [64, 37 * 25]
    assert small.params_total == large.params_total
    assert large.notes[0].startswith("one picture 1036x700 (3,700 positions)")
    assert "assumed" in read_named_preset("qwen2.5-vl-7b").notes[0]
    tiled = read_named_preset("llava-v1.6-mistral-7b", (672, 1000))
    assert "in 5 tiles of 336x336" in tiled.notes[0]


MISTAKES = [
    ({"text_config": None}, "missing part text_config"),
    ({"vision_config": "clip"}, "missing part vision_config"),
    ({"vision_config": {**LLAVA["vision_config"], "image_size": 10}}, "the patch is larger than the picture"),
    ({"vision_config": {**LLAVA["vision_config"], "image_size": None}}, "missing key image_size"),
    ({"vision_config": {**LLAVA["vision_config"], "num_attention_heads": 7}}, "heads does not divide the width"),
    ({"vision_config": {**LLAVA["vision_config"], "model_type": "resnet"}}, "model_type is not possible"),
    ({"text_config": {**LLAVA["text_config"], "model_type": "llamma"}}, "unknown model_type 'llamma'"),
    ({"text_config": {**LLAVA["text_config"], "hidden_size": -1}}, "hidden_size is not possible"),
    ({"vision_feature_select_strategy": "some"}, "vision_feature_select_strategy is not possible"),
    ({"image_size": [100, 100]}, "every picture is resized to the size the tower takes"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), MISTAKES)
def test_mistakes_are_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_hf_config({**LLAVA, **change}, "wrong")
    assert said in str(caught.value)


def test_all_mistakes_of_all_parts_are_told_together() -> None:
    text, vision = {**LLAVA["text_config"], "vocab_size": 0}, {**LLAVA["vision_config"], "patch_size": "small"}
    with pytest.raises(ConfigError) as caught:
        read_hf_config({**LLAVA, "text_config": text, "vision_config": vision}, "wrong")
    assert {fault.where for fault in caught.value.faults} == {
        "config: text_config: vocab_size", "config: vision_config: patch_size",
    }  # fmt: skip


def test_a_picture_that_is_no_whole_number_of_steps() -> None:
    with pytest.raises(ConfigError, match="no whole number of steps"):
        read_named_preset("qwen2-vl-7b", (100, 100))


@pytest.mark.parametrize("kind", sorted(COMPOSED))
def test_an_empty_description_is_one_clear_error(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"missing (part|key)"):
        read_hf_config({"model_type": kind}, "empty")
