"""Families with experts on one small config: held and active parameters and every FLOP by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.nouns.layers import Attention, Buffer, Experts
from suanli.readers.hf import read_hf_config
from suanli.readers.hf.mixtures import FAMILIES

BASE: dict[str, Any] = {
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 12, "vocab_size": 10,
}  # fmt: skip
LOCAL = {**BASE, "num_local_experts": 4, "num_experts_per_tok": 2}
SMALL = {**BASE, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 5}
QWEN2 = {**SMALL, "shared_expert_intermediate_size": 6}
LLAMA4 = {**LOCAL, "num_experts_per_tok": 1}
GLM = {**BASE, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 5}
DEEPSEEK = {
    **GLM, "q_lora_rank": 6, "kv_lora_rank": 5, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "v_head_dim": 7,
    "n_shared_experts": 1, "first_k_dense_replace": 1,
}  # fmt: skip
DBRX = {
    "d_model": 8, "n_layers": 2, "n_heads": 4, "vocab_size": 10, "max_seq_len": 7, "attn_config": {"kv_n_heads": 2},
    "ffn_config": {"ffn_hidden_size": 12, "moe_num_experts": 4, "moe_top_k": 2},
}  # fmt: skip

OUTSIDE = 80 + 8 + 80  # lookup, last norm, head
ATTENTION, NORMS, ROUTER = 192, 16, 32
DENSE = ATTENTION + NORMS + 288
BIG, LITTLE = 3 * 8 * 12, 3 * 8 * 5  # an expert of 12, of 5
QKV, OUT = 16, 8

MIXTRAL = ATTENTION + NORMS + ROUTER + 4 * BIG
QWEN_MOE = ATTENTION + QKV + NORMS + ROUTER + 4 * LITTLE + 3 * 8 * 6 + 8  # a shared expert of 6 behind a gate
QWEN3 = ATTENTION + 2 * 2 + NORMS + ROUTER + 4 * LITTLE
OSS = ATTENTION + QKV + OUT + 4 + NORMS + ROUTER + 4 + 4 * (BIG + 24 + 8)  # sinks 4; experts' biases 2·12 and 8
SCOUT = ATTENTION + NORMS + ROUTER + 4 * BIG + BIG
GLM_MOE = ATTENTION + NORMS + ROUTER + 4 * LITTLE + LITTLE
# q 8·6 and 6·4·6, latent 8·7, kv 5·4·11, o 28·8; norms 6 and 5
MLA, MLA_NORMS = 48 + 144 + 56 + 220 + 224, 11
DEEP_DENSE = MLA + MLA_NORMS + NORMS + 288
DEEP_MOE = MLA + MLA_NORMS + NORMS + ROUTER + 4 * LITTLE + LITTLE
LIGHTNING = 192 + 8 + 64 + 64 + NORMS + ROUTER + 4 * BIG  # qkv, norm, output gate, out

PAIR = 4 * 4 * 2
FULL, NEAR, CHUNK = 15, 9, 1 + 2 + 1 + 2 + 1  # of five positions: all, a window of two, chunks of two

# model_type, config: held, active, weights multiplied, FLOPs of attention
CASES: list[tuple[str, dict[str, Any], int, int, int, int]] = [
    ("mixtral", LOCAL, OUTSIDE + 2 * MIXTRAL, OUTSIDE + 2 * (MIXTRAL - 2 * BIG), 2 * 800 + 80, 2 * FULL * PAIR),
    ("mixtral", {**LOCAL, "sliding_window": 2}, 2952, 1800, 1680, 2 * NEAR * PAIR),
    ("mixtral", {**LOCAL, "num_experts_per_tok": 4}, 2952, 2952, 2 * (192 + 32 + 4 * 288) + 80, 2 * FULL * PAIR),
    (
        "qwen2_moe",
        QWEN2,
        OUTSIDE + 2 * QWEN_MOE,
        OUTSIDE + 2 * (QWEN_MOE - 2 * LITTLE),
        2 * (192 + 32 + 240 + 144 + 8) + 80,
        2 * FULL * PAIR,
    ),
    (
        "qwen2_moe",
        {**QWEN2, "mlp_only_layers": [0]},
        OUTSIDE + DENSE + QKV + QWEN_MOE,
        OUTSIDE + DENSE + QKV + QWEN_MOE - 240,
        480 + 616 + 80,
        2 * FULL * PAIR,
    ),
    (  # every second layer
        "qwen2_moe",
        {**QWEN2, "decoder_sparse_step": 2},
        OUTSIDE + DENSE + QKV + QWEN_MOE,
        OUTSIDE + DENSE + QKV + QWEN_MOE - 240,
        1176,
        2 * FULL * PAIR,
    ),
    (
        "qwen2_moe",
        {**QWEN2, "qkv_bias": False},
        OUTSIDE + 2 * (QWEN_MOE - QKV),
        OUTSIDE + 2 * (QWEN_MOE - QKV - 240),
        2 * 616 + 80,
        2 * FULL * PAIR,
    ),
    (
        "qwen3_moe",
        SMALL,
        OUTSIDE + 2 * QWEN3,
        OUTSIDE + 2 * (QWEN3 - 240),
        2 * (192 + 32 + 240) + 80,
        2 * FULL * PAIR,
    ),
    (
        "olmoe",
        {**BASE, "num_experts": 4, "num_experts_per_tok": 2},
        OUTSIDE + 2 * (MIXTRAL + 12),
        OUTSIDE + 2 * (MIXTRAL + 12 - 2 * BIG),
        1680,
        2 * FULL * PAIR,
    ),
    ("phimoe", LOCAL, OUTSIDE + 8 + 2 * (MIXTRAL + 16), 1800 + 5 * 8, 1680, 2 * FULL * PAIR),  # five shifts
    (
        "phimoe",
        {**LOCAL, "lm_head_bias": True, "attention_bias": True, "sliding_window": 2},
        2952 + 40 + 10 + 2 * 24,
        1800 + 40 + 10 + 48,
        1680,
        2 * NEAR * PAIR,
    ),
    (
        "gpt_oss",
        {**LOCAL, "sliding_window": 2},
        OUTSIDE + 2 * OSS,
        OUTSIDE + 2 * (OSS - 2 * 320),
        1680,
        (NEAR + FULL) * PAIR,
    ),
    ("gpt_oss", {**LOCAL, "attention_bias": False}, 3272 - 48, 1992 - 48, 1680, 2 * FULL * PAIR),
    (
        "llama4_text",
        {**LLAMA4, "attention_chunk_size": 2},
        OUTSIDE + 2 * SCOUT,
        OUTSIDE + 2 * (SCOUT - 3 * BIG),
        2 * (192 + 32 + 576) + 80,
        2 * CHUNK * PAIR,
    ),
    (  # every second layer sparse, the other as wide as it says; every second layer sees everything
        "llama4_text",
        {
            **LLAMA4, "interleave_moe_layer_step": 2, "intermediate_size_mlp": 16, "attention_chunk_size": 2,
            "no_rope_layer_interval": 2,
        },
        OUTSIDE + 192 + 16 + 3 * 8 * 16 + SCOUT,
        OUTSIDE + 592 + SCOUT - 3 * BIG,
        576 + 800 + 80,
        (CHUNK + FULL) * PAIR,
    ),
    (  # said layer by layer
        "llama4_text",
        {**LLAMA4, "moe_layers": [0], "no_rope_layers": [0, 1], "attention_chunk_size": 2},
        OUTSIDE + SCOUT + DENSE,
        OUTSIDE + SCOUT - 3 * BIG + DENSE,
        800 + 480 + 80,
        (FULL + CHUNK) * PAIR,
    ),
    ("llama4_text", {**LLAMA4, "moe_layers": []}, OUTSIDE + 2 * DENSE, OUTSIDE + 2 * DENSE, 1040, 2 * FULL * PAIR),
    ("glm4_moe", GLM, OUTSIDE + DENSE + GLM_MOE, OUTSIDE + DENSE + GLM_MOE - 240, 480 + 584 + 80, 2 * FULL * PAIR),
    (
        "glm4_moe",
        {**GLM, "first_k_dense_replace": 0, "n_shared_experts": 2, "use_qk_norm": True, "attention_bias": True},
        OUTSIDE + 2 * (GLM_MOE + LITTLE + 4 + QKV),
        OUTSIDE + 2 * (GLM_MOE + LITTLE + 4 + QKV - 240),
        2 * (192 + 32 + 240 + 240) + 80,
        2 * FULL * PAIR,
    ),
    ("minimax_m2", LOCAL, OUTSIDE + 2 * (MIXTRAL + 12), 1800 + 24, 1680, 2 * FULL * PAIR),
    (  # the first layer full; the second twice 2·5·4·2·2 for its state
        "minimax",
        LOCAL,
        OUTSIDE + MIXTRAL + LIGHTNING,
        OUTSIDE + MIXTRAL + LIGHTNING - 4 * BIG,
        800 + 320 + 32 + 576 + 80,
        FULL * PAIR + 2 * 160,
    ),
    (
        "minimax",
        {**LOCAL, "layer_types": ["linear_attention", "linear_attention"]},
        OUTSIDE + 2 * LIGHTNING,
        OUTSIDE + 2 * (LIGHTNING - 2 * BIG),
        2 * 928 + 80,
        2 * 320,
    ),
    (  # a pair: 2·4·(6 + 7)
        "deepseek_v3",
        DEEPSEEK,
        OUTSIDE + DEEP_DENSE + DEEP_MOE,
        OUTSIDE + DEEP_DENSE + DEEP_MOE - 240,
        2 * MLA + 288 + 32 + 240 + 120 + 80,
        2 * FULL * 104,
    ),
    (
        "deepseek_v2",
        {**DEEPSEEK, "q_lora_rank": None, "n_shared_experts": 0, "first_k_dense_replace": 0},
        OUTSIDE + 2 * (DEEP_MOE - LITTLE - 198 + 192),  # one matrix of 8·24 for 48 + 6 + 144
        OUTSIDE + 2 * (DEEP_MOE - LITTLE - 6 - 240),
        2 * (MLA + 32 + 240) + 80,
        2 * FULL * 104,
    ),
    (
        "kimi_k2",
        {**DEEPSEEK, "attention_bias": True},
        OUTSIDE + DEEP_DENSE + DEEP_MOE + 2 * (6 + 7 + 8),
        OUTSIDE + DEEP_DENSE + DEEP_MOE + 42 - 240,
        2144,
        2 * FULL * 104,
    ),
    ("dbrx", DBRX, OUTSIDE + 2 * MIXTRAL, 1800, 1680, 2 * FULL * PAIR),
]  # fmt: skip


@pytest.mark.parametrize(
    ("family", "config", "held", "active", "weights", "attention"),
    CASES,
    ids=[f"{n}-{row[0]}" for n, row in enumerate(CASES)],
)
def test_parameters_and_flops(
    family: str,
    config: dict[str, Any],
    held: int,
    active: int,
    weights: int,
    attention: int,
    reading: Callable[..., Any],
) -> None:
    found = reading({**config, "model_type": family})
    assert (found.params, found.active) == (held, active)
    assert found.forward == 2 * 5 * weights + attention


def test_every_family_is_in_the_table() -> None:
    assert {row[0] for row in CASES} == set(FAMILIES)


# family: elements of the buffers that correct the router
BUFFERS = [
    ("glm4_moe", GLM, 4),  # one mixture of four experts
    ("minimax_m2", LOCAL, 8),
    ("deepseek_v3", DEEPSEEK, 4),
    ("kimi_k2", DEEPSEEK, 4),
    ("deepseek_v2", DEEPSEEK, 0),
    ("mixtral", LOCAL, 0),
]


@pytest.mark.parametrize(("family", "config", "elements"), BUFFERS)
def test_buffers_are_no_parameters(family: str, config: dict[str, Any], elements: int) -> None:
    arch = read_hf_config({**config, "model_type": family}, "net")
    assert arch.buffer_elements == elements
    assert all(placed.layer.params == 0 for placed in arch.leaves() if isinstance(placed.layer, Buffer))


# family: router and experts, as in the published model
NAMES = [
    ("mixtral", LOCAL, "model.layers.0-1.mlp.gate", "model.layers.0-1.mlp.experts"),
    ("phimoe", LOCAL, "model.layers.0-1.mlp.router", "model.layers.0-1.mlp.experts"),
    ("gpt_oss", LOCAL, "model.layers.0.mlp.router", "model.layers.0.mlp.experts"),
    ("llama4_text", LLAMA4, "model.layers.0-1.feed_forward.router", "model.layers.0-1.feed_forward.experts"),
    ("deepseek_v3", DEEPSEEK, "model.layers.1.mlp.gate", "model.layers.1.mlp.experts"),
    ("dbrx", DBRX, "transformer.blocks.0-1.ffn.router.layer", "transformer.blocks.0-1.ffn.experts"),
]


@pytest.mark.parametrize(("family", "config", "router", "experts"), NAMES, ids=[row[0] for row in NAMES])
def test_names_of_router_and_experts(family: str, config: dict[str, Any], router: str, experts: str) -> None:
    leaves = read_hf_config({**config, "model_type": family}, "net").leaves()
    assert next(p.path for p in leaves if getattr(p.layer, "role", "") == "router") == router
    assert next(p.path for p in leaves if isinstance(p.layer, Experts)) == experts


def test_a_latent_is_what_the_cache_keeps() -> None:
    arch = read_hf_config({**DEEPSEEK, "model_type": "deepseek_v3"}, "net")
    cores = {placed.layer for placed in arch.leaves() if isinstance(placed.layer, Attention)}
    assert cores == {
        Attention(name="self_attn.attention", heads=4, kv_heads=4, qk_dim=6, v_dim=7, latent_dim=7)
    }  # fmt: skip


NOTES = [
    ("deepseek_v3", DEEPSEEK, ()),
    (
        "deepseek_v3",
        {**DEEPSEEK, "num_nextn_predict_layers": 1},
        ("without the multi-token-prediction layer, as the published model class",),
    ),
    ("llama4_text", LLAMA4, ("text decoder only",)),
    ("minimax", LOCAL, ("lightning attention counted as its recurrence; chunked kernels compute more",)),
]


@pytest.mark.parametrize(("family", "config", "notes"), NOTES)
def test_notes(family: str, config: dict[str, Any], notes: tuple[str, ...]) -> None:
    assert read_hf_config({**config, "model_type": family}, "net").notes == notes


FAULTS = [
    (
        "mixtral",
        {**LOCAL, "num_experts_per_tok": 5},
        ["a token is routed to more experts than there are in config: num_experts_per_tok; got 5 of 4."],
    ),
    ("mixtral", {**LOCAL, "num_local_experts": None},
     ["missing key num_local_experts in config: num_local_experts; got null; expected a whole number."]),
    (
        "dbrx",
        {**DBRX, "ffn_config": {"ffn_hidden_size": 12, "moe_num_experts": 4, "moe_top_k": 5}},
        ["a token is routed to more experts than there are in config: ffn_config: moe_top_k; got 5 of 4."],
    ),
    (
        "dbrx",
        {**DBRX, "attn_config": {"kv_n_heads": 3}},
        [
            "the number of key/value heads does not divide the number of heads in config: attn_config: kv_n_heads; "
            "got 4 heads, 3 key/value heads."
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("family", "config", "sentences"), FAULTS)
def test_faults(family: str, config: dict[str, Any], sentences: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_hf_config({**config, "model_type": family}, "net")
    found = [fault.sentence().split("; nearest")[0].rstrip(".") + "." for fault in caught.value.faults]
    assert found == sentences
