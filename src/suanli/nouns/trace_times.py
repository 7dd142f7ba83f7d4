"""Times of kernels that a trace measured, in the columns that curves are fitted from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def _field(unit: str, doc: str) -> Any:
    return field(metadata={"unit": unit, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class MeasuredProduct:
    """One product of two matrices on one device."""

    gpu: str = _field("", "short id in the catalogue, else the name in the file")
    dtype: str = _field("", "of the factors, as in the catalogue")
    m: int = _field("", "rows")
    n: int = _field("", "columns")
    k: int = _field("", "inner size")
    seconds: float = _field("s", "median over the calls, kernels that finish a split product included")
    runs: int = _field("", "calls")


@dataclass(frozen=True, kw_only=True)
class MeasuredAttention:
    """One fused attention, forward or backward, on one device; a causal one sees up to the last key."""

    gpu: str = _field("", "short id in the catalogue, else the name in the file")
    dtype: str = _field("", "of queries and keys, as in the catalogue")
    batch: int = _field("", "sequences")
    heads: int = _field("", "of queries")
    kv_heads: int = _field("", "of keys and values")
    queries: int = _field("", "positions of queries")
    keys: int = _field("", "positions of keys")
    qk_dim: int = _field("", "width of a query")
    v_dim: int = _field("", "width of a value")
    causal: bool = _field("", "whether a causal mask leaves out pairs")
    backward: bool = _field("", "whether it is the backward pass alone")
    seconds: float = _field("s", "median over the calls, kernels that multiply alone")
    runs: int = _field("", "calls")


@dataclass(frozen=True, kw_only=True)
class MeasuredCollective:
    """One collective of one size."""

    gpu: str = _field("", "short id in the catalogue, else the name in the file")
    kind: str = _field("", "all_reduce, all_gather, reduce_scatter or all_to_all")
    bytes: int = _field("B", "of the whole tensor")
    ranks: int = _field("ranks", "of the group")
    seconds: float = _field("s", "the shortest call: of the others more is waiting for peers")
    runs: int = _field("", "calls")


@dataclass(frozen=True, kw_only=True)
class MeasuredKernels:
    """Everything of a trace that a curve can be fitted to, and what was left out."""

    products: tuple[MeasuredProduct, ...] = _field("", "by time spent in them, the most first")
    collectives: tuple[MeasuredCollective, ...] = _field("", "by kind, ranks and size")
    attentions: tuple[MeasuredAttention, ...] = field(
        default=(), metadata={"unit": "", "doc": "by time spent in them, the most first"}
    )
    left_out: dict[str, int] = _field("", "why calls are not among them: reason, calls")
