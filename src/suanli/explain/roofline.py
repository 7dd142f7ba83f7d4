"""Kernels grouped by name, operator and shapes, each group against the roof of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.explain.grouping import alike
from suanli.explain.link import links
from suanli.formulas.roofline import attainable_flop_per_s, operational_intensity
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.roofline import KernelGroup
from suanli.nouns.trace import OpDetail, Trace
from suanli.units import NANO

Array = npt.NDArray[Any]


def roofline(
    trace: Trace, found: Attribution, *, peaks_flop_per_s: Mapping[str, float] | None = None,
    memory_bytes_per_s: float | None = None,
) -> tuple[KernelGroup, ...]:  # fmt: skip
    """Groups of all device work, the longest first. Peaks are of one device, dense, by the keys of the catalogue."""
    work, host = trace.work, trace.host
    if not len(work):
        return ()
    op = np.where(found.op >= 0, found.op, links(trace).op)
    beside = [np.where(op >= 0, column[op], -1) if len(host) else op for column in (host.name, host.detail)]
    keys = [work.name, *beside, found.dtype, found.work_class]
    first, group = alike(*keys)
    unique = np.stack([key[first].astype(np.int64) for key in keys], axis=1)
    columns = _sums(trace, found, group, len(unique))
    groups = [_group(trace, found, key, *values) for key, values in zip(unique.tolist(), columns, strict=True)]
    placed = [_placed(each, peaks_flop_per_s or {}, memory_bytes_per_s) for each in groups]
    return tuple(sorted(placed, key=lambda each: -each.seconds))


def _sums(trace: Trace, found: Attribution, group: Array, size: int) -> list[tuple[float, ...]]:
    """Runs, seconds, FLOPs and bytes of each group; FLOPs and bytes are nan where any run has none."""
    lasted = (trace.work.end_ns - trace.work.start_ns) * NANO
    parts = [np.bincount(group, minlength=size).astype(float), np.bincount(group, weights=lasted, minlength=size)]
    for values, known in ((found.flops, found.flops_known), (found.bytes, found.bytes_known)):
        parts.append(np.bincount(group, weights=np.where(known, values, np.nan), minlength=size))
    return list(zip(*(part.tolist() for part in parts), strict=True))


def _group(
    trace: Trace, found: Attribution, key: list[int], runs: float, seconds: float, flops: float,
    moved: float,
) -> KernelGroup:  # fmt: skip
    name, op, detail, dtype, work_class = key
    shapes: OpDetail | None = trace.details[detail] if detail >= 0 else None
    return KernelGroup(
        name=trace.names[name],
        op=trace.names[op] if op >= 0 else None,
        shapes=None if shapes is None else shapes.dims,
        work_class=WorkClass(work_class).name,
        count=int(runs),
        seconds=seconds,
        flops=_number(flops),
        bytes=_number(moved),
        dtype=found.dtypes[dtype] if dtype >= 0 else None,
    )


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value


def _placed(group: KernelGroup, peaks: Mapping[str, float], memory_bytes_per_s: float | None) -> KernelGroup:
    """The group with its rates and, where the device is known, its place under the roof."""
    rates = replace(
        group,
        intensity=operational_intensity(group.flops, group.bytes) if group.flops is not None and group.bytes else None,
        achieved_flop_per_s=group.flops / group.seconds if group.flops is not None and group.seconds else None,
        achieved_bytes_per_s=group.bytes / group.seconds if group.bytes is not None and group.seconds else None,
    )
    if group.work_class == WorkClass.MATMUL.name:
        return _under_roof(rates, peaks, memory_bytes_per_s)
    if rates.achieved_bytes_per_s is None or memory_bytes_per_s is None:
        reason = "its bytes are not known" if rates.achieved_bytes_per_s is None else "no device to compare with"
        return replace(rates, reason=reason)
    return replace(rates, roof_fraction=rates.achieved_bytes_per_s / memory_bytes_per_s, bound="memory")


def _under_roof(group: KernelGroup, peaks: Mapping[str, float], memory_bytes_per_s: float | None) -> KernelGroup:
    """A product: against the lower of both roofs, or the peak alone where its bytes are not known."""
    peak = None if group.dtype is None else peaks.get(group.dtype)
    if group.achieved_flop_per_s is None:
        return replace(group, reason="its FLOPs are not known")
    if peak is None:
        return replace(
            group, reason=f"no peak of the device for {group.dtype}" if peaks else "no device to compare with"
        )
    roof = peak
    if group.intensity is not None and memory_bytes_per_s is not None:
        roof = attainable_flop_per_s(group.intensity, peak, memory_bytes_per_s)
    if not roof:
        return replace(group, reason="nothing is multiplied")
    bound = "compute" if roof == peak else "memory"
    return replace(group, roof_flop_per_s=roof, roof_fraction=group.achieved_flop_per_s / roof, bound=bound)
