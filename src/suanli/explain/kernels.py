"""Kernels by name: runs, time, what of it they own, FLOPs and bytes where these are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from suanli.explain.account import SPLIT, Ideal
from suanli.explain.intervals import Array
from suanli.explain.roof import Roof, roof_of
from suanli.explain.sweep import Pieces, owned_ns, shared_ns
from suanli.explain.usage import seconds
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.explained import KernelRow
from suanli.nouns.trace import Trace
from suanli.units import GIGA

KINDS = {
    WorkClass.MATMUL: "matmul", WorkClass.COMPUTE: "compute", WorkClass.COMMUNICATION: "communication",
    WorkClass.PEER_COPY: "peer copy", WorkClass.COPY: "copy",
}  # fmt: skip


def owned_s(pieces: Pieces, ideal: Ideal) -> Array:
    """Seconds of the account that each piece owns; products that run side by side share their time equally."""
    rank = ideal.rank[pieces.row]
    owned: Array = owned_ns(pieces.start, pieces.end, rank) / GIGA
    split = rank == SPLIT
    owned[split] = shared_ns(pieces.start[split], pieces.end[split]) / GIGA
    return owned


def kernels(
    trace: Trace, work_class: Array, pieces: Pieces, owned: Array, attribution: Attribution | None,
    peaks: Mapping[str, float], device: int, memory_bytes_per_s: float | None = None,
) -> tuple[KernelRow, ...]:  # fmt: skip
    """Rows of one device by time owned, the most first. `pieces` are its whole rows, `owned` what `owned_s` says."""
    name, kind = trace.work.name[pieces.row], work_class[pieces.row].astype(np.int64)
    window = int(pieces.end.max() - pieces.start.min()) if len(pieces.row) else 0
    _, first, group = np.unique(name * len(KINDS) + kind, return_index=True, return_inverse=True)
    order = np.argsort(group, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(group))[:-1]) if len(order) else []
    made = [_row(trace, WorkClass(int(kind[f])), pieces, rows, owned[rows], attribution, peaks, memory_bytes_per_s,
                 device, window)
            for f, rows in zip(first, members, strict=True)]  # fmt: skip
    return tuple(sorted(made, key=lambda row: (-row.owned_s, -row.total_s, row.name)))


def _row(
    trace: Trace, kind: WorkClass, pieces: Pieces, places: Array, owned: Array, attribution: Attribution | None,
    peaks: Mapping[str, float], memory_bytes_per_s: float | None, device: int, window_ns: int,
) -> KernelRow:  # fmt: skip
    rows = pieces.row[places]
    length = pieces.end[places] - pieces.start[places]
    figures = (
        _Figures() if attribution is None else _figures(rows, length, kind, attribution, peaks, memory_bytes_per_s)
    )
    return KernelRow(
        device=device,
        name=trace.names[int(trace.work.name[rows[0]])],
        kind=KINDS[kind],
        count=len(rows),
        total_s=seconds(int(length.sum())),
        owned_s=float(owned.sum()),
        fraction=float(owned.sum()) / seconds(window_ns) if window_ns else None,
        unlinked=int((trace.work.launch[rows] < 0).sum()),
        flops=figures.flops,
        achieved_flop_per_s=figures.roof.achieved_flop_per_s,
        peak_fraction=figures.peak_fraction,
        roof_fraction=figures.roof.roof_fraction,
        bound=figures.roof.bound,
        bytes=figures.bytes,
        achieved_bytes_per_s=figures.roof.achieved_bytes_per_s,
        dtype=figures.dtype,
    )


@dataclass(frozen=True)
class _Figures:
    """What an attribution says of the runs of a kernel."""

    flops: float | None = None
    bytes: float | None = None
    dtype: str | None = None
    peak_fraction: float | None = None
    roof: Roof = Roof()


def _figures(
    rows: Array, length: Array, kind: WorkClass, attribution: Attribution, peaks: Mapping[str, float],
    memory_bytes_per_s: float | None,
) -> _Figures:  # fmt: skip
    """FLOPs, bytes and rates of the runs where they are known: each rate over the time of the runs it is known of."""
    flops, time = _known(attribution.flops[rows], attribution.flops_known[rows], length)
    size, bytes_time = _known(attribution.bytes[rows], attribution.bytes_known[rows], length)
    same = bool((attribution.flops_known[rows] == attribution.bytes_known[rows]).all())
    dtypes = np.unique(attribution.dtype[rows][attribution.flops_known[rows]])
    dtype = attribution.dtypes[int(dtypes[0])] if len(dtypes) == 1 and dtypes[0] >= 0 else None
    roof = roof_of(kind, dtype, time, flops, size, peaks, memory_bytes_per_s, bytes_s=bytes_time, alike=same)
    peak, rate = peaks.get(dtype or ""), roof.achieved_flop_per_s
    part = rate / peak if rate is not None and peak else None
    return _Figures(flops, size, dtype, part if part is not None and part <= 1 else None, roof)


def _known(amount: Array, known: Array, length: Array) -> tuple[float | None, float]:
    """What the runs did where it is known, and the time of these."""
    return (float(amount[known].sum()) if known.any() else None), seconds(int(length[known].sum()))
