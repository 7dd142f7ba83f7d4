"""Bytes that one leaf keeps for backward, as a function of its shape and of positions: one rule a kind of leaf.

Both a whole model (`footprint`) and a rank's part of one (`plan.sharding`) ask here; positions and the sizes of a leaf
may be whole numbers, symbols or arrays.
"""

from __future__ import annotations

from math import prod
from typing import Any

from suanli.nouns.layers import (
    Attention,
    BlockLinear,
    CausalConv,
    Conv,
    Elementwise,
    Experts,
    Layer,
    Linear,
    Norm,
    Recurrent,
    Scan,
)

FP32_BYTES = 4


def kept_bytes(layer: Layer, tokens: Any, key_tokens: Any, size: int) -> Any:
    """Bytes one copy keeps, the S² scores of attention and the logits apart, at `size` bytes an element.

    `tokens` are the positions that pass, `key_tokens` those whose keys and values an attention keeps.
    """
    if isinstance(layer, Attention):
        return size * (tokens * layer.heads * layer.qk_dim + key_tokens * layer.kv_heads * (layer.qk_dim + layer.v_dim))
    masks = layer.mask_bytes if isinstance(layer, Elementwise) else 0
    return tokens * (size * kept_elements(layer) + masks)


def logits_bytes(layer: Layer, tokens: Any) -> Any:
    """What the loss keeps of a head's output: the logits in fp32; 0 for other leaves."""
    is_head = isinstance(layer, Linear) and layer.role == "lm_head"
    return tokens * FP32_BYTES * layer.out_features if is_head and isinstance(layer, Linear) else 0


def kept_elements(layer: Layer) -> Any:  # noqa: PLR0911 (one line a kind)
    """Elements a position keeps for backward."""
    if isinstance(layer, Linear):
        return 0 if layer.shares_input else layer.in_features
    if isinstance(layer, Norm):
        return layer.dim * layer.per
    if isinstance(layer, Elementwise):
        return layer.saved
    if isinstance(layer, Experts):
        return layer.top_k * (layer.hidden + layer.ffn)
    if isinstance(layer, Conv):
        return layer.in_channels * prod(layer.in_size)
    if isinstance(layer, Scan):
        return layer.read_width
    if isinstance(layer, CausalConv | BlockLinear):
        return layer.channels if isinstance(layer, CausalConv) else layer.in_features
    if isinstance(layer, Recurrent):  # inputs, gate values and states of every step
        inner = layer.num_layers * layer.directions * (layer.gates + 1) * layer.hidden_size
        return sum(layer.depth_inputs()) + inner
    return 0


def scores_bytes(layer: Layer, tokens: Any, keys: Any, size: int) -> Any:
    """Softmax output of an unfused attention; with dropout its mask and its output too (5as²b in 16 bit).

    `keys` is how many a query meets.
    """
    if not isinstance(layer, Attention):
        return 0
    each = size + (1 + size if layer.dropout else 0)
    return tokens * (layer.keys or keys) * layer.heads * each


def statistics_bytes(layer: Layer, tokens: Any) -> Any:
    """Log-sum-exp a fused attention keeps in fp32 for each query and head (arXiv:2205.14135 §3.1)."""
    return FP32_BYTES * tokens * layer.heads if isinstance(layer, Attention) else 0
