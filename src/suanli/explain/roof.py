"""Where a kernel stands under the roof of its device: the one place that says so, however kernels are grouped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suanli.formulas.roofline import attainable_flop_per_s, operational_intensity
from suanli.nouns.attribution import WorkClass

ABOVE = "faster than the roof: its FLOPs, its dtype or the device is not what it seems"
NOT_MEMORY = "links bound it, not the memory of the device"
CACHED = "more bytes a second than memory gives: some of them come from a cache"


@dataclass(frozen=True, kw_only=True)
class Roof:
    """Rates of a kernel, and the part of the roof they reach; None with the reason."""

    intensity: float | None = None
    achieved_flop_per_s: float | None = None
    achieved_bytes_per_s: float | None = None
    roof_flop_per_s: float | None = None
    roof_fraction: float | None = None
    bound: str | None = None
    reason: str | None = None


def roof_of(
    work_class: WorkClass, dtype: str | None, seconds: float, flops: float | None, moved: float | None,
    peaks: Mapping[str, float], memory_bytes_per_s: float | None, *, bytes_s: float | None = None,
    alike: bool = True,
) -> Roof:  # fmt: skip
    """The roof over work that took `seconds` for its FLOPs, and `bytes_s` (the same unless given) for its bytes.

    Where these are not `alike`, of the same runs, their ratio means nothing and a product stands against its peak.
    A product stands against the lower of the peak of its dtype and what memory feeds; other work against memory alone.
    """
    time = seconds if bytes_s is None else bytes_s
    rate = flops / seconds if flops is not None and seconds else None
    moving = moved / time if moved is not None and time else None
    intensity = operational_intensity(flops, moved) if alike and flops is not None and moved else None
    if work_class > WorkClass.COMPUTE:
        roof = fraction = bound = None
        reason: str | None = NOT_MEMORY
    elif work_class == WorkClass.MATMUL:
        roof, fraction, bound, reason = _product(rate, intensity, dtype, peaks, memory_bytes_per_s)
    else:
        roof, (fraction, bound, reason) = None, _memory(moving, memory_bytes_per_s)
    return Roof(
        intensity=intensity, achieved_flop_per_s=rate, achieved_bytes_per_s=moving, roof_flop_per_s=roof,
        roof_fraction=fraction, bound=bound, reason=reason,
    )  # fmt: skip


def _memory(moving: float | None, memory_bytes_per_s: float | None) -> tuple[float | None, str | None, str | None]:
    if moving is None or memory_bytes_per_s is None:
        return None, None, "its bytes are not known" if moving is None else "no device to compare with"
    fraction = moving / memory_bytes_per_s
    return (fraction, "memory", None) if fraction <= 1 else (None, "memory", CACHED)


def _product(
    rate: float | None, intensity: float | None, dtype: str | None, peaks: Mapping[str, float], memory: float | None
) -> tuple[float | None, float | None, str | None, str | None]:
    if rate is None:
        return None, None, None, "its FLOPs are not known"
    peak = None if dtype is None else peaks.get(dtype)
    if peak is None:
        return None, None, None, f"no peak of the device for {dtype}" if peaks else "no device to compare with"
    roof = peak
    if intensity is not None and memory is not None:
        roof = attainable_flop_per_s(intensity, peak, memory)
    if not roof:
        return None, None, None, "nothing is multiplied"
    bound, fraction = "compute" if roof == peak else "memory", rate / roof
    if fraction > 1:
        return roof, None, bound, CACHED if bound == "memory" and rate <= peak else ABOVE
    return roof, fraction, bound, None
