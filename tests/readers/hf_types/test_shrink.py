"""Small odd configs from defaults: what each key becomes, and what stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suanli.readers.hf_types.shrink import LONGEST, PLAINER, VOCAB, Oddity, shrunk

LLAMA = {
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128,
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "attention_bias": False, "tie_word_embeddings": True,
    "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 31999, "sliding_window": 4096, "rope_scaling": None,
}  # fmt: skip


def test_a_decoder_becomes_small_and_odd() -> None:
    """Two of six heads for keys, 6 × 10 ≠ 72, untied, a window shorter than any text, ids within the vocabulary."""
    assert shrunk(LLAMA) == {
        "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_hidden_layers": 4,
        "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10, "max_position_embeddings": 128,
        "tie_word_embeddings": False, "eos_token_id": 96 - 1 - 31999 % 48, "sliding_window": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("oddity", "key", "value"),
    [
        (Oddity(grouped=False), "num_key_value_heads", 6),
        (Oddity(wide=False), "head_dim", 12),
        (Oddity(layers=6), "num_hidden_layers", 6),
    ],
)
def test_plainer_ones(oddity: Oddity, key: str, value: int) -> None:
    assert shrunk(LLAMA, oddity)[key] == value


def test_without_windows_the_window_stays() -> None:
    assert "sliding_window" not in shrunk(LLAMA, Oddity(windows=False))
    assert shrunk({"use_sliding_window": False}) == {"use_sliding_window": True}
    assert shrunk({"use_sliding_window": False}, Oddity(windows=False)) == {}


CASES = [
    ({"n_routed_experts": 256, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4, "n_shared_experts": 1},
     {"n_routed_experts": 8, "num_experts_per_tok": 3, "n_group": 2, "topk_group": 1}),
    ({"num_experts_per_tok": 1}, {}),  # routed to one stays so
    ({"qk_rope_head_dim": 64, "head_dim": 64, "qk_head_dim": 192}, {"qk_rope_head_dim": 4}),  # made of its parts
    ({"num_hidden_layers": 2, "hidden_size": 16}, {}),  # smaller already
    ({"global_attn_indexes": [2, 5, 8, 11]}, {"global_attn_indexes": [0, 1, 2, 3]}),
    ({"per_layer_config": {"25": {"head_dim": 8}}}, {"per_layer_config": {}}),
    ({"layer_types": ["full_attention"] * 32, "hidden_act": "silu", "rope_theta": 1e4, "scale": 2.5}, {}),
    ({"encoder_layers": 12, "decoder_layers": 6, "decoder_ffn_dim": 4096, "encoder_attention_heads": 16},
     {"encoder_layers": 4, "decoder_layers": 4, "decoder_ffn_dim": 104, "encoder_attention_heads": 6}),
    ({"mamba_n_heads": 128, "mamba_d_head": 64, "mamba_d_state": 256, "mamba_chunk_size": 256, "mamba_d_conv": 4},
     {"mamba_n_heads": 9, "mamba_d_head": 16, "mamba_d_state": 10, "mamba_chunk_size": 32, "mamba_d_conv": 3}),
]  # fmt: skip


@pytest.mark.parametrize(("values", "expected"), CASES, ids=[str(i) for i in range(len(CASES))])
def test_keys_by_what_they_mean(values: dict[str, Any], expected: dict[str, Any]) -> None:
    assert shrunk(values) == expected


def test_parts_have_numbers_of_their_own() -> None:
    """A tower is narrower than the decoder, and what hears narrower still; a part without a type is left alone."""
    values = {
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336, "patch_size": 14,
                          "out_hidden_size": 4096, "deepstack_visual_indexes": [8, 16, 24]},
        "audio_config": {"model_type": "whisper", "d_model": 1280, "num_mel_bins": 128, "encoder_layers": 32},
        "text_config": {"model_type": "llama", "hidden_size": 4096, "tie_word_embeddings": True},
        "rope_parameters": {"rope_theta": 10000},
    }  # fmt: skip
    assert shrunk(values) == {
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 48, "image_size": 32, "patch_size": 8,
                          "out_hidden_size": 72, "deepstack_visual_indexes": [0, 1, 2]},
        "audio_config": {"model_type": "whisper", "d_model": 48, "num_mel_bins": 8, "encoder_layers": 2},
        "text_config": {"model_type": "llama", "hidden_size": 72, "tie_word_embeddings": False},
    }  # fmt: skip


VALUES = st.one_of(st.none(), st.booleans(), st.integers(-5, 200_000), st.floats(0, 1), st.text(max_size=5),
                   st.lists(st.integers(0, 99), max_size=4))  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from([*LLAMA, "n_head", "d_ff", "image_token_id", "depth"]), VALUES))
def test_it_only_makes_whole_numbers_smaller_and_only_where_they_are(values: dict[str, Any]) -> None:
    for oddity in PLAINER:
        for key, value in shrunk(values, oddity).items():
            assert key in values
            assert isinstance(value, bool) or (isinstance(value, int) and 0 <= value < values[key])
        json.dumps(shrunk(values, oddity))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6))
def test_words_stay_in_the_vocabulary(word: int) -> None:
    small = shrunk({"pad_token_id": word}).get("pad_token_id", word)
    assert 0 <= small < VOCAB <= LONGEST
