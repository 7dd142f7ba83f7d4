"""One step as a strip: what ran on each stream and when, merged where it is dense, so that it can be drawn."""

from __future__ import annotations

import numpy as np

from suanli.explain.intervals import Array
from suanli.explain.lanes import Lane
from suanli.explain.sweep import cut
from suanli.nouns.attribution import WorkClass
from suanli.nouns.explained import Strip, StripSpan
from suanli.nouns.trace import Trace
from suanli.units import GIGA

MOST_STREAMS = 8  # of the longest; all others share a lane
MOST_SPANS = 150  # of a lane: with more, work is merged into as many pieces of equal length
MOST_ROWS = 50_000  # looked at, where there are no steps
_OTHERS = -1
_CLASSES = {WorkClass.MATMUL: "matmul", WorkClass.COMPUTE: "compute", WorkClass.COMMUNICATION: "communication",
            WorkClass.PEER_COPY: "copies", WorkClass.COPY: "copies"}  # fmt: skip


def strip_of(trace: Trace, work_class: Array, lane: Lane, names: tuple[str, ...]) -> Strip | None:
    """The step in the middle, or as much of the window's middle as can be looked at; None where nothing ran.

    `names` are those of the steps of the lane.
    """
    if len(lane.steps):
        place = len(lane.steps) // 2
        first, last, name = int(lane.border[place]), int(lane.border[place + 1]), names[place]
        rows = lane.pieces.row[(lane.pieces.start < last) & (lane.pieces.end > first)]
    else:
        middle = len(lane.pieces.row) // 2
        rows = lane.pieces.row[max(0, middle - MOST_ROWS // 2) : middle + MOST_ROWS // 2]
        first, last = int(trace.work.start_ns[rows].min()), int(trace.work.end_ns[rows].max())
        name = ""
    if not len(rows) or last <= first:
        return None
    streams = _lanes(trace, rows)
    spans = [span for stream in np.unique(streams)
             for span in _spans(trace, work_class, rows[streams == stream], int(stream), first, last)]  # fmt: skip
    return Strip(device=lane.device, name=name, start_ns=first, end_ns=last, work=len(rows), spans=tuple(spans))


def _lanes(trace: Trace, rows: Array) -> Array:
    """The stream of each row; of those with least work together `_OTHERS`."""
    streams = trace.work.stream[rows]
    found, place = np.unique(streams, return_inverse=True)
    busy = np.bincount(place, weights=trace.work.end_ns[rows] - trace.work.start_ns[rows])
    kept = found[np.argsort(-busy, kind="stable")[:MOST_STREAMS]]
    return np.where(np.isin(streams, kept), streams, _OTHERS)


def _spans(trace: Trace, work_class: Array, rows: Array, stream: int, first: int, last: int) -> list[StripSpan]:
    start = np.maximum(trace.work.start_ns[rows], first)
    end = np.minimum(trace.work.end_ns[rows], last)
    if len(rows) <= MOST_SPANS:
        places = range(len(rows))
        return [_span(trace, work_class, rows[at : at + 1], stream, (int(start[at]), int(end[at])), first,
                      int(end[at] - start[at])) for at in places if end[at] > start[at]]  # fmt: skip
    return _merged(trace, work_class, rows, (start, end), stream, first, last)


def _merged(
    trace: Trace, work_class: Array, rows: Array, times: tuple[Array, Array], stream: int, first: int, last: int
) -> list[StripSpan]:
    """Equal pieces of time, each of the class that has most of it; neighbours of one class are one span."""
    border = np.linspace(first, last, MOST_SPANS + 1).astype(np.int64)
    pieces = cut(rows, *times, border)
    kinds = work_class[pieces.row]
    inside = (pieces.period >= 0) & (pieces.end > pieces.start)
    length = np.zeros((MOST_SPANS, len(WorkClass)))
    np.add.at(length, (pieces.period[inside], kinds[inside]), (pieces.end - pieces.start)[inside])
    most, busy = length.argmax(axis=1), length.sum(axis=1)
    most[busy == 0] = -1
    change = np.flatnonzero(np.diff(most)) + 1
    found = []
    for begin, stop in zip([0, *change.tolist()], [*change.tolist(), MOST_SPANS], strict=True):
        if most[begin] < 0:
            continue
        mine = inside & (pieces.period >= begin) & (pieces.period < stop)
        own = np.unique(pieces.row[mine & (kinds == most[begin])])
        ends = (max(int(border[begin]), int(pieces.start[mine].min())), int(pieces.end[mine].max()))
        count = len(np.unique(pieces.row[mine]))
        found.append(_span(trace, work_class, own, stream, ends, first, int(busy[begin:stop].sum()), count))
    return found


def _span(
    trace: Trace, work_class: Array, rows: Array, stream: int, ends: tuple[int, int], zero: int, busy_ns: int,
    count: int = 1,
) -> StripSpan:  # fmt: skip
    """Of rows of one class: named by the longest of them."""
    longest = rows[np.argmax(trace.work.end_ns[rows] - trace.work.start_ns[rows])]
    return StripSpan(
        stream=None if stream == _OTHERS else stream, kind=_CLASSES[WorkClass(int(work_class[longest]))],
        start_s=(ends[0] - zero) / GIGA, end_s=(ends[1] - zero) / GIGA, busy_s=busy_ns / GIGA, work=count,
        name=trace.names[int(trace.work.name[longest])],
    )  # fmt: skip
