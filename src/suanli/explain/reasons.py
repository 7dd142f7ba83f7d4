"""Why the time of products has no FLOPs, by seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.explain.grouping import alike
from suanli.explain.link import Links, first_of
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
NO_INSTRUCTION = "XLA's trace does not say which instruction ran: launched from a command buffer"
WITHOUT_FORMULA = "operator without a formula: "
_BY_INSTRUCTION = ("xplane", "jax-json")


def reasons(
    trace: Trace, work_class: Array, known: Array, cost: Array, costs: list[Cost], linked: Links
) -> dict[str, float]:
    """Reason -> seconds of MATMUL work without FLOPs, the longest first. They add up to all such seconds."""
    rows = np.nonzero((work_class == WorkClass.MATMUL) & ~known)[0]
    if not len(rows):
        return {}
    work, op = trace.work, linked.op[rows]
    graph, general = graph_launched(trace)[rows], _general(trace)
    op_name = first_of(op, trace.host.name)
    first, group = alike(cost[rows], work.detail[rows], op_name, graph, work.launch[rows] < 0)
    lasted = np.bincount(group, weights=(work.end_ns[rows] - work.start_ns[rows]) * NANO)
    found: dict[str, float] = {}
    for at, seconds in zip(first.tolist(), lasted.tolist(), strict=True):
        place = int(cost[rows[at]])
        operator = trace.names[op_name[at]] if op[at] >= 0 else ""
        why = (costs[place].reason or BESIDE) if place >= 0 else _without_cost(trace, int(rows[at]), operator)
        if not why:
            why = GRAPH if graph[at] else general or (BEFORE if work.launch[rows[at]] < 0 else OUTSIDE)
        found[why] = found.get(why, 0.0) + seconds
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _without_cost(trace: Trace, row: int, operator: str) -> str:
    """Why work that some instruction or operator launched has no formula; empty where nothing launched it."""
    detail = trace.work.detail[row]
    if detail >= 0 and trace.details[detail].hlo is not None:
        return XLA
    if trace.format in _BY_INSTRUCTION and not operator:
        return NO_INSTRUCTION
    return WITHOUT_FORMULA + operator if operator else ""


def _general(trace: Trace) -> str:
    """What is true of the whole file, if anything is."""
    if not len(trace.host) or (trace.work.launch < 0).all():
        return NO_LAUNCHES
    return NO_OPERATORS if not (trace.host.kind == HostKind.OP).any() else ""
