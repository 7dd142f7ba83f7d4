"""Which operator a piece of device work belongs to: the launch, the innermost operator around it, and upwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from suanli.nouns.trace import DeviceWork, Host, HostKind, Trace

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Links:
    """Rows of `Host`, -1 for none. M spans, N pieces of work."""

    parent: Array  # int32 [M]: innermost operator around a span
    op: Array  # int32 [N]: innermost operator that launched a piece of work


_PARENTS: WeakKeyDictionary[Host, Array] = WeakKeyDictionary()  # tables are never changed
_FEW = 8  # operators around a span, mostly


def links(trace: Trace) -> Links:
    """Parents of all spans, found once a table, and the operator of all work. O(M), as spans stand sorted."""
    around = _PARENTS.get(trace.host)
    if around is None:
        around = _PARENTS[trace.host] = parents(trace.host)
    return Links(parent=around, op=operators(trace.work, around))


def parents(host: Host) -> Array:
    """The innermost operator open on its thread when a span starts, for every span; -1 for none. int32 [M].

    A span that starts when another ends is not inside it. The one looked for is the last operator before that is still
    open. From one that has ended the search goes on at where its own has come to: what stands between had ended when
    that one started. All spans take each step together, and the steps double, so that few are needed; those with no
    operator open are told beforehand, as their ways would be the longest.
    """
    rows = len(host)
    if not rows:
        return np.zeros(0, dtype=np.int32)
    operator = host.kind == HostKind.OP
    before = np.maximum.accumulate(np.where(operator, np.arange(rows, dtype=np.int32), np.int32(-1)))
    found = np.concatenate((np.array([-1], dtype=np.int32), before[:-1]))
    found[_reached(host, operator) <= host.start_ns] = -1
    left = np.flatnonzero(found >= 0)
    left = left[host.end_ns[found[left]] <= host.start_ns[left]]
    while len(left):
        found[left] = found[found[left]]
        left = left[found[left] >= 0]
        left = left[host.end_ns[found[left]] <= host.start_ns[left]]
    return found


def _reached(host: Host, operator: Array) -> Array:
    """The latest end of the operators that stand before each span on its thread; the least int64 where none does."""
    none = np.iinfo(np.int64).min
    ends = np.where(operator, host.end_ns, none)
    borders = np.flatnonzero(host.thread[1:] != host.thread[:-1]) + 1
    for first, last in zip([0, *borders.tolist()], [*borders.tolist(), len(ends)], strict=True):
        np.maximum.accumulate(ends[first:last], out=ends[first:last])
    reached = np.concatenate(([none], ends[:-1]))
    reached[borders] = none
    return reached


def operators(work: DeviceWork, parent: Array) -> Array:
    """The operator the file ties work to, else the innermost one around its launch. int32 [N]."""
    padded = np.append(parent, np.int32(-1))  # place -1 gives -1
    found: Array = np.where(work.op >= 0, work.op, padded[work.launch]).astype(np.int32)
    return found


def climb(rows: Array, parent: Array, wanted: Array) -> Array:
    """The nearest of a row itself and its ancestors that is `wanted` (bool [M]); -1 where none is. int32, as `rows`."""
    found = np.array(rows, dtype=np.int32)
    left = np.flatnonzero(found >= 0)
    left = left[~wanted[found[left]]]
    for _ in range(_FEW):
        if not len(left):
            return found
        found[left] = parent[found[left]]
        left = left[found[left] >= 0]
        left = left[~wanted[found[left]]]
    found[left] = _far(found[left], parent, wanted)
    return found


def _far(rows: Array, parent: Array, wanted: Array) -> Array:
    """What `climb` says, by ways of all spans that double: few steps however deep operators stand in one another."""
    end = len(parent)  # one place more than there are spans: the end of every way
    step = np.append(np.where(wanted, np.arange(end), np.where(parent < 0, end, parent)), end).astype(np.int32)
    while True:
        further = step[step]  # twice as far each time
        if (further == step).all():
            break
        step = further
    found = step[rows]
    result: Array = np.where(found == end, -1, found).astype(np.int32)
    return result


def first_of(rows: Array, values: Array, missing: int = -1) -> Array:
    """`values` at `rows`, and `missing` where a row is -1."""
    if not len(values):
        return np.full(len(rows), missing)
    taken: Array = np.where(rows >= 0, values[np.maximum(rows, 0)], missing)
    return taken
