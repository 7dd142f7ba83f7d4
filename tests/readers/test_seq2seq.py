"""Encoder–decoders against transformers: default configs and small odd ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.readers.hf import seq2seq, t5_like

pytestmark = pytest.mark.torch

BART = {
    "vocab_size": 96, "d_model": 72, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 6,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 104, "decoder_ffn_dim": 88, "max_position_embeddings": 64,
}  # fmt: skip
T5 = {
    "vocab_size": 96, "d_model": 72, "d_kv": 10, "d_ff": 104, "num_layers": 3, "num_decoder_layers": 2, "num_heads": 6,
    "relative_attention_num_buckets": 8,
}  # fmt: skip
PROPHET = {
    "vocab_size": 96, "hidden_size": 72, "num_encoder_layers": 3, "num_decoder_layers": 2,
    "num_encoder_attention_heads": 6, "num_decoder_attention_heads": 4, "encoder_ffn_dim": 104, "decoder_ffn_dim": 88,
    "max_position_embeddings": 64, "ngram": 3, "num_buckets": 8,
}  # fmt: skip
GEMMA = {
    "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 2, "head_dim": 10, "sliding_window": 5,
}  # fmt: skip
SPARSE = {"num_layers": 4, "num_sparse_encoder_layers": 2, "num_sparse_decoder_layers": 2, "num_experts": 4}

CLASSES = {
    "mbart": "MBartForConditionalGeneration", "plbart": "PLBartForConditionalGeneration",
    "mvp": "MvpForConditionalGeneration", "m2m_100": "M2M100ForConditionalGeneration", "marian": "MarianMTModel",
    "pegasus": "PegasusForConditionalGeneration", "blenderbot": "BlenderbotForConditionalGeneration",
    "blenderbot-small": "BlenderbotSmallForConditionalGeneration", "fsmt": "FSMTForConditionalGeneration",
    "t5": "T5ForConditionalGeneration", "mt5": "MT5ForConditionalGeneration", "umt5": "UMT5ForConditionalGeneration",
    "switch_transformers": "SwitchTransformersForConditionalGeneration",
    "pop2piano": "Pop2PianoForConditionalGeneration", "prophetnet": "ProphetNetForConditionalGeneration",
    "t5gemma": "T5GemmaForConditionalGeneration",
}  # fmt: skip
DEFAULTS: dict[str, dict[str, Any]] = {"switch_transformers": {"vocab_size": 200}}
ODD: list[tuple[str, dict[str, Any]]] = [
    *((each, BART) for each in ("mbart", "plbart", "mvp", "m2m_100", "pegasus", "blenderbot", "blenderbot-small")),
    ("marian", BART | {"pad_token_id": 0}),
    ("marian", BART | {"pad_token_id": 0, "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 80}),
    ("fsmt", BART | {"src_vocab_size": 96, "tgt_vocab_size": 80}),
    ("mt5", T5 | {"tie_word_embeddings": False}),
    ("umt5", T5),
    ("switch_transformers", T5 | SPARSE),
    ("pop2piano", T5 | {"composer_vocab_size": 7}),
    ("prophetnet", PROPHET),
    ("t5gemma", {"encoder": GEMMA, "decoder": GEMMA | {"hidden_size": 48}, "vocab_size": 96}),
]
CACHED = {"fsmt", "prophetnet"}  # these build their masks themselves


def check(agrees: Callable[..., None], model_type: str, values: dict[str, Any]) -> None:
    masks: dict[str, Any] = {"attention_mask": (1, "S", "S"), "decoder_attention_mask": (1, "S", "S")}
    words: dict[str, Any] = {"input_ids": ("S",)}
    if model_type == "pop2piano":  # its encoder takes spectrogram frames as wide as the model
        words = {"inputs_embeds": ("S", values.get("d_model", 512))}
    routed = model_type == "switch_transformers"
    inputs = words | {"decoder_input_ids": ("S",)}
    inputs |= {"use_cache": False} if routed else {"use_cache": True} if model_type in CACHED else masks
    agrees(
        model_type, CLASSES[model_type], values, inputs, size={}, lengths=(16, 29),
        device="cpu" if routed else "meta", dtype="bfloat16",
    )  # fmt: skip


@pytest.mark.parametrize(("model_type", "values"), ODD, ids=[f"{t}-{i}" for i, (t, _) in enumerate(ODD)])
def test_small_and_odd(model_type: str, values: dict[str, Any], agrees: Callable[..., None]) -> None:
    check(agrees, model_type, values)


@pytest.mark.full
@pytest.mark.parametrize("model_type", sorted(CLASSES))
def test_default_config(model_type: str, agrees: Callable[..., None]) -> None:
    check(agrees, model_type, DEFAULTS.get(model_type, {}))


def test_every_family_has_cases() -> None:
    small = {model_type for model_type, _ in ODD} | {"t5"}  # T5 is compared in test_against_transformers.py too
    assert small == set(CLASSES) == set({**seq2seq.FAMILIES, **t5_like.FAMILIES})
