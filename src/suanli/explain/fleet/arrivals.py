"""Arrivals at collectives on aligned clocks: how far apart, who came last, who waited for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suanli.explain.fleet.clocks import Clocks, most
from suanli.explain.fleet.match import Matched
from suanli.explain.fleet.pool import Fleet
from suanli.explain.intervals import Array
from suanli.explain.usage import seconds
from suanli.nouns.fleet import Wait

MOST_WAITS = 100


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Columns of matched rows, and of instances. The last arrival defines the start of a call."""

    rows: Array  # of calls
    unit: Array
    instance: Array
    waiting_ns: Array  # of each row: before the last came; never more than the row itself lasts
    last: Array  # of each instance: the unit that came last, the first of several
    skew_ns: Array  # of each instance: first to last arrival
    transfer_ns: Array  # of each instance: the shortest kernel, which waits for nobody
    whole_ns: Array  # of each instance: all its kernels


def arrivals(fleet: Fleet, found: Matched, clocks: Clocks) -> Arrivals:
    """The arrivals of all matched calls."""
    rows = found.rows
    unit, instance = fleet.calls["unit"][rows], found.instance[rows]
    start = clocks.aligned(unit, fleet.calls["start_ns"][rows])
    length = fleet.calls["end_ns"][rows] - fleet.calls["start_ns"][rows]
    last_at = most(instance, start, found.count)
    skew = last_at + most(instance, -start, found.count)
    is_last = np.flatnonzero(start == last_at[instance])
    last = np.full(found.count, len(fleet.units), dtype=np.int64)
    np.minimum.at(last, instance[is_last], unit[is_last])
    whole = np.zeros(found.count, dtype=np.int64)
    np.add.at(whole, instance, length)
    waiting = np.minimum(last_at[instance] - start, length)
    return Arrivals(rows, unit, instance, waiting, last, skew, -most(instance, -length, found.count), whole)


def per_unit(found: Arrivals, units: int) -> tuple[Array, Array, Array, Array]:
    """Of each unit: ns it waited, ns others waited for it, instances to which it came last, its matched rows."""
    waited, waited_for = np.zeros(units, dtype=np.int64), np.zeros(units, dtype=np.int64)
    np.add.at(waited, found.unit, found.waiting_ns)
    np.add.at(waited_for, found.last[found.instance], found.waiting_ns)
    matched = np.bincount(found.unit, minlength=units)
    return waited, waited_for, np.bincount(found.last, minlength=units), matched


def waits(fleet: Fleet, found: Arrivals) -> tuple[Wait, ...]:
    """Pairs of ranks by how long one waited for the other, the longest first."""
    ranks = np.array([unit.rank for unit in fleet.units], dtype=np.int64)
    chosen = found.waiting_ns > 0
    if not chosen.any():
        return ()
    width = int(ranks.max()) + 1
    pair = ranks[found.unit[chosen]] * width + ranks[found.last[found.instance[chosen]]]
    pairs, back, count = np.unique(pair, return_inverse=True, return_counts=True)
    total = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(total, back.reshape(-1), found.waiting_ns[chosen])
    order = np.lexsort((pairs, -total))[:MOST_WAITS]
    return tuple(
        Wait(waiting=int(pairs[k] // width), waited_for=int(pairs[k] % width), seconds=seconds(int(total[k])),
             calls=int(count[k]))
        for k in order
    )  # fmt: skip
