"""Attention as one kernel: which arguments are q, k and v, how they lie, and what the mask leaves.

Charged is what the kernel computes: two products forward, five backward (it computes the scores again), over the
pairs that a causal mask leaves, as flash kernels skip the rest; `Call.full_pairs` charges every pair, as torch's
counter does. A kernel that reads a mask as a tensor skips nothing and is charged for every pair; one with a window, or
with lengths that are tensors, is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from suanli.explain.ops.call import NO_SHAPES, Call, Cost, Shape, misfit, unknown
from suanli.formulas import counting, operators

LENGTHS = "attention over packed or paged sequences: their lengths are tensors, which a trace does not hold"
NO_MASK_FLAG = "attention without is_causal recorded (shapes recorded, values not)"
WINDOWED = "attention with a window whose pairs the kernel skips"


@dataclass(frozen=True)
class Places:
    """Where a kernel's arguments stand."""

    causal: int
    query: int = 0
    time_first: bool = False  # [B, T, H, d]; else [B, H, T, d]
    last_aligned: bool = False  # the last query sees every key, where there are more keys than queries
    offsets: int = -1  # an argument that is a tensor where sequences are packed
    backward: bool = False
    window: int = -1  # the reach to the left, at this place, and to the right, at the next; or both, as a list
    kinds: bool = False  # `causal` holds a kind: 0 none, 1 aligned first, 2 aligned last


def _back(causal: int, **others: Any) -> Places:
    """A backward kernel: the output's gradient stands before q, k and v."""
    return Places(causal, query=1, backward=True, **others)


def _flash(causal: int, **others: Any) -> Places:
    """A kernel of the flash-attn package."""
    return Places(causal, time_first=True, last_aligned=True, **others)


FUSED: dict[str, Places] = {
    "aten::scaled_dot_product_attention": Places(5),
    "aten::_scaled_dot_product_flash_attention": Places(4),
    "aten::_scaled_dot_product_flash_attention_for_cpu": Places(4),
    "aten::_scaled_dot_product_efficient_attention": Places(6),
    "aten::_scaled_dot_product_cudnn_attention": Places(6),
    "aten::_scaled_dot_product_fused_attention_overrideable": Places(5),
    "aten::_flash_attention_forward": _flash(8, offsets=3, window=11),
    "aten::_efficient_attention_forward": Places(9, offsets=4, time_first=True, kinds=True, window=13),
    "aten::_cudnn_attention_forward": Places(10, offsets=4),
    "aten::_scaled_dot_product_flash_attention_backward": _back(11, offsets=6),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _back(7),
    "aten::_scaled_dot_product_efficient_attention_backward": _back(11),
    "aten::_scaled_dot_product_cudnn_attention_backward": _back(14, offsets=9),
    "aten::_flash_attention_backward": _flash(11, query=1, backward=True, offsets=6, window=15),
    "aten::_efficient_attention_backward": _back(14, offsets=6, time_first=True, kinds=True, window=18),
    "flash_attn::_flash_attn_forward": _flash(5, window=6),
    "flash_attn::_flash_attn_backward": _flash(11, query=1, backward=True, window=12),
    "FlashAttnFunc": _flash(5),
    "aiter::_flash_attn_forward": _flash(5, window=6),
    "aiter::mha_fwd": _flash(5, window=6),
    "aiter::fmha_v3_fwd": _flash(5, window=6),
}
# Their lengths, or what they skip, are tensors: FLOPs cannot be known from shapes.
PACKED = (
    "flash_attn::_flash_attn_varlen_forward", "flash_attn::_flash_attn_varlen_backward", "flash_attn_3::fwd",
    "flash_attn_3::bwd", "FlashAttnVarlenFunc", "aiter::mha_varlen_fwd", "aiter::mha_varlen_bwd",
    "aiter::mha_batch_prefill", "aiter::paged_attention_rocm", "aiter::paged_attention_v1", "aiter::pa_fwd_asm",
    "aiter::mla_decode_fwd", "aiter::fmha_v3_varlen_fwd", "vllm::unified_attention", "vllm::unified_mla_attention",
    "vllm::unified_attention_with_output", "vllm::unified_mla_attention_with_output", "_C::paged_attention_v1",
    "_C::paged_attention_v2", "_rocm_C::paged_attention", "_vllm_fa2_C::varlen_fwd", "_vllm_fa3_C::fwd",
    "sgl_kernel::fwd", "sglang::unified_attention_with_output", "fbgemm::gqa_attn_splitk", "flex_attention",
    "flex_attention_backward", "aten::_padded_dense_to_jagged_forward",
)  # fmt: skip


def fused(call: Call) -> Cost:
    """One call of a fused kernel."""
    places = FUSED[call.name]
    query, key, value = (call.shape(places.query + i) for i in range(3))
    if query is None or key is None or value is None:
        return unknown(NO_SHAPES)
    if len(query) < 4 or (places.offsets >= 0 and call.shape(places.offsets) is not None):
        return unknown(LENGTHS)
    if not len(query) == len(key) == len(value):
        return misfit(call)
    if _windowed(call, places) and not call.full_pairs:
        return unknown(WINDOWED)
    kind = 0 if call.full_pairs else _mask(call, places)
    if kind not in (0, 1, 2):
        return unknown(NO_MASK_FLAG)
    operands = (call.type(places.query), call.type(places.query + 1))
    return kernel_cost(*_sizes(query, key, value, places.time_first), kind, places.backward, operands)


def fused_sizes(call: Call) -> tuple[int, int, int, int, int, int, int, bool, bool] | None:
    """Batch, heads of queries and of keys, T, S, width of a query and of a value, causal, backward, of a fused kernel.

    None where its FLOPs are not known or none, and where under a causal mask the last query does not see every key.
    """
    if call.name not in FUSED or not fused(call).flops:
        return None
    places = FUSED[call.name]
    query, key, value = (call.shape(places.query + i) or () for i in range(3))
    batch, heads, queries, keys, qk_dim, v_dim = _sizes(query, key, value, places.time_first)
    kind = _mask(call, places)
    if kind and (queries > keys or (kind == 1 and queries < keys)):
        return None
    kv_heads = key[-2 if places.time_first else -3]
    return batch, heads, kv_heads, queries, keys, qk_dim, v_dim, bool(kind), places.backward


def packed(_: Call) -> Cost:
    """A kernel over sequences of unknown lengths."""
    return unknown(LENGTHS)


def _windowed(call: Call, places: Places) -> bool:
    """Whether a reach to the left or right is set: none is -1 or not given."""
    if places.window < 0:
        return False
    sides = call.wholes(places.window) or (call.whole(places.window), call.whole(places.window + 1))
    return any(side is not None and side >= 0 for side in sides)


def _mask(call: Call, places: Places) -> int | None:
    """0 every pair, 1 causal from the first key, 2 causal to the last; None where the trace does not say."""
    if places.kinds:
        return call.whole(places.causal)
    causal = call.flag(places.causal)
    if causal is None:
        return None
    return causal * (2 if places.last_aligned else 1)


def _sizes(query: Shape, key: Shape, value: Shape, time_first: bool) -> tuple[int, int, int, int, int, int]:
    """Batch, heads of the queries, T, S, width of a query, width of a value."""
    heads, time = (-2, -3) if time_first else (-3, -2)
    return prod(query[:-3]), query[heads], query[time], key[time], query[-1], value[-1]


def kernel_cost(
    batch: int, heads: int, queries: int, keys: int, qk_dim: int, v_dim: int, kind: int, backward: bool,
    operands: tuple[str, ...],
) -> Cost:  # fmt: skip
    """With grouped queries every query head multiplies."""
    left = (counting.full_pairs, counting.first_aligned_pairs, counting.last_aligned_pairs)[kind]
    pairs = batch * left(queries, keys)
    if not backward:
        flops = counting.attention_flops(pairs, heads, qk_dim, v_dim)
        return Cost(flops, counting.attention_flops.__name__, operands)
    form = operators.attention_backward_flops
    again = operators.attention_scores_flops(pairs, heads, qk_dim)
    return Cost(form(pairs, heads, qk_dim, v_dim) + again, form.__name__, operands)
