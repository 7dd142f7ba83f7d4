"""Kernels grouped by name, operator and shapes, each group against the roof of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.explain.grouping import alike
from suanli.explain.link import links
from suanli.explain.roof import roof_of
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.hlo import HloInstruction
from suanli.nouns.roofline import KernelGroup
from suanli.nouns.trace import OpDetail, Trace
from suanli.units import NANO

Array = npt.NDArray[Any]


def roofline(
    trace: Trace, found: Attribution, *, peaks_flop_per_s: Mapping[str, float] | None = None,
    memory_bytes_per_s: float | None = None, rows: Array | None = None, device: int | None = None,
) -> tuple[KernelGroup, ...]:  # fmt: skip
    """Groups of the `rows` of device work (all of it unless given), the longest first.

    Peaks are of one device, dense, by the keys of the catalogue; `device` is its number where the rows are of one.
    """
    work, host = trace.work, trace.host
    chosen = np.arange(len(work)) if rows is None else rows
    if not len(chosen):
        return ()
    op = np.where(found.op >= 0, found.op, links(trace).op)
    beside = [np.where(op >= 0, column[op], -1) if len(host) else op for column in (host.name, host.detail)]
    beside[1] = np.where(_instructed(trace), work.detail, beside[1])
    keys = [key[chosen] for key in (work.name, *beside, found.dtype, found.work_class)]
    first, group = alike(*keys)
    unique = np.stack([key[first].astype(np.int64) for key in keys], axis=1)
    columns = _sums(trace, found, chosen, group, len(unique))
    groups = [_group(trace, found, device, key, *values) for key, values in zip(unique.tolist(), columns, strict=True)]
    placed = [_placed(each, peaks_flop_per_s or {}, memory_bytes_per_s) for each in groups]
    return tuple(sorted(placed, key=lambda each: -each.seconds))


def _instructed(trace: Trace) -> Array:
    """bool [N]: work whose instruction of XLA is known, which tells more than the call around its launch."""
    said = [detail.hlo is not None and detail.hlo.get("instruction") is not None for detail in trace.details]
    rows: Array = np.array([*said, False], dtype=bool)[trace.work.detail]
    return rows


def _sums(trace: Trace, found: Attribution, rows: Array, group: Array, size: int) -> list[tuple[float, ...]]:
    """Runs, seconds, FLOPs and bytes of each group; FLOPs and bytes are nan where any run has none."""
    lasted = (trace.work.end_ns - trace.work.start_ns)[rows] * NANO
    parts = [np.bincount(group, minlength=size).astype(float), np.bincount(group, weights=lasted, minlength=size)]
    for values, known in ((found.flops, found.flops_known), (found.bytes, found.bytes_known)):
        parts.append(np.bincount(group, weights=np.where(known, values, np.nan)[rows], minlength=size))
    return list(zip(*(part.tolist() for part in parts), strict=True))


def _group(
    trace: Trace, found: Attribution, device: int | None, key: list[int], runs: float, seconds: float, flops: float,
    moved: float,
) -> KernelGroup:  # fmt: skip
    name, op, detail, dtype, work_class = key
    said: OpDetail | None = trace.details[detail] if detail >= 0 else None
    hlo = (said.hlo if said is not None else None) or {}
    instruction: HloInstruction | None = hlo.get("instruction")
    named, shapes = (trace.names[op] if op >= 0 else None), (None if said is None else said.dims)
    if instruction is not None:
        named, shapes = str(hlo.get("op") or instruction.opcode), tuple(sizes for _, sizes in instruction.operands)
    return KernelGroup(
        device=device,
        name=trace.names[name],
        op=named,
        shapes=shapes,
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
    roof = roof_of(
        WorkClass[group.work_class], group.dtype, group.seconds, group.flops, group.bytes, peaks, memory_bytes_per_s
    )
    return replace(group, **asdict(roof))
