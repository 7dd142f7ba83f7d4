"""Which operator a piece of device work belongs to: the launch, the innermost operator around it, and upwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.nouns.trace import DeviceWork, Host, HostKind, Trace

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Links:
    """Rows of `Host`, -1 for none. M spans, N pieces of work."""

    parent: Array  # int32 [M]: innermost operator around a span
    op: Array  # int32 [N]: innermost operator that launched a piece of work


def links(trace: Trace) -> Links:
    """Parents of all spans, and the operator of all work. O(M), as spans stand sorted."""
    around = parents(trace.host)
    return Links(parent=around, op=operators(trace.work, around))


def parents(host: Host) -> Array:
    """The innermost operator open on its thread when a span starts, for every span; -1 for none. int32 [M].

    A span that starts when another ends is not inside it, unless it is empty and stands within.
    """
    found = np.full(len(host), -1, dtype=np.int32)
    is_operator = host.kind == HostKind.OP
    found[:] = _sweep(host.thread.tolist(), host.start_ns.tolist(), host.end_ns.tolist(), is_operator.tolist())
    return found


def _sweep(threads: list[int], starts: list[int], ends: list[int], operator: list[bool]) -> list[int]:
    """One pass with a stack of open operators. Lists: Python reads them faster than arrays."""
    found: list[int] = []
    stack: list[int] = []
    closes: list[int] = []
    thread = -1
    for row, start in enumerate(starts):
        if threads[row] != thread:
            thread = threads[row]
            stack, closes = [], []
        while closes and closes[-1] <= start:
            stack.pop()
            closes.pop()
        found.append(stack[-1] if stack else -1)
        if operator[row]:
            stack.append(row)
            closes.append(ends[row])
    return found


def operators(work: DeviceWork, parent: Array) -> Array:
    """The operator the file ties work to, else the innermost one around its launch. int32 [N]."""
    padded = np.append(parent, np.int32(-1))  # place -1 gives -1
    found: Array = np.where(work.op >= 0, work.op, padded[work.launch]).astype(np.int32)
    return found


def climb(rows: Array, parent: Array, wanted: Array) -> Array:
    """The nearest of a row itself and its ancestors that is `wanted` (bool [M]); -1 where none is. int32, as `rows`."""
    end = len(parent)  # one place more than there are spans: the end of every way
    step = np.append(np.where(wanted, np.arange(end), np.where(parent < 0, end, parent)), end)
    while True:
        further = step[step]  # twice as far each time
        if (further == step).all():
            break
        step = further
    found = step[np.where(rows < 0, end, rows)]
    result: Array = np.where(found == end, -1, found).astype(np.int32)
    return result


def first_of(rows: Array, values: Array, missing: int = -1) -> Array:
    """`values` at `rows`, and `missing` where a row is -1."""
    if not len(values):
        return np.full(len(rows), missing)
    taken: Array = np.where(rows >= 0, values[np.maximum(rows, 0)], missing)
    return taken
