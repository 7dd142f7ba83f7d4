"""One device of a trace made ready for the account: its rows, its steps on the device's clock, its gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suanli.explain.idle import PARTS, Gaps, Waits, gaps_of, split_ns
from suanli.explain.intervals import Array
from suanli.explain.steps import Marks, launch_times
from suanli.explain.sweep import Pieces, cut
from suanli.nouns.trace import Trace
from suanli.units import GIGA


@dataclass(frozen=True, eq=False)
class Lane:
    """One device. Periods are its steps; `border` has one instant more than there are steps, none without steps."""

    device: int
    pieces: Pieces  # its whole rows, all in period 0
    parts: Pieces  # the same cut at the borders
    border: Array
    steps: Array  # places of the marks that have work here, one a period
    launched: Array  # pieces of work of each of these steps
    gaps: Gaps
    idle_ns: dict[str, Array]  # part → ns of each gap

    @property
    def window_ns(self) -> int:
        """First start to last end."""
        return int(self.pieces.end.max() - self.pieces.start.min())

    @property
    def lengths_ns(self) -> Array:
        """Of each step."""
        return np.diff(self.border)

    def idle_s(self) -> dict[str, float]:
        """Part → seconds of the whole window."""
        return {part: int(self.idle_ns[part].sum()) / GIGA for part in PARTS}

    def step_idle_s(self) -> dict[str, Array]:
        """Part → seconds of each step. A border is a start of work, so no gap lies across one."""
        count = len(self.steps)
        place = np.searchsorted(self.border, self.gaps.start, side="right") - 1
        inside = (place >= 0) & (place < count)
        return {
            part: np.bincount(place[inside], weights=self.idle_ns[part][inside], minlength=count) / GIGA
            for part in PARTS
        }  # fmt: skip


def lane_of(trace: Trace, device: int, rows: Array, marks: Marks, waiting: dict[int, Waits]) -> Lane:
    """The lane of the rows of one device, sorted by start, at least one."""
    start, end = trace.work.start_ns[rows], trace.work.end_ns[rows]
    whole = Pieces(rows, start, end, np.zeros(len(rows), dtype=np.int64))
    steps, border, launched = _borders(trace, rows, marks)
    gaps = gaps_of(whole, trace.work, trace.host, border)
    return Lane(
        device=device,
        pieces=whole,
        parts=cut(rows, start, end, border) if len(steps) else whole,
        border=border,
        steps=steps,
        launched=launched,
        gaps=gaps,
        idle_ns=split_ns(gaps, waiting, border[:-1]),
    )


def _borders(trace: Trace, rows: Array, marks: Marks) -> tuple[Array, Array, Array]:
    """Steps with work among the rows, the first start of each on the device with the last end, pieces of each.

    Where a step has work that is linked to its launch, that alone says when it begins: of the rest one knows only when
    it ran, which may be long after its launch.
    """
    none = np.zeros(0, dtype=np.int64)
    step = marks.of_work(trace, rows)
    if not (step >= 0).any():
        return none, none, none
    start, linked = trace.work.start_ns[rows], (trace.work.launch[rows] >= 0) | marks.on_device
    found = np.unique(step[step >= 0])
    begins = np.full(len(marks), np.iinfo(np.int64).max)
    np.minimum.at(begins, step[(step >= 0) & linked], start[(step >= 0) & linked])
    missing = np.isin(step, found[begins[found] == np.iinfo(np.int64).max])
    np.minimum.at(begins, step[missing], start[missing])
    last = int(trace.work.end_ns[rows][step == found[-1]].max())
    border = np.maximum.accumulate(np.append(begins[found], last))
    return found, border, np.bincount(step[step >= 0], minlength=len(marks))[found]


def launched_before_the_last(trace: Trace, rows: Array, marks: Marks) -> Pieces:
    """The rows launched from the first step's start to the end of the last but one, as pieces of one period."""
    times = (trace.work.start_ns if marks.on_device else launch_times(trace))[rows]
    chosen = rows[(times >= marks.start[0]) & (times <= marks.end[-2])]
    zeros = np.zeros(len(chosen), dtype=np.int64)
    return Pieces(chosen, trace.work.start_ns[chosen], trace.work.end_ns[chosen], zeros)
