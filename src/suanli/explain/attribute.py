"""Device work -> what it did: FLOPs of products by the operator that launched them, least bytes of the rest.

An operator counts once. Its FLOPs are shared, by time, over its kernels of the class MATMUL alone: split-K parts are,
and the reduction after them becomes one, while a fill, copy or transpose beside them is not, so that its time does not
water down the efficiency of the product. Where none of an operator's kernels looks like a product, those that it
launched itself are taken to be it and become MATMUL.
FLOPs are those the hardware executes: a fused attention backward computes the scores again, and a causal mask halves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.explain import recompute, replay
from suanli.explain.costs import Costs, Names, known_names
from suanli.explain.grouping import alike
from suanli.explain.link import Links, climb, links
from suanli.explain.ops import dtypes
from suanli.explain.ops.call import Cost
from suanli.explain.reasons import reasons
from suanli.explain.stated import Instructions, event_costs
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.trace import Trace, WorkKind

Array = npt.NDArray[Any]

# Kernels that finish a product which was split; their time is the product's.
_PART = re.compile(r"split_?k_?reduce|splitKreduce|stream_?k_reduce|epilogue::impl::globalKernel", re.I)
# Kernels that prepare or finish a product and are none, when an operator launches them itself.
_HELPER = re.compile(r"elementwise|fill|memset|copy|transpose|cat|softmax|norm|SubTensorOp|im2col|pad|permute", re.I)


@dataclass(eq=False)
class _Columns:
    """What is filled in on the way. N rows of `DeviceWork`."""

    work_class: Array
    run: Array  # tells replays of one captured operator apart; -1: ran as launched
    op: Array
    cost: Array  # place in `costs`; -1: none
    flops: Array
    known: Array
    bytes: Array
    bytes_known: Array
    costs: list[Cost]


def attribute(trace: Trace, work_class: Array, *, full_pairs: bool = False) -> Attribution:
    """FLOPs, bytes, dtype and pass of every piece of device work of `trace`, whose classes are given (uint8 [N]).

    `full_pairs` charges attention for every pair of positions, as if no mask let the kernel skip any.
    """
    linked, names = links(trace), known_names(trace)
    captured = replay.capture_operators(trace, linked.parent)
    linked = Links(parent=linked.parent, op=np.where(linked.op < 0, captured, linked.op))
    costs = Costs(trace, linked.parent, full_pairs=full_pairs)
    columns = _empty(trace, work_class, np.where(captured >= 0, trace.work.correlation, -1))
    _products(trace, columns, linked, names, costs)
    _stated(trace, columns)
    ran = Instructions(trace, columns.work_class)
    _instructed(trace, columns, ran)
    matched = replay.match(trace, columns.work_class, columns.flops, columns.known, columns.cost, linked)
    columns.flops[matched.rows], columns.known[matched.rows] = matched.flops, True
    columns.cost[matched.rows] = matched.cost
    _moved(trace, columns, linked, names, costs)
    _moved_by_instructions(trace, columns, ran)
    passes = recompute.passes_of(trace, linked.parent, linked.op)
    formulas, formula = _formulas(columns, matched)
    keys, dtype = _dtypes(trace, columns)
    return Attribution(
        work_class=columns.work_class,
        op=columns.op,
        formula=formula,
        flops=columns.flops,
        flops_known=columns.known,
        bytes=columns.bytes,
        bytes_known=columns.bytes_known,
        dtype=dtype,
        recompute=passes.recompute,
        backward=passes.backward,
        formulas=formulas,
        dtypes=keys,
        reasons=reasons(trace, columns.work_class, columns.known, columns.cost, columns.costs, linked),
    )


def _empty(trace: Trace, work_class: Array, run: Array) -> _Columns:
    n = len(trace.work)
    assert len(work_class) == n, "a class for every piece of work"
    return _Columns(
        work_class=np.array(work_class, dtype=np.uint8), run=run, op=np.full(n, -1, dtype=np.int32),
        cost=np.full(n, -1, dtype=np.int64), flops=np.zeros(n), known=np.zeros(n, dtype=bool), bytes=np.zeros(n),
        bytes_known=np.zeros(n, dtype=bool), costs=[],
    )  # fmt: skip


def lasted_ns(trace: Trace) -> Array:
    """Nanoseconds of each piece of work, float64."""
    lasted: Array = (trace.work.end_ns - trace.work.start_ns).astype(np.float64)
    return lasted


# --- products ---------------------------------------------------------------------------------------------------


def _products(trace: Trace, columns: _Columns, linked: Links, names: Names, costs: Costs) -> None:
    """FLOPs of kernels whose operator has a formula."""
    has_rule = _of_rows(trace, names.multiplies)
    owner = climb(linked.op, linked.parent, has_rule)
    owner[columns.work_class > WorkClass.COMPUTE] = -1  # copies and communication multiply nothing
    rows = np.unique(owner[owner >= 0])
    columns.costs, place = costs.flops(rows)
    flops = np.array([np.nan if cost.flops is None else cost.flops for cost in columns.costs], dtype=np.float64)
    at = np.searchsorted(rows, owner)
    is_product = _promote(trace, columns, linked, owner, rows, place, flops)
    counted = (owner >= 0) & is_product
    columns.op[counted] = owner[counted]
    columns.cost[counted] = place[at[counted]]
    known = counted.copy()
    known[counted] = ~np.isnan(flops[columns.cost[counted]])
    known &= ~np.isin(owner, _around(rows, linked.parent, np.unique(owner[known])))
    columns.known[:] = known
    columns.flops[known] = flops[columns.cost[known]] * _shares(
        owner[known], columns.run[known], lasted_ns(trace)[known]
    )


def _of_rows(trace: Trace, of_names: Array) -> Array:
    """A truth of names as one of spans."""
    rows: Array = of_names[trace.host.name] if len(of_names) else np.zeros(len(trace.host), dtype=bool)
    return rows


def _promote(
    trace: Trace, columns: _Columns, linked: Links, owner: Array, rows: Array, place: Array, flops: Array
) -> Array:
    """Which work is a product: the class says so, or its operator has no other kernel that could be. bool [N]."""
    matmul = columns.work_class == WorkClass.MATMUL
    have = np.unique(owner[matmul & (owner >= 0)])
    without = np.isin(rows, have, invert=True) & np.isin(rows, _around(rows, linked.parent, have), invert=True)
    if len(rows):
        without &= flops[place] > 0
    own = (owner >= 0) & (owner == linked.op) & (columns.work_class == WorkClass.COMPUTE)
    part, helper = (_named(trace, pattern) for pattern in (_PART, _HELPER))
    own &= part | (np.isin(owner, rows[without]) & ~helper)
    columns.work_class[own] = WorkClass.MATMUL
    is_product: Array = matmul | own
    return is_product


def _named(trace: Trace, pattern: re.Pattern[str]) -> Array:
    """Which work has a kernel of that name. bool [N]."""
    fits = np.array([bool(pattern.search(name)) for name in trace.names], dtype=bool)
    rows: Array = fits[trace.work.name] if len(trace.work) else np.zeros(0, dtype=bool)
    return rows


def _around(rows: Array, parent: Array, inner: Array) -> Array:
    """Those of `rows` that stand around one of `inner`: their FLOPs are the inner one's."""
    wanted = np.zeros(len(parent), dtype=bool)
    wanted[rows] = True
    found, at = [], inner
    while len(at):
        at = climb(parent[at], parent, wanted)
        at = np.unique(at[at >= 0])
        found.append(at)
    around: Array = np.concatenate(found) if found else np.zeros(0, dtype=np.int32)
    return around


def _shares(owner: Array, run: Array, weights: Array) -> Array:
    """Each row's part of one run of its operator, by weight; equal parts where all of it weighs nothing."""
    _, group = alike(owner, run)
    total, size = np.bincount(group, weights=weights), np.bincount(group)
    whole = total[group]
    parts: Array = np.where(whole > 0, weights / np.where(whole > 0, whole, 1), 1 / np.maximum(size[group], 1))
    return parts


def _stated(trace: Trace, columns: _Columns) -> None:
    """FLOPs of products without an operator: as the profiler counted, or by the text of an XLA instruction."""
    costs, cost_of = event_costs(trace)
    rows = (cost_of >= 0) & ~columns.known & (columns.work_class == WorkClass.MATMUL)
    columns.cost[rows], columns.known[rows] = cost_of[rows] + len(columns.costs), True
    columns.costs += costs
    columns.flops[rows] = [columns.costs[at].flops or 0.0 for at in columns.cost[rows]]


def _instructed(trace: Trace, columns: _Columns, ran: Instructions) -> None:
    """FLOPs of products by the compiled modules of XLA, each instruction once a run."""
    free = (ran.which >= 0) & (columns.cost < 0) & ran.multiplies()
    columns.work_class[free & _named(trace, _PART)] = WorkClass.MATMUL
    matmul = free & (columns.work_class == WorkClass.MATMUL)
    without = free & ~np.isin(ran.run, np.unique(ran.run[matmul])) & (columns.work_class == WorkClass.COMPUTE)
    columns.work_class[without & ~_named(trace, _HELPER)] = WorkClass.MATMUL
    rows = np.flatnonzero(free & (columns.work_class == WorkClass.MATMUL))
    costs = [each or Cost() for each in ran.costs]
    columns.cost[rows] = ran.which[rows] + len(columns.costs)
    columns.costs += costs
    flops = np.array([np.nan if each.flops is None else each.flops for each in costs], dtype=np.float64)
    rows = rows[~np.isnan(flops[ran.which[rows]])] if len(rows) else rows
    parts = _shares(ran.which[rows], ran.run[rows], lasted_ns(trace)[rows])
    columns.flops[rows], columns.known[rows] = flops[ran.which[rows]] * parts, True


# --- bytes, formulas, dtypes --------------------------------------------------------------------------------------


def _moved(trace: Trace, columns: _Columns, linked: Links, names: Names, costs: Costs) -> None:
    """Least bytes: of products by their operator, of other kernels by theirs, of copies as the file says."""
    lasted = lasted_ns(trace)
    products = columns.known & (columns.op >= 0)
    owner = climb(linked.op, linked.parent, _of_rows(trace, names.moves))
    others = (columns.work_class == WorkClass.COMPUTE) & (owner >= 0)
    for rows, owners, of in ((products, columns.op, costs.product_bytes), (others, owner, costs.moved_bytes)):
        unique = np.unique(owners[rows])
        sizes, place = of(unique)
        per_op = np.array([np.nan if size is None else size for size in sizes])
        per_row = np.full(len(rows), np.nan)
        per_row[rows] = per_op[place[np.searchsorted(unique, owners[rows])]] if len(unique) else np.nan
        known = ~np.isnan(per_row)
        columns.bytes[known] = per_row[known] * _shares(owners[known], columns.run[known], lasted[known])
        columns.bytes_known |= known
    copied = (trace.work.kind != WorkKind.KERNEL) & (trace.work.bytes >= 0)
    columns.bytes[copied] = trace.work.bytes[copied]
    columns.bytes_known |= copied
    accessed = [np.nan if detail.bytes_accessed is None else detail.bytes_accessed for detail in trace.details]
    stated = np.array([*accessed, np.nan])[trace.work.detail]
    known = (stated >= 0) & np.isfinite(stated) & ~columns.bytes_known
    columns.bytes[known] = stated[known]
    columns.bytes_known |= known


def _moved_by_instructions(trace: Trace, columns: _Columns, ran: Instructions) -> None:
    """Least bytes of what an instruction of a compiled module ran: of a product's its products have them all."""
    kernels = (ran.which >= 0) & ~columns.bytes_known & (columns.work_class <= WorkClass.COMPUTE)
    rows = np.flatnonzero(kernels & ((columns.work_class == WorkClass.MATMUL) | ~ran.multiplies()))
    sizes = np.array([np.nan if each is None else each for each in ran.moved], dtype=np.float64)
    rows = rows[~np.isnan(sizes[ran.which[rows]])] if len(rows) else rows
    parts = _shares(ran.which[rows], ran.run[rows], lasted_ns(trace)[rows])
    columns.bytes[rows], columns.bytes_known[rows] = sizes[ran.which[rows]] * parts, True


def _formulas(columns: _Columns, matched: replay.Matched) -> tuple[tuple[str, ...], Array]:
    """Ids of the formulas used, and the place among them of each row."""
    by_cost = [cost.formula for cost in columns.costs]
    flagged = [replay.MATCHED.format(formula=formula) for formula in by_cost]
    ids = tuple(dict.fromkeys(each for each in (*by_cost, *flagged) if each))
    places = np.array([ids.index(each) if each else -1 for each in (*by_cost, *flagged)] + [-1], dtype=np.int16)
    shift = np.zeros(len(columns.cost), dtype=np.int64)
    shift[matched.rows] = len(by_cost)
    formula = np.where(columns.known, places[np.where(columns.cost < 0, -1, columns.cost + shift)], -1)
    used = np.unique(formula[formula >= 0])
    order = np.full(len(ids) + 1, -1, dtype=np.int16)
    order[used] = np.arange(len(used), dtype=np.int16)
    return tuple(ids[at] for at in used), order[formula].astype(np.int16)


def _dtypes(trace: Trace, columns: _Columns) -> tuple[tuple[str, ...], Array]:
    """The peak each product stands against, by its operands, else by the kernel's name; -1 where neither says."""
    rows = np.nonzero(columns.work_class == WorkClass.MATMUL)[0]
    dtype = np.full(len(trace.work), -1, dtype=np.int16)
    if not len(rows):
        return (), dtype
    first, place = alike(columns.cost[rows], trace.work.name[rows])
    found = []
    for row in rows[first].tolist():
        cost, name = int(columns.cost[row]), int(trace.work.name[row])
        operands = columns.costs[cost].operands if cost >= 0 else ()
        found.append(dtypes.peak_key(operands, trace.names[name]))
    keys = tuple(dict.fromkeys(key for key in found if key))
    dtype[rows] = np.array([keys.index(key) if key else -1 for key in found], dtype=np.int16)[place]
    return keys, dtype
