"""Clocks of ranks aligned by the collectives they share.

Nobody leaves an all-reduce before the last has come, and all leave it together, within the time of a last message.
The ends of one call on two ranks therefore differ by the difference of their clocks; the median over calls tells it.
Ranks that share no group are joined through others, along a tree of the pairs that share most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suanli.explain.fleet.match import Matched
from suanli.explain.fleet.pool import Fleet
from suanli.explain.fleet.robust import lower_medians
from suanli.explain.intervals import Array

ROUNDS = 3  # of refinement: pairs of the tree first, then every unit against the median of its calls
TOLERANCE_NS = 1000  # added to the residual when one asks whether kernels overlap


@dataclass(frozen=True, eq=False)
class Clocks:
    """Of each unit: what to take off its times (ns), its component, and how far it still is from the others (ns)."""

    offset_ns: Array
    component: Array  # -1: not aligned with any other
    residual_ns: Array

    def aligned(self, unit: Array, time_ns: Array) -> Array:
        """Times of units on the clock of the first unit of their component."""
        times: Array = time_ns - self.offset_ns[unit]
        return times


def align(fleet: Fleet, found: Matched) -> Clocks:
    """The clocks of all units. A unit without a matched call keeps its own, in no component."""
    count = len(fleet.units)
    rows = _usable(fleet, found)
    unit, instance = fleet.calls["unit"][rows], found.instance[rows]
    end = fleet.calls["end_ns"][rows]
    if not len(rows):
        return Clocks(np.zeros(count, dtype=np.int64), np.full(count, -1), np.zeros(count, dtype=np.int64))
    offset, component = _tree(unit, instance, end, count)
    present = np.unique(unit)
    place = np.searchsorted(present, unit)
    dense, calls = np.unique(instance, return_inverse=True)
    calls = calls.reshape(-1)
    for _ in range(ROUNDS):
        apart = _apart(unit, calls, end, offset, len(dense))
        offset[present] += lower_medians(place, apart, len(present))
    residual = np.zeros(count, dtype=np.int64)
    own = end - offset[unit]
    residual[present] = lower_medians(place, np.abs(own - _of_others(calls, own, len(dense))), len(present))
    return Clocks(_from_first(offset, component), component, residual)


def same_call(fleet: Fleet, found: Matched, clocks: Clocks) -> Array:
    """bool [instances]: whether the kernels of an instance can be one call, give or take the residual of the clocks.

    On aligned clocks the last start comes before the first end; and the ends lie no further apart than the transfer
    takes, which is the shortest kernel at most, save where a rank may leave early (a send, the root of a broadcast).
    """
    rows = found.rows
    unit, instance = fleet.calls["unit"][rows], found.instance[rows]
    start, end = (clocks.aligned(unit, fleet.calls[key][rows]) for key in ("start_ns", "end_ns"))
    loose = TOLERANCE_NS + 2 * most(instance, clocks.residual_ns[unit], found.count)
    first_end, last_end = -most(instance, -end, found.count), most(instance, end, found.count)
    shortest = -most(instance, start - end, found.count)
    early = most(instance, found.leaves_early[rows].astype(np.int64), found.count) > 0
    together = last_end - first_end <= shortest + loose
    fits: Array = (most(instance, start, found.count) <= first_end + loose) & (together | early)
    return fits


def most(group: Array, values: Array, count: int) -> Array:
    """int64 [count]: the largest value of each group."""
    found = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(found, group, values)
    return found


def _usable(fleet: Fleet, found: Matched) -> Array:
    """Matched rows whose ends say something of the clock; of units that have none of these, the others."""
    rows = found.rows
    unit = fleet.calls["unit"][rows]
    waits = found.synchronising[rows]
    has = np.zeros(len(fleet.units), dtype=bool)
    has[unit[waits]] = True
    chosen = rows[waits | ~has[unit]]
    size = np.bincount(found.instance[chosen], minlength=found.count)
    lonely: Array = chosen[size[found.instance[chosen]] > 1]
    return lonely


def _apart(unit: Array, calls: Array, end: Array, offset: Array, count: int) -> Array:
    """How far each aligned end is from the median of its call."""
    own = end - offset[unit]
    apart: Array = own - lower_medians(calls, own, count)[calls]
    return apart


def _of_others(calls: Array, values: Array, count: int) -> Array:
    """Of each row the lower median of the other rows of its call; every call has two or more."""
    order = np.lexsort((values, calls))
    size = np.bincount(calls, minlength=count)
    begin = np.cumsum(size) - size
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    place -= begin[calls]  # of the row within its sorted call
    middle = (size[calls] - 2) // 2
    others: Array = values[order][begin[calls] + middle + (place <= middle)]
    return others


def _tree(unit: Array, instance: Array, end: Array, count: int) -> tuple[Array, Array]:
    """Offsets along the tree of pairs that share most calls, and the component of each unit."""
    order = np.lexsort((unit, instance))
    unit, instance, end = unit[order], instance[order], end[order]
    first = np.concatenate(([True], np.diff(instance) != 0))
    hub = np.maximum.accumulate(np.where(first, np.arange(len(unit)), 0))
    others = np.flatnonzero(unit != unit[hub])
    pairs, which = np.unique(unit[hub][others] * count + unit[others], return_inverse=True)
    which = which.reshape(-1)
    ahead = lower_medians(which, (end - end[hub])[others], len(pairs))
    shared = np.bincount(which)
    parent, below = list(range(count)), np.zeros(count, dtype=np.int64)  # below: offset to the parent
    for edge in np.argsort(-shared, kind="stable"):
        a, b = divmod(int(pairs[edge]), count)
        _join(parent, below, a, b, int(ahead[edge]))
    roots = [_root(parent, below, each) for each in range(count)]
    size = np.bincount([root for root, _ in roots], minlength=count)
    offset = np.array([distance for _, distance in roots], dtype=np.int64)
    return offset, np.array([root if size[root] > 1 else -1 for root, _ in roots], dtype=np.int64)


def _root(parent: list[int], below: Array, unit: int) -> tuple[int, int]:
    """The root of a unit and its offset to it; the way is shortened."""
    way, distance = [], 0
    while parent[unit] != unit:
        way.append(unit)
        unit = parent[unit]
    for each in reversed(way):
        distance += int(below[each])
        parent[each], below[each] = unit, distance
    return unit, distance


def _join(parent: list[int], below: Array, a: int, b: int, ahead: int) -> None:
    """`b` is ahead of `a` by so much: their trees become one, under the root that comes first."""
    (root_a, from_a), (root_b, from_b) = _root(parent, below, a), _root(parent, below, b)
    if root_a == root_b:
        return
    between = from_a + ahead - from_b  # root b ahead of root a
    if root_a < root_b:
        parent[root_b], below[root_b] = root_a, between
    else:
        parent[root_a], below[root_a] = root_b, -between


def _from_first(offset: Array, component: Array) -> Array:
    """Offsets to the first unit of each component."""
    found = offset.copy()
    for each in np.unique(component[component >= 0]):
        members = component == each
        found[members] -= found[members][0]
    found[component < 0] = 0
    return found
