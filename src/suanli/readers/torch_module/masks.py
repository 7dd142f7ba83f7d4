"""Pairs of positions an attention call works on: every one, and those its mask is known to leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from suanli.formulas import counting


@dataclass(frozen=True, slots=True)
class Pairs:
    """`every` pair of query and key over the batch, and those `left` by the mask; equal where it is not known."""

    every: int
    left: int


def batch_heads(query: Any) -> tuple[int, int]:
    """Sequences and heads of […, H, T, d]; without heads there is one."""
    lead = tuple(query.shape[:-2])
    return (prod(lead[:-1]), lead[-1]) if lead else (1, 1)


def dense_pairs(batch: int, queries: int, keys: int, causal: bool, aligned_last: bool = False) -> Pairs:
    """Pairs of a batch of equal lengths."""
    every = counting.full_pairs(queries, keys)
    masked = counting.last_aligned_pairs if aligned_last else counting.first_aligned_pairs
    left = masked(queries, keys) if causal else every
    return Pairs(batch * every, batch * left)


def lengths(offsets: Any) -> list[int] | None:
    """Lengths of packed sequences, None where their offsets hold no values (the meta device).

    Offsets that were an input of the module are remembered beside the meta tensor that stands for them.
    """
    if offsets is None:
        return None
    known = getattr(offsets, VALUES, None)
    if known is None and offsets.device.type != "meta":
        known = offsets.tolist()
    return None if known is None else [b - a for a, b in pairwise(known)]


VALUES = "suanli_values"  # attribute of a meta tensor: the whole numbers it stands for
MAX_VALUES = 65_536


_OFFSETS = (
    ("cum_seq_q", "cum_seq_k"), ("cu_seq_q", "cu_seq_k"), ("cu_seqlens_q", "cu_seqlens_k"),
    ("cu_seqlens_q_", "cu_seqlens_k_"),
)  # fmt: skip
_LONGEST = (("max_q", "max_k"), ("max_seqlen_q", "max_seqlen_k"))


def _first(at: Mapping[str, Any], names: Sequence[tuple[str, str]], side: int) -> Any:
    return next((at[pair[side]] for pair in names if at.get(pair[side]) is not None), None)


def packed_pairs(at: Mapping[str, Any], query: Any, key: Any) -> Pairs:
    """Pairs of [B, T, H, d] tensors, or of sequences packed one after another with offsets.

    Offsets without values are taken as sequences of the greatest length, as many as the positions fill, and one of
    the rest: no lengths have more pairs.
    """
    causal = bool(at.get("is_causal", at.get("causal", at.get("custom_mask_type", 0))))
    offsets = [_first(at, _OFFSETS, side) for side in (0, 1)]
    if all(each is None for each in offsets):
        return dense_pairs(prod(query.shape[:-3]), query.shape[-3], key.shape[-3], causal, True)
    known = [lengths(each) for each in offsets]
    if known[0] is not None and known[1] is not None:
        parts = [dense_pairs(1, q, k, causal, True) for q, k in zip(known[0], known[1], strict=True)]
        return Pairs(sum(part.every for part in parts), sum(part.left for part in parts))
    return _longest_pairs(at, query, key, offsets, causal)


def _longest_pairs(at: Mapping[str, Any], query: Any, key: Any, offsets: list[Any], causal: bool) -> Pairs:
    count = next(each.shape[0] - 1 for each in offsets if each is not None)
    positions = [prod(tensor.shape[:-2]) for tensor in (query, key)]
    most = [int(_first(at, _LONGEST, side) or -(-positions[side] // max(count, 1))) for side in (0, 1)]
    whole = min(count, *(positions[side] // max(most[side], 1) for side in (0, 1)))
    every = dense_pairs(whole, most[0], most[1], causal, True)
    left = [min(positions[side] - whole * most[side], most[side]) if whole < count else 0 for side in (0, 1)]
    rest = dense_pairs(1, left[0], left[1], causal, True) if all(left) else Pairs(0, 0)
    return Pairs(every.every + rest.every, every.left + rest.left)
