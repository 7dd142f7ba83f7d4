"""Kernels that a trace measured, for fitting curves: products of two matrices, fused attention, and collectives.

A product is a call of an operator, or a run of an instruction of XLA, that is one product: its time is that of its
MATMUL kernels, the parts and the end of a split one included, a fill or copy beside it not. Of equal calls the median
counts. So with a fused attention: of its backward pass the kernels before and after that multiply nothing are left out.
A collective is a kernel with its size and group in the file; of equal ones the shortest counts, for the time
of a kernel holds its waiting for peers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from suanli.explain.communication import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER, call_of
from suanli.explain.device import facts_of
from suanli.explain.graphs import replayed
from suanli.explain.grouping import alike as alike_rows
from suanli.explain.intervals import Array
from suanli.explain.ops.attention import fused_sizes
from suanli.explain.ops.call import Call
from suanli.explain.ops.sizes import product_sizes
from suanli.explain.stated import Instructions
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.hardware import Device
from suanli.nouns.trace import OpDetail, Trace
from suanli.nouns.trace_times import MeasuredAttention, MeasuredCollective, MeasuredKernels, MeasuredProduct
from suanli.units import NANO

KINDS = {
    ALL_REDUCE: "all_reduce", ALL_GATHER: "all_gather", REDUCE_SCATTER: "reduce_scatter", ALL_TO_ALL: "all_to_all",
}  # fmt: skip
NOT_PLAIN = "products that are neither one of two matrices nor one attention (convolutions, batches, packed sequences)"
NO_DTYPE = "products whose dtype is not known"
REPLAYED = "kernels that a graph replayed"
NOT_KNOWN = "products without an operator that is known"
OTHER_KIND = "communication that is no all-reduce, all-gather, reduce-scatter or all-to-all"
NO_SIZE = "collectives whose size or group is not in the file"


def measured_kernels(trace: Trace, found: Attribution, gpu: Device | None = None) -> MeasuredKernels:
    """What the trace measured. `gpu` stands above the names in the file, as in `explain_trace`."""
    names = _names(trace, gpu)
    left: dict[str, int] = defaultdict(int)
    products, attentions = _multiplied(trace, found, names, left)
    collectives = _collectives(trace, found, names, left)
    said = {why: count for why, count in left.items() if count}
    return MeasuredKernels(
        products=_products(products), attentions=_attentions(attentions), collectives=collectives, left_out=said
    )


def _names(trace: Trace, gpu: Device | None) -> Mapping[int, str]:
    named = {}
    for each in trace.devices:
        known = facts_of(each, gpu).device
        named[each.id] = known.short_id if known is not None else each.name or f"device {each.id}"
    return named


Alike = dict[tuple[str, str, tuple[int, ...]], list[float]]


def _multiplied(
    trace: Trace, found: Attribution, names: Mapping[int, str], left: dict[str, int]
) -> tuple[Alike, Alike]:
    """Times in ns of calls of equal products, and of equal attentions, by device, dtype and sizes."""
    lasted = (trace.work.end_ns - trace.work.start_ns).astype(np.float64)
    matmul = found.work_class == WorkClass.MATMUL
    ran = Instructions(trace, found.work_class)
    by_run = matmul & (found.op < 0) & (ran.which >= 0)
    left[NOT_KNOWN] += int((matmul & (found.op < 0) & ~by_run).sum())
    again = replayed(trace)  # one operator for many replays: no time of one call can be told
    left[REPLAYED] += int((matmul & again & (found.op >= 0)).sum())
    rows = np.flatnonzero(((matmul & (found.op >= 0)) | by_run) & ~again)
    first, group = alike_rows(found.op[rows], ran.run[rows])
    times = np.bincount(group, weights=lasted[rows], minlength=len(first))
    products: Alike = defaultdict(list)
    attentions: Alike = defaultdict(list)
    for row, time in zip(rows[first].tolist(), times.tolist(), strict=True):
        op, dtype = int(found.op[row]), int(found.dtype[row])
        sizes = product_sizes(_call(trace, op)) if op >= 0 else ran.products[ran.which[row]]
        fused = fused_sizes(_call(trace, op)) if op >= 0 and sizes is None else None
        told = sizes or fused
        if told is None or dtype < 0:
            left[NOT_PLAIN if told is None else NO_DTYPE] += 1
            continue
        gpu = names.get(int(trace.work.device[row]), f"device {int(trace.work.device[row])}")
        (attentions if sizes is None else products)[gpu, found.dtypes[dtype], told].append(time)
    return products, attentions


def _products(alike: Alike) -> tuple[MeasuredProduct, ...]:
    made = [
        MeasuredProduct(gpu=gpu, dtype=dtype, m=m, n=n, k=k, seconds=float(np.median(each)) * NANO, runs=len(each))
        for (gpu, dtype, (m, n, k)), each in alike.items()
    ]
    return tuple(sorted(made, key=lambda row: (-row.seconds * row.runs, row.m, row.n, row.k)))


def _attentions(alike: Alike) -> tuple[MeasuredAttention, ...]:
    made = []
    for (gpu, dtype, sizes), each in alike.items():
        batch, heads, kv_heads, queries, keys, qk_dim, v_dim, causal, backward = sizes
        made.append(MeasuredAttention(
            gpu=gpu, dtype=dtype, batch=batch, heads=heads, kv_heads=kv_heads, queries=queries, keys=keys,
            qk_dim=qk_dim, v_dim=v_dim, causal=bool(causal), backward=bool(backward),
            seconds=float(np.median(each)) * NANO, runs=len(each),
        ))  # fmt: skip
    return tuple(sorted(made, key=lambda row: (-row.seconds * row.runs, row.queries, row.keys, row.backward)))


def _call(trace: Trace, op: int) -> Call:
    detail = int(trace.host.detail[op])
    return Call(trace.names[int(trace.host.name[op])], trace.details[detail] if detail >= 0 else OpDetail())


def _collectives(
    trace: Trace, found: Attribution, names: Mapping[int, str], left: dict[str, int]
) -> tuple[MeasuredCollective, ...]:
    rows: Array = np.flatnonzero(found.work_class == WorkClass.COMMUNICATION)
    alike: dict[tuple[str, str, int, int], list[float]] = defaultdict(list)
    for row in rows.tolist():
        call = call_of(trace, row)
        kind = KINDS.get(call.collective)
        if kind is None or not call.size or call.bytes is None:
            left[OTHER_KIND if kind is None else NO_SIZE] += 1
            continue
        gpu = names.get(int(trace.work.device[row]), f"device {int(trace.work.device[row])}")
        alike[gpu, kind, call.size, call.bytes].append(float(trace.work.end_ns[row] - trace.work.start_ns[row]))
    return tuple(
        MeasuredCollective(gpu=gpu, kind=kind, ranks=ranks, bytes=size, seconds=min(each) * NANO, runs=len(each))
        for (gpu, kind, ranks, size), each in sorted(alike.items())
    )
