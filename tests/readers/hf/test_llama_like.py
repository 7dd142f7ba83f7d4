"""Families of the Llama shape on one small config: every parameter and FLOP by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.nouns.layers import Attention, Linear
from suanli.readers.hf import read_hf_config
from suanli.readers.hf.llama_like import FAMILIES, every

BASE: dict[str, Any] = {
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 12, "vocab_size": 10,
}  # fmt: skip
# a layer: q 64, k and v 32 each, o 64; gate, up and down 96 each; two norms of 8
ATTENTION, MLP = 192, 288
LLAMA = 80 + 2 * (ATTENTION + MLP + 16) + 8 + 80
TIED = LLAMA - 80
WEIGHTS = 2 * (ATTENTION + MLP) + 80  # multiplied by every token
PAIR = 4 * 4 * 2  # FLOPs of a query and a key: scores and context of four heads of two
FULL, NEAR = 1 + 2 + 3 + 4 + 5, 1 + 2 + 2 + 2 + 2  # pairs of five positions; of a window of two

QKV, OUT = 8 + 4 + 4, 8  # biases of a layer
WINDOW = {"sliding_window": 2}
TYPES = {"layer_types": ["full_attention", "sliding_attention"]}

# model_type, what is changed: parameters, weights multiplied, pairs of the two layers
CASES: list[tuple[str, dict[str, Any], int, int, int]] = [
    ("llama", {}, LLAMA, WEIGHTS, 2 * FULL),
    ("llama", {"tie_word_embeddings": True}, TIED, WEIGHTS, 2 * FULL),
    ("llama", {"attention_bias": True}, LLAMA + 2 * (QKV + OUT), WEIGHTS, 2 * FULL),
    ("llama", {"mlp_bias": True}, LLAMA + 2 * (12 + 12 + 8), WEIGHTS, 2 * FULL),
    ("llama", {"num_key_value_heads": 4}, LLAMA + 2 * 64, WEIGHTS + 2 * 64, 2 * FULL),
    ("llama", {"num_key_value_heads": None}, LLAMA + 2 * 64, WEIGHTS + 2 * 64, 2 * FULL),
    ("llama", WINDOW, LLAMA, WEIGHTS, 2 * FULL),  # not Llama's to have
    ("mistral", {}, LLAMA, WEIGHTS, 2 * FULL),
    ("mistral", WINDOW, LLAMA, WEIGHTS, 2 * NEAR),
    ("mistral", {"sliding_window": None}, LLAMA, WEIGHTS, 2 * FULL),
    ("ministral", WINDOW | TYPES, LLAMA, WEIGHTS, FULL + NEAR),
    ("qwen2", {}, LLAMA + 2 * QKV, WEIGHTS, 2 * FULL),
    ("qwen2", WINDOW, LLAMA + 2 * QKV, WEIGHTS, 2 * FULL),  # given, and switched off
    (
        "qwen2",
        WINDOW | {"use_sliding_window": True, "max_window_layers": 1},
        LLAMA + 2 * QKV,
        WEIGHTS,
        FULL + NEAR,
    ),
    ("qwen2", WINDOW | {"use_sliding_window": True, "max_window_layers": 0}, LLAMA + 2 * QKV, WEIGHTS, 2 * NEAR),
    ("qwen2", WINDOW | {"use_sliding_window": True}, LLAMA + 2 * QKV, WEIGHTS, 2 * FULL),  # from layer 28 on
    ("qwen3", {}, LLAMA + 2 * (2 + 2), WEIGHTS, 2 * FULL),  # norms as wide as a head
    ("qwen3", {"attention_bias": True}, LLAMA + 8 + 2 * (QKV + OUT), WEIGHTS, 2 * FULL),
    ("gemma", {}, TIED, WEIGHTS, 2 * FULL),
    ("gemma", {"tie_word_embeddings": False}, LLAMA, WEIGHTS, 2 * FULL),
    ("gemma2", WINDOW, TIED + 2 * 16, WEIGHTS, NEAR + FULL),  # four norms a layer; the first has the window
    ("gemma2", {}, TIED + 2 * 16, WEIGHTS, 2 * FULL),  # 4,096 unless given
    ("gemma3_text", WINDOW, TIED + 2 * 16 + 8, WEIGHTS, 2 * NEAR),  # the sixth layer would be full
    ("gemma3_text", WINDOW | {"sliding_window_pattern": 2}, TIED + 32 + 8, WEIGHTS, NEAR + FULL),
    ("gemma3_text", WINDOW | TYPES, TIED + 32 + 8, WEIGHTS, FULL + NEAR),
    ("phi3", {}, LLAMA, WEIGHTS, 2 * FULL),  # fused matrices hold the same
    ("phi3", WINDOW, LLAMA, WEIGHTS, 2 * NEAR),
    ("glm", {}, LLAMA + 2 * QKV, WEIGHTS, 2 * FULL),
    ("glm", {"attention_bias": False}, LLAMA, WEIGHTS, 2 * FULL),
    ("glm4", {}, LLAMA + 2 * QKV + 2 * 16, WEIGHTS, 2 * FULL),
    ("olmo", {}, LLAMA - 5 * 8, WEIGHTS, 2 * FULL),  # norms hold nothing
    ("olmo2", {}, LLAMA + 2 * (8 + 4), WEIGHTS, 2 * FULL),  # norms as wide as all heads
    ("smollm3", {}, TIED, WEIGHTS, 2 * FULL),
    ("smollm3", WINDOW | TYPES | {"use_sliding_window": True}, TIED, WEIGHTS, FULL + NEAR),
    ("cohere", {}, TIED - 2 * 8, WEIGHTS, 2 * FULL),  # one norm a layer
    ("cohere", {"use_qk_norm": True}, TIED - 16 + 2 * 12, WEIGHTS, 2 * FULL),
    ("cohere2", WINDOW, TIED - 16, WEIGHTS, 2 * NEAR),  # the fourth layer would be full
    ("cohere2", WINDOW | {"sliding_window_pattern": 2}, TIED - 16, WEIGHTS, NEAR + FULL),
    ("internlm2", {}, LLAMA, WEIGHTS, 2 * FULL),
    ("internlm2", {"bias": True}, LLAMA + 2 * (QKV + OUT), WEIGHTS, 2 * FULL),
    ("baichuan", {}, LLAMA + 2 * 64, WEIGHTS + 2 * 64, 2 * FULL),  # as many key heads as heads, whatever is said
    ("stablelm", {}, LLAMA + 5 * 8, WEIGHTS, 2 * FULL),  # five norms with shifts
    ("stablelm", {"use_qkv_bias": True}, LLAMA + 40 + 2 * QKV, WEIGHTS, 2 * FULL),
    ("stablelm", {"qk_layernorm": True}, LLAMA + 40 + 2 * 12, WEIGHTS, 2 * FULL),
    ("stablelm", {"use_parallel_residual": True}, LLAMA + 40 - 2 * 16, WEIGHTS, 2 * FULL),
    ("nemotron", {}, LLAMA + 40 - 2 * 96, WEIGHTS - 2 * 96, 2 * FULL),  # two matrices
    ("nemotron", {"mlp_bias": True}, LLAMA + 40 - 192 + 2 * (12 + 8), WEIGHTS - 192, 2 * FULL),
]


@pytest.mark.parametrize(
    ("family", "changed", "params", "weights", "pairs"), CASES, ids=[f"{n}-{row[0]}" for n, row in enumerate(CASES)]
)
def test_parameters_and_flops(
    family: str, changed: dict[str, Any], params: int, weights: int, pairs: int, reading: Callable[..., Any]
) -> None:
    found = reading({**BASE, "model_type": family, **changed})
    assert found.params == found.active == params
    assert found.forward == 2 * 5 * weights + pairs * PAIR


def test_every_family_is_in_the_table() -> None:
    assert {row[0] for row in CASES} == set(FAMILIES)


def test_wide_heads(reading: Callable[..., Any]) -> None:
    """Heads of 3 in a width of 8: q and o 96, k and v 48; a pair costs 4·4·3."""
    found = reading({**BASE, "model_type": "gemma", "head_dim": 3})
    assert found.params == TIED + 2 * (288 - ATTENTION)
    assert found.forward == 2 * 5 * (WEIGHTS + 2 * 96) + 2 * FULL * 48


# family: leaves of its first layer, attention and activation left out
NAMES = {
    "llama": "input_layernorm self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj "
    "post_attention_layernorm mlp.gate_proj mlp.up_proj mlp.down_proj",
    "phi3": "input_layernorm self_attn.qkv_proj self_attn.o_proj post_attention_layernorm mlp.gate_up_proj "
    "mlp.down_proj",
    "internlm2": "attention_norm attention.wqkv attention.wo ffn_norm feed_forward.w1 feed_forward.w3 feed_forward.w2",
    "gemma2": "input_layernorm self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj "
    "post_attention_layernorm pre_feedforward_layernorm mlp.gate_proj mlp.up_proj mlp.down_proj "
    "post_feedforward_layernorm",
    "glm4": "input_layernorm self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj "
    "post_self_attn_layernorm post_attention_layernorm mlp.gate_up_proj mlp.down_proj post_mlp_layernorm",
    "olmo2": "self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.q_norm self_attn.k_norm self_attn.o_proj "
    "post_attention_layernorm mlp.gate_proj mlp.up_proj mlp.down_proj post_feedforward_layernorm",
    "cohere": "input_layernorm self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj "
    "mlp.gate_proj mlp.up_proj mlp.down_proj",
    "nemotron": "input_layernorm self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj "
    "post_attention_layernorm mlp.up_proj mlp.down_proj",
}


@pytest.mark.parametrize(("family", "names"), NAMES.items())
def test_names_are_those_of_the_published_model(family: str, names: str) -> None:
    arch = read_hf_config({**BASE, "model_type": family}, "net")
    inside = [placed for placed in arch.leaves() if placed.in_block]
    first = [placed for placed in inside if placed.block == inside[0].block]
    held = [placed.layer.name for placed in first if placed.layer.params]
    assert held == names.split()


def test_the_head_of_a_tied_model_is_multiplied_and_not_held() -> None:
    head = read_hf_config({**BASE, "model_type": "gemma"}, "net").leaves()[-1].layer
    assert isinstance(head, Linear)
    assert (head.tied, head.role, head.params, head.weight_params) == (True, "lm_head", 0, 80)


def test_windows_lie_where_the_pattern_says() -> None:
    config = {**BASE, "model_type": "gemma3_text", "num_hidden_layers": 7, "sliding_window": 3}
    found = {p.path: p.layer.window for p in read_hf_config(config, "net").leaves() if isinstance(p.layer, Attention)}
    assert found == {
        "model.layers.0,1,2,3,4,6.self_attn.attention": 3,
        "model.layers.5.self_attn.attention": None,
    }


@pytest.mark.parametrize(("period", "full"), [(1, [0, 1, 2, 3, 4, 5]), (2, [1, 3, 5]), (4, [3]), (6, [5]), (7, [])])
def test_every(period: int, full: list[int]) -> None:
    assert [i for i in range(6) if every(period)(i) == "full_attention"] == full


def test_a_layer_type_without_its_window_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        read_hf_config({**BASE, "model_type": "llama", **TYPES}, "net")
    assert str(caught.value) == (
        "layer_types has an unknown entry in config: layer_types; got 'sliding_attention'; expected full_attention."
    )
