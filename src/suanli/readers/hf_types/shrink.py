"""A small odd config of any model type from its default one, by what the keys mean: widths, heads, layers, experts.

Small, so that a whole run is quick; odd, so that a mistake shows: fewer key–value heads than heads, heads that do not
make up the width, an untied head, windows shorter than the text, counts that do not divide one another.
Only keys that are there are changed, so that what a class derives from them (lists of layers) is derived anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

VOCAB = 96
LONGEST = 128  # positions

# What a key means, and its small number; the first pattern that fits counts. Numbers already smaller stay.
TEXT: tuple[tuple[str, int], ...] = (
    (r"vocab_size|n_vocab|.*_vocab_size|vocab_size_.*|entity_vocab_size", VOCAB),
    (r"max_position_embeddings|n_positions|n_ctx|max_.*_positions|max_seq_len|max_sequence_length", LONGEST),
    (r"moe_intermediate_size|expert_ffn_.*|.*expert_intermediate_size|moe_ffn_.*", 40),
    (r"shared_.*intermediate_size|.*shared_expert.*_size", 56),
    (r"intermediate_size.*|.*ffn_dim|ffn_hidden_size|n_inner|d_ff|dff|.*ffn_size|d_inner|hidden_dim|mlp_dim"
     r"|dense_intermediate_size|prefix_dense_intermediate_size|.*_intermediate_size", 104),
    (r"hidden_size_per_layer_input", 12),
    (r"embedding_size|input_embedding_size|.*_emb_size|pronunciation_embed_dim|shape_embed_dim|entity_emb_size", 40),
    (r"output_embedding_size", 56),
    (r"hidden_size|d_model|n_embd|dim|embed_dim|emb_dim|model_dim|word_embed_proj_dim|out_hidden_size|output_dim"
     r"|output_proj_dim|hidden_channels", 72),
    (r"num_key_value_heads|num_kv_heads|n_head_kv|kv_n_heads|num_.*_key_value_heads|.*_num_key_value_heads", 2),
    (r"index_n_heads", 3),
    (r"mamba_n_heads|mamba_num_heads|n_mamba_heads", 9),
    (r"linear_num_key_heads", 2),
    (r"num_attention_heads|n_heads?|num_heads|.*attention_heads|.*num_heads|attention_heads", 6),
    (r"q_lora_rank", 24),
    (r"kv_lora_rank", 16),
    (r"qk_nope_head_dim", 8),
    (r"qk_rope_head_dim", 4),
    (r"v_head_dim", 6),
    (r"index_head_dim", 8),
    (r"index_topk", 5),
    (r"mamba_d_head|mamba_head_dim", 16),
    (r"linear_key_head_dim|linear_head_dim", 10),
    (r"linear_value_head_dim", 14),
    (r"d_kv|head_dim|kv_channels|d_head|attention_head_dim|attention_head_size|qk_head_dim", 10),
    (r"mamba_n_groups|mamba_ngroups|n_groups", 3),
    (r"mamba_d_state|ssm_state_size|state_size|d_state", 10),
    (r"mamba_d_conv|conv_kernel|.*conv_kernel_dim|conv1d_width|d_conv", 3),
    (r"mamba_chunk_size|chunk_size|block_size", 32),
    (r"num_experts_per_tok(en)?|moe_k|moe_topk|moe_top_k|top_k_experts|experts_per_token|expert_top_k", 3),
    (r"num_.*shared_experts|n_shared_experts", 2),
    (r"num_experts|num_local_experts|n_routed_experts|moe_num_experts|num_routed_experts", 8),
    (r"n_group|num_expert_group", 2),
    (r"topk_group|limited_groups", 1),
    (r"first_k_dense_replace|num_dense_layers|moe_layer_start_index", 1),
    (r"attention_chunk_size", 8),
    (r"(sliding_)?window_size|sliding_window|attention_window_size|.*sliding_window_size", 5),
    (r"rotary_dim", 4),
    (r"num_(hidden_)?layers|n_layers?|num_.*coder_layers|.*coder_layers|depth|num_.*_layers|layers", 4),
    (r"relative_attention_num_buckets|num_buckets", 8),
)  # fmt: skip
SEEN: tuple[tuple[str, int], ...] = (
    (r"image_size|resolution", 32),
    (r"patch_size", 8),
    (r"intermediate_size|.*ffn_dim|mlp_dim", 88),
    (r"projection_dim", 40),
    (r"out_hidden_size|vision_output_dim", 72),
    (r"hidden_size|d_model|embed_dim|dim", 48),
    (r"num_attention_heads|n_heads?|num_heads|attention_heads|num_key_value_heads", 4),
    (r"head_dim", 12),
    (r"num_(hidden_)?layers|n_layers?|depth", 3),
)
HEARD: tuple[tuple[str, int], ...] = (
    (r"num_mel_bins|feature_size", 8),
    (r"max_source_positions", 20),
    (r"intermediate_size|.*ffn_dim", 96),
    (r"output_dim|out_hidden_size", 72),
    (r"hidden_size|d_model|embed_dim", 48),
    (r".*attention_heads|num_heads|num_key_value_heads", 4),
    (r"head_dim", 12),
    (r".*layers", 2),
)
PARTS = (
    (r"vision.*|.*image.*|vit.*|sam.*|high_res.*", SEEN),
    (r"audio.*|speech.*|.*acoustic.*|.*semantic_tok.*", HEARD),
)
LAYER_NUMBERS = r".*_ind(ex|ic)es|cross_attention_layers|.*attn_layers"
WINDOWED = ("use_sliding_window",)
UNTIED = "tie_word_embeddings"


@dataclass(frozen=True, kw_only=True)
class Oddity:
    """How far from usual a small config is; where a class takes none of these, a plainer one is tried."""

    grouped: bool = True  # fewer key–value heads than heads
    wide: bool = True  # heads that do not make up the width
    windows: bool = True
    layers: int = 4


PLAINER = (
    Oddity(),
    Oddity(layers=6),
    Oddity(wide=False),
    Oddity(grouped=False),
    Oddity(grouped=False, wide=False),
    Oddity(grouped=False, wide=False, windows=False),
    Oddity(grouped=False, wide=False, layers=12),
)


def shrunk(values: Mapping[str, Any], oddity: Oddity = PLAINER[0]) -> dict[str, Any]:
    """Keys to give in place of the defaults in `values`, parts within parts."""
    return dict(_changes(values, oddity, TEXT, VOCAB))


Rules = tuple[tuple[str, int], ...]


def _changes(values: Mapping[str, Any], oddity: Oddity, rules: Rules, vocab: int) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if key == "per_layer_config":
            yield key, {}  # what single layers have of their own
        elif isinstance(value, Mapping):
            if "model_type" in value:
                inner = next((rule for pattern, rule in PARTS if re.fullmatch(pattern, key)), rules)
                yield key, {"model_type": value["model_type"], **dict(_changes(value, oddity, inner, vocab))}
        elif key == UNTIED and rules is TEXT:
            yield key, False
        elif key in WINDOWED and oddity.windows:
            yield key, True
        elif re.fullmatch(LAYER_NUMBERS, key):
            yield from _numbers_of_layers(key, value, oddity, rules)
        elif key.endswith(("token_id", "token_index")):
            yield from _token(key, value, vocab)
        elif not isinstance(value, bool):
            yield from _number(key, value, oddity, rules, values)


def _token(key: str, value: Any, vocab: int) -> Iterator[tuple[str, Any]]:
    """A word's number past the small vocabulary becomes one of its last, the same for the same number."""
    if isinstance(value, int) and value >= vocab:
        yield key, vocab - 1 - value % (vocab // 2)


def _numbers_of_layers(key: str, value: Any, oddity: Oddity, rules: Rules) -> Iterator[tuple[str, Any]]:
    """A list of layers' numbers, each among those that are left."""
    if isinstance(value, list) and all(isinstance(each, int) for each in value):
        left = 3 if rules is SEEN else oddity.layers
        yield key, sorted({each % left for each in value})


def _number(
    key: str, value: Any, oddity: Oddity, rules: Rules, siblings: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    small = next((number for pattern, number in rules if re.fullmatch(pattern, key)), None)
    if small is None or isinstance(value, list | tuple | str | float):
        return
    if value is None:
        return
    if re.fullmatch(r"(qk_)?head_dim", key) and "qk_rope_head_dim" in siblings:
        return  # made of its parts
    if _is("layers", key) or key in ("depth", "n_layer"):
        small = min(small, oddity.layers) if small != 4 else oddity.layers
    if "key_value_heads" in key or ("kv" in key and "heads" in key):
        small = small if oddity.grouped else dict(rules_of_heads(rules))["heads"]
    if key == "head_dim" and not oddity.wide:
        small = {TEXT: 12}.get(rules, small)
    if "window" in key and not oddity.windows:
        return
    if value > small:
        yield key, small


def _is(what: str, key: str) -> bool:
    return key.endswith(what)


def rules_of_heads(rules: Rules) -> Iterator[tuple[str, int]]:
    """The heads of these rules."""
    for pattern, number in rules:
        if re.fullmatch(pattern, "num_attention_heads"):
            yield "heads", number
