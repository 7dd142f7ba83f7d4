"""Kernels that a CUDA or HIP graph launched: what they did, from the capture or from equal kernels in the same file.

A replay has one launch for all its kernels and no operator. Two ways lead back, and nothing is claimed beyond them:
the capture of the graph is in the file with as many launches as the replay has kernels, in the order of the nodes;
or a kernel of the same name and grid ran outside a graph, always with the same FLOPs. The second is flagged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.explain.link import Links, first_of
from suanli.nouns.attribution import WorkClass
from suanli.nouns.trace import HostKind, Trace

Array = npt.NDArray[Any]

MATCHED = "{formula}, matched by kernel name and grid"
_GRAPH_LAUNCH = re.compile(r"^(cuda|hip|cu)GraphLaunch")
_BEGIN = re.compile(r"^(cuda|hip|cu)StreamBeginCapture")
_END = re.compile(r"^(cuda|hip|cu)StreamEndCapture")
_KERNEL_LAUNCH = re.compile(r"^(cuda|hip|cu)(Ext)?(Module)?Launch(Cooperative)?Kernel")


@dataclass(frozen=True, eq=False)
class Matched:
    """Rows of `DeviceWork` whose FLOPs come from a match by name, and what they get."""

    rows: Array
    flops: Array
    cost: Array


def graph_launched(trace: Trace) -> Array:
    """Which work a graph replay launched. bool [N]."""
    is_launch = np.array([bool(_GRAPH_LAUNCH.match(name)) for name in trace.names], dtype=bool)
    by_call = first_of(trace.work.launch, is_launch[trace.host.name], False) if len(trace.host) else False
    found: Array = (trace.work.graph >= 0) | by_call
    return found


def capture_operators(trace: Trace, parent: Array) -> Array:
    """Row of Host, for work of graphs whose capture is in the file: the operator of the launch captured. int32 [N].

    Only where one capture has as many kernel launches as the replay has kernels; -1 elsewhere.
    """
    found = np.full(len(trace.work), -1, dtype=np.int32)
    captures = _captures(trace)
    if not captures:
        return found
    rows = np.nonzero(graph_launched(trace) & (trace.work.kind == 0))[0]
    for correlation in np.unique(trace.work.correlation[rows]):
        kernels = rows[trace.work.correlation[rows] == correlation]
        fitting = [launches for launches in captures if len(launches) == len(kernels)]
        if correlation >= 0 and len(fitting) == 1:
            nodes = trace.work.graph_node[kernels]
            order = np.argsort(nodes, kind="stable") if (nodes >= 0).all() else np.arange(len(kernels))
            found[kernels[order]] = parent[fitting[0]]
    return found


def _captures(trace: Trace) -> list[Array]:
    """Rows of the kernel launches between the begin and the end of each capture of a thread."""
    host, captures = trace.host, []
    begin, end, launch = (_named(trace, pattern) for pattern in (_BEGIN, _END, _KERNEL_LAUNCH))
    for first in np.nonzero(begin)[0]:
        same = np.nonzero(host.thread == host.thread[first])[0]
        ends = same[(same > first) & end[same]]
        if len(ends):
            inside = same[(same > first) & (same < ends[0])]
            captures.append(inside[launch[inside]])
    return captures


def _named(trace: Trace, pattern: re.Pattern[str]) -> Array:
    """Runtime calls by name. bool [M]."""
    fits = np.array([bool(pattern.match(name)) for name in trace.names], dtype=bool)
    calls: Array = fits[trace.host.name] & (trace.host.kind == HostKind.RUNTIME)
    return calls


def match(trace: Trace, work_class: Array, flops: Array, known: Array, cost: Array, linked: Links) -> Matched:
    """Products of replays that equal a known kernel of the same file in name and grid."""
    wanted = np.nonzero(graph_launched(trace) & (work_class == WorkClass.MATMUL) & ~known & (linked.op < 0))[0]
    models = _models(trace, np.nonzero((work_class == WorkClass.MATMUL) & known)[0], flops, cost) if len(wanted) else {}
    grids = _grids(trace)
    found = [(row, *models[key]) for row in wanted.tolist() if (key := _key(trace, grids, row)) in models]
    rows, values, costs = zip(*found, strict=True) if found else ((), (), ())
    return Matched(np.array(rows, dtype=np.int64), np.array(values, dtype=float), np.array(costs, dtype=np.int64))


def _models(trace: Trace, rows: Array, flops: Array, cost: Array) -> dict[Any, tuple[float, int]]:
    """Name and grid -> FLOPs of one kernel and the place of its cost, where every kernel so known has the same."""
    grids = _grids(trace)
    seen: dict[Any, set[tuple[float, int]]] = {}
    for row in rows.tolist():
        key = _key(trace, grids, row)
        if key is not None:
            seen.setdefault(key, set()).add((float(flops[row]), int(cost[row])))
    return {key: each.copy().pop() for key, each in seen.items() if len(each) == 1}


def _grids(trace: Trace) -> list[Any]:
    """Grid and block of each detail of a kernel; None where it has none."""
    of = [None if detail.kernel is None else detail.kernel.get("grid") for detail in trace.details]
    blocks = [None if detail.kernel is None else detail.kernel.get("block") for detail in trace.details]
    return [None if grid is None else (str(grid), str(block)) for grid, block in zip(of, blocks, strict=True)]


def _key(trace: Trace, grids: list[Any], row: int) -> Any:
    """Name, grid and block of a kernel; None where the grid was not recorded."""
    detail = int(trace.work.detail[row])
    return None if detail < 0 or grids[detail] is None else (int(trace.work.name[row]), grids[detail])
