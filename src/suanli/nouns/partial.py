"""What `count` answers for a program or a weight file: the keys of `Count`, None with a reason where not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.graph import NoFormula, Stored


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class PartialParams:
    """Parameters, as far as they can be told."""

    total: int | None = _doc("parameters", "all; those of a weight file as it stores them")
    active: int | None = _doc("parameters", "those one token passes through", default=None)
    embedding: int | None = _doc("parameters", "embedding tables", default=None)
    trainable: int | None = _doc("parameters", "those that get a gradient", default=None)
    buffers: int | None = _doc("elements", "checkpointed tensors that are no parameters", default=None)


@dataclass(frozen=True, kw_only=True)
class PartialFlops:
    """Operations, or None for every one."""

    forward: int | None = _doc("FLOPs", "the program as it stands", default=None)
    backward: int | None = _doc("FLOPs", "backward pass; None where it cannot be told apart", default=None)
    recompute: int | None = _doc("FLOPs", "forward work done again before backward", default=None)
    model: int | None = _doc("FLOPs", "what the model needs; the numerator of MFU", default=None)
    hardware: int | None = _doc("FLOPs", "what the machine executes; the numerator of HFU", default=None)


@dataclass(frozen=True, kw_only=True)
class PartialBytes:
    """Memory of the weights as stored."""

    weights: int | None = _doc("bytes", "all weights in their own dtypes")
    by_dtype: Mapping[str, Stored] = _doc("", "elements and bytes of each dtype", default_factory=dict)
    gradients: int | None = _doc("bytes", "trainable parameters in the dtype", default=None)
    optimizer: int | None = _doc("bytes", "optimizer states", default=None)
    activations: int | None = _doc("bytes", "kept for backward", default=None)
    kv_cache: int | None = _doc("bytes", "keys and values of all sequences", default=None)
    reasons: Mapping[str, str] = _doc("", "why a figure is not given", default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PartialRow:
    """Operations or tensors added up by one name."""

    name: str = _doc("", "place in the model, or tensors with their numbers left out")
    kind: str = _doc("", "kind of operation, or dtype")
    shape: str = _doc("", "shape of each tensor", default="")
    times: int = _doc("", "how many are added up")
    params: int | None = _doc("parameters", "held there")
    model_flops: int | None = _doc("FLOPs", "what the model needs", default=None)
    hardware_flops: int | None = _doc("FLOPs", "what the machine executes", default=None)
    read_bytes: int | None = _doc("bytes", "inputs read", default=None)
    write_bytes: int | None = _doc("bytes", "outputs written", default=None)
    stored_bytes: int | None = _doc("bytes", "bytes of the tensors", default=None)


@dataclass(frozen=True, kw_only=True)
class PartialCount:
    """The books of a program or a weight file."""

    model: str = _doc("", "name")
    title: str = _doc("", "name and format")
    unit: str = _doc("", "what the FLOPs are for")
    units: int | None = _doc("positions", "positions the FLOPs are for", default=None)
    params: PartialParams = _doc("", "parameters")
    flops: PartialFlops = _doc("", "operations")
    flops_per_token: float | None = _doc("FLOPs", "model FLOPs of one position", default=None)
    macs: int | None = _doc("MACs", "model FLOPs over 2", default=None)
    ideal: Mapping[str, int | None] = _doc("FLOPs", "2N, 6N and 8N times positions")
    bytes: PartialBytes = _doc("", "memory of the weights")
    by: str = _doc("", "how rows are added up")
    rows: tuple[PartialRow, ...] = _doc("", "rows that make the totals")
    lower_bound: bool = _doc("", "whether something that may multiply is not in the totals")
    without_formula: tuple[NoFormula, ...] = _doc("", "what is not in the totals, with shapes and calls", default=())
    reasons: Mapping[str, str] = _doc("", "why a figure is not given", default_factory=dict)
