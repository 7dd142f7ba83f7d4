"""Sound classifiers and speech to text against transformers, at two lengths of sound each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.readers.hf import read_hf_config, sound, speech
from suanli.readers.hf.odd_ones import read_sew_d

pytestmark = pytest.mark.torch

SMALL = {
    "hidden_size": 72, "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 104, "num_labels": 7,
    "classifier_proj_size": 20,
}  # fmt: skip
CONVS = {
    "conv_dim": [24, 40], "conv_stride": [5, 4], "conv_kernel": [10, 7], "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 9, "num_conv_pos_embedding_groups": 4, "conv_bias": True,
}  # fmt: skip
WAVE = SMALL | CONVS
NORMED = WAVE | {"feat_extract_norm": "layer", "do_stable_layer_norm": True, "use_weighted_layer_sum": True}
SIDES = {
    "vocab_size": 96, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 6,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 104, "decoder_ffn_dim": 88,
}  # fmt: skip
CLASSES = {
    "wav2vec2": "Wav2Vec2ForSequenceClassification", "hubert": "HubertForSequenceClassification",
    "unispeech": "UniSpeechForSequenceClassification", "unispeech-sat": "UniSpeechSatForSequenceClassification",
    "data2vec-audio": "Data2VecAudioForSequenceClassification", "wavlm": "WavLMForSequenceClassification",
    "sew": "SEWForSequenceClassification", "wav2vec2-conformer": "Wav2Vec2ConformerForSequenceClassification",
    "wav2vec2-bert": "Wav2Vec2BertForSequenceClassification",
    "audio-spectrogram-transformer": "ASTForAudioClassification",
    "speech_to_text": "Speech2TextForConditionalGeneration", "moonshine": "MoonshineForConditionalGeneration",
    "speecht5": "SpeechT5ForSpeechToText", "sew-d": "SEWDForSequenceClassification",
}  # fmt: skip
WRITERS = {"speech_to_text", "moonshine", "speecht5"}
ODD: list[tuple[str, dict[str, Any], int]] = [
    *((each, NORMED, n) for each in ("wav2vec2", "hubert", "wavlm") for n in (999, 2000)),
    *((each, WAVE, n) for each in ("unispeech", "unispeech-sat", "wavlm") for n in (999, 2000)),
    ("data2vec-audio", WAVE | {"conv_pos_kernel_size": 5, "num_conv_pos_embeddings": 2}, 999),
    ("sew", WAVE | {"squeeze_factor": 3}, 999),
    ("sew", WAVE | {"num_conv_pos_embeddings": 8}, 2000),
    ("sew-d", WAVE | {"squeeze_factor": 3, "position_buckets": 8}, 999),
    (
        "sew-d",
        WAVE
        | {"share_att_key": False, "position_buckets": -1, "max_relative_positions": 9, "pos_att_type": ["c2p"],
           "norm_rel_ebd": "none"},
        2000,
    ),
    ("wav2vec2-conformer", WAVE | {"position_embeddings_type": "rotary", "conv_depthwise_kernel_size": 5}, 999),
    ("wav2vec2-conformer", WAVE | {"conv_depthwise_kernel_size": 5}, 2000),
    (
        "wav2vec2-bert",
        SMALL
        | {"feature_projection_input_dim": 20, "conv_depthwise_kernel_size": 5, "left_max_position_embeddings": 5},
        33,
    ),
    (
        "audio-spectrogram-transformer",
        SMALL | {
            "patch_size": 8, "frequency_stride": 5, "time_stride": 6, "max_length": 51, "num_mel_bins": 20,
            "qkv_bias": False,
        },
        51,
    ),
    (
        "speech_to_text",
        SIDES | {
            "d_model": 72, "num_conv_layers": 3, "conv_kernel_sizes": [5, 3, 3], "conv_channels": 40,
            "input_feat_per_channel": 20, "max_target_positions": 64, "max_source_positions": 60,
        },
        77,
    ),
    (
        "moonshine",
        {
            "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "encoder_num_hidden_layers": 3,
            "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 6, "decoder_num_attention_heads": 6,
            "encoder_num_key_value_heads": 6, "decoder_num_key_value_heads": 6, "attention_bias": True,
            "max_position_embeddings": 64,
        },
        5000,
    ),
    (
        "speecht5",
        SIDES | CONVS | {
            "hidden_size": 72, "feat_extract_norm": "layer", "encoder_max_relative_position": 9,
            "max_text_positions": 64,
        },
        999,
    ),
]  # fmt: skip
DEFAULT_SIZES = {
    "wav2vec2-bert": (100, 77), "speech_to_text": (100, 77), "audio-spectrogram-transformer": (1024,),
}  # fmt: skip


def check(agrees: Callable[..., None], model_type: str, values: dict[str, Any], length: int) -> None:
    inputs: dict[str, Any] = {"input_values": (length,)}
    size = {"audio_samples": length}
    if model_type == "audio-spectrogram-transformer":
        inputs, size = {"input_values": (length, values.get("num_mel_bins", 128))}, {}
    elif model_type == "wav2vec2-bert":
        inputs = {"input_features": (length, values.get("feature_projection_input_dim", 160))}
        size = {"audio_frames": length}
    elif model_type == "speech_to_text":
        inputs = {"input_features": (length, values.get("input_feat_per_channel", 80))}
        size = {"audio_frames": length}
    if model_type in WRITERS:
        inputs["decoder_input_ids"] = ("S",)
    agrees(
        model_type, CLASSES[model_type], values, inputs, size=size,
        lengths=(16, 29) if model_type in WRITERS else (16,), device="cpu" if model_type == "sew-d" else "meta",
        dtype="float32" if model_type == "sew-d" else "bfloat16",
    )  # fmt: skip


@pytest.mark.parametrize(("model_type", "values", "length"), ODD, ids=[f"{t}-{i}" for i, (t, *_) in enumerate(ODD)])
def test_small_and_odd(model_type: str, values: dict[str, Any], length: int, agrees: Callable[..., None]) -> None:
    check(agrees, model_type, values, length)


@pytest.mark.full
@pytest.mark.parametrize("model_type", sorted(CLASSES))
def test_default_config(model_type: str, agrees: Callable[..., None]) -> None:
    for length in DEFAULT_SIZES.get(model_type, (16_000, 20_150)):
        check(agrees, model_type, {}, length)


@pytest.mark.parametrize(
    "change", [{"add_adapter": True}, {"audio_samples": 100}, {"conv_dim": [512]}, {"adapter_attn_dim": 4}]
)
def test_what_is_not_read_is_refused(change: dict[str, Any]) -> None:
    kernels = {"conv_dim": [24] * 7, "conv_stride": [5] + [2] * 6, "conv_kernel": [10, 3, 3, 3, 3, 2, 2]}
    places = {"num_conv_pos_embeddings": 9, "num_conv_pos_embedding_groups": 4}
    with pytest.raises(ConfigError):
        read_hf_config({"model_type": "wav2vec2", **SMALL, **kernels, **places, **change}, "refused")


def test_every_family_has_cases() -> None:
    families = {**sound.FAMILIES, **speech.FAMILIES, "sew-d": read_sew_d}
    assert {model_type for model_type, *_ in ODD} == set(CLASSES) == set(families)
