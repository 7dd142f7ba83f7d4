"""Who owns each instant of a device: of the rows that run, the one of the lowest rank that started first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suanli.explain.intervals import Array, Cover, union


@dataclass(frozen=True, eq=False)
class Pieces:
    """Rows of device work cut at the borders of periods (steps), sorted by start. One device."""

    row: Array  # row of DeviceWork
    start: Array  # ns
    end: Array  # ns
    period: Array  # place of the period the piece lies in; -1: in none

    def total(self, values: Array, periods: int) -> Array:
        """The sum of `values` (one a piece) in each period."""
        kind = np.result_type(values, np.int64)
        inside = self.period >= 0
        if periods == 1:
            return np.array([values.sum(where=inside, dtype=kind)])
        sums = np.zeros(periods, dtype=kind)
        np.add.at(sums, self.period[inside], values[inside])
        return sums

    def only(self, chosen: Array) -> Pieces:
        """Some of them (bool)."""
        return Pieces(self.row[chosen], self.start[chosen], self.end[chosen], self.period[chosen])


def cut(row: Array, start: Array, end: Array, border: Array) -> Pieces:
    """Rows cut where they cross a border. Period k lies between `border[k]` and `border[k + 1]`, in order."""
    first = np.searchsorted(border, start, side="right") - 1
    last = np.maximum(first, np.searchsorted(border, end, side="left") - 1)
    times = last - first + 1
    source = np.repeat(np.arange(len(row)), times)
    turn = np.arange(len(source)) - np.repeat(np.cumsum(times) - times, times)
    period = first[source] + turn
    # the ends stand beyond what any row reaches, so that outer pieces keep their own
    open_border = np.concatenate(([np.iinfo(np.int64).min], border, [np.iinfo(np.int64).max]))
    begins = np.maximum(start[source], open_border[period + 1])
    ends = np.minimum(end[source], open_border[period + 2])
    order = np.lexsort((ends, begins))
    period = np.where(period >= len(border) - 1, -1, period)
    return Pieces(row[source][order], begins[order], ends[order], period[order])


def owned_ns(start: Array, end: Array, rank: Array) -> Array:
    """Nanoseconds each row owns. `start` must be sorted; rows of negative rank own nothing and hide nothing.

    The sum over the rows of some lowest ranks is the length of their union.
    """
    owned = np.zeros(len(start), dtype=np.int64)
    above = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    ranks = np.flatnonzero(np.bincount(rank[rank >= 0].astype(np.int64))).tolist()
    for each in ranks:
        rows = np.flatnonzero(rank == each)
        first, last = _new_parts(start[rows], end[rows])
        owned[rows] = last - first
        if len(above[0]):
            owned[rows] -= Cover(*above).between(first, last)
        if each != ranks[-1]:
            above = union(np.concatenate((above[0], first)), np.concatenate((above[1], last)))
    return owned


def new_ns(start: Array, end: Array) -> Array:
    """Nanoseconds of each row that no earlier one covers; they add up to the union. `start` must be sorted."""
    first, last = _new_parts(start, end)
    return last - first


def _new_parts(start: Array, end: Array) -> tuple[Array, Array]:
    """Of each row the part that no earlier row reaches: one interval, empty where there is none."""
    if not len(start):
        return start, end
    reached = np.concatenate((start[:1], np.maximum.accumulate(end)[:-1]))
    first = np.maximum(start, reached)
    return first, np.maximum(first, end)


def shared_ns(start: Array, end: Array) -> Array:
    """Nanoseconds of each row, instants that several rows share divided among them equally. Adds up to the union."""
    time = np.concatenate((start, end))
    change = np.concatenate((np.ones(len(start)), -np.ones(len(end))))
    order = np.argsort(time, kind="stable")
    time, running = time[order], np.cumsum(change[order])
    length = np.diff(time, append=time[-1:]) if len(time) else time
    portion = np.divide(length, running, out=np.zeros(len(time)), where=running > 0)
    upto = np.concatenate(([0.0], np.cumsum(portion)))
    shared: Array = upto[np.searchsorted(time, end)] - upto[np.searchsorted(time, start)]
    return shared
