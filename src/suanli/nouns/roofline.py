"""Kernels alike, together: how often, how long, how much they did, and how near the roof they came."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def _field(unit: str, doc: str, **options: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **options)


@dataclass(frozen=True, kw_only=True)
class KernelGroup:
    """Device work with one kernel name, operator and set of shapes. None: not known, or no roof to compare with."""

    device: int | None = _field("", "number in the file; None: of all", default=None)
    name: str = _field("", "kernel")
    op: str | None = _field("", "operator that launched it", default=None)
    shapes: tuple[Any, ...] | None = _field("", "input shapes of that operator", default=None)
    work_class: str = _field("", "MATMUL, COMPUTE …")
    count: int = _field("", "runs")
    seconds: float = _field("s", "time of all runs")
    flops: float | None = _field("FLOPs", "of all runs", default=None)
    bytes: float | None = _field("B", "least bytes moved by all runs", default=None)
    dtype: str | None = _field("", "whose peak the products stand against", default=None)
    intensity: float | None = _field("FLOPs/B", "operations for each byte", default=None)
    achieved_flop_per_s: float | None = _field("FLOP/s", "operations by time", default=None)
    achieved_bytes_per_s: float | None = _field("B/s", "bytes by time", default=None)
    roof_flop_per_s: float | None = _field("FLOP/s", "what the device allows at this intensity", default=None)
    roof_fraction: float | None = _field(
        "fraction", "achieved of the roof: of FLOP/s for products, of memory rate for the rest", default=None
    )
    bound: str | None = _field("", "compute or memory: which roof is the lower", default=None)
    reason: str | None = _field("", "why there is no fraction", default=None)


@dataclass(frozen=True, kw_only=True)
class Share:
    """How much of the time of products has FLOPs, why the rest has none, and what would change that."""

    matmul_s: float = _field("s", "time of products")
    known_s: float = _field("s", "of it, with FLOPs")
    fraction: float | None = _field("fraction", "known / all; None where the trace has no products", default=None)
    reasons: tuple[tuple[str, float], ...] = _field("s", "why there are none: reason and seconds", default=())
    advice: tuple[str, ...] = _field("", "what to switch on in the profiler", default=())
    message: str = _field("", "the sentence that stands beside every FLOP figure")


@dataclass(frozen=True, kw_only=True)
class UsefulCheck:
    """What the model needs against what the trace shows."""

    useful_flops: float = _field("FLOPs", "of the model, for the steps and the part of it that ran here")
    attributed_flops: float = _field("FLOPs", "of the trace's kernels, recomputation not included")
    recompute_flops: float = _field("FLOPs", "of kernels that did forward work once more")
    ratio: float | None = _field("fraction", "attributed / useful", default=None)
    agrees: bool | None = _field("", "within the tolerance; None where too little is attributed to tell", default=None)
    message: str = _field("", "what follows")
