"""Durations that cannot be: work that a serial stream reports as running far into the work after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suanli.explain.intervals import Array
from suanli.nouns.trace import DeviceWork
from suanli.units import KILO

# Programmatic launches and graphs overlap by a few microseconds (3.7 on a B200); a broken clock by milliseconds.
LONGEST_OVERLAP_US = 100
RARE_FRACTION = 0.02  # a stream where more of the work overlaps than this is no serial queue: nothing is cut there


@dataclass(frozen=True, eq=False)
class Clipped:
    """Ends of all rows, and what was cut off them."""

    end_ns: Array
    rows: int  # rows cut short
    cut_ns: int  # what was cut, summed over them


def clip(work: DeviceWork) -> Clipped:
    """Ends with impossible ones moved to the next start on their stream; rows of graphs stay as they are."""
    order = np.lexsort((work.start_ns, work.stream, work.device))
    same = (np.diff(work.stream[order]) == 0) & (np.diff(work.device[order]) == 0)
    following = work.start_ns[order][1:]
    over = (work.end_ns[order][:-1] - following) * same
    bad = (over > LONGEST_OVERLAP_US * KILO) & (work.graph[order][:-1] < 0)
    bad &= _rare(bad, np.concatenate(([False], ~same)))
    rows = order[:-1][bad]
    end = work.end_ns.copy()
    end[rows] = np.maximum(following[bad], work.start_ns[rows])
    return Clipped(end, len(rows), int((work.end_ns - end).sum()))


def _rare(bad: Array, new_stream: Array) -> Array:
    """Of each row but the last, whether such rows are rare on its stream."""
    stream = np.cumsum(new_stream)
    often = np.bincount(stream[:-1], weights=bad, minlength=stream[-1] + 1 if len(stream) else 0)
    limit = np.maximum(1, RARE_FRACTION * np.bincount(stream, minlength=len(often)))
    rare: Array = (often <= limit)[stream[:-1]]
    return rare
