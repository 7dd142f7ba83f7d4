"""Why the time of products has no FLOPs, by seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.explain.link import Links
from suanli.explain.ops.call import Cost
from suanli.explain.replay import graph_launched
from suanli.nouns.attribution import WorkClass
from suanli.nouns.trace import HostKind, Trace
from suanli.units import NANO

Array = npt.NDArray[Any]

GRAPH = "graph replay: one launch for all kernels, and no operator"
BEFORE = "not linked: launched before the window, or the launch was dropped"
NO_LAUNCHES = "no launches in the file: a capture of the device alone"
BESIDE = "kernel of an operator whose product another operator inside it does"
NO_OPERATORS = "no operators in the file"
OUTSIDE = "launched outside any operator"
XLA = "XLA instruction without FLOPs or shapes in the trace"
WITHOUT_FORMULA = "operator without a formula: "


def reasons(
    trace: Trace, work_class: Array, known: Array, cost: Array, costs: list[Cost], linked: Links
) -> dict[str, float]:
    """Reason -> seconds of MATMUL work without FLOPs, the longest first. They add up to all such seconds."""
    rows = np.nonzero((work_class == WorkClass.MATMUL) & ~known)[0]
    if not len(rows):
        return {}
    work = trace.work
    found: dict[str, float] = {}
    graph = graph_launched(trace)
    lasted = (work.end_ns[rows] - work.start_ns[rows]) * NANO
    general = _general(trace)
    for row, seconds in zip(rows.tolist(), lasted.tolist(), strict=True):
        op = int(linked.op[row])
        detail = trace.details[work.detail[row]] if work.detail[row] >= 0 else None
        if cost[row] >= 0:
            why = costs[cost[row]].reason or BESIDE
        elif detail is not None and detail.hlo is not None:
            why = XLA
        elif op >= 0:
            why = WITHOUT_FORMULA + trace.names[trace.host.name[op]]
        else:
            why = GRAPH if graph[row] else general or (BEFORE if work.launch[row] < 0 else OUTSIDE)
        found[why] = found.get(why, 0.0) + seconds
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _general(trace: Trace) -> str:
    """What is true of the whole file, if anything is."""
    if not len(trace.host) or (trace.work.launch < 0).all():
        return NO_LAUNCHES
    return NO_OPERATORS if not (trace.host.kind == HostKind.OP).any() else ""
