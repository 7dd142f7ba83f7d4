"""Graph replays: one launch of the host, many kernels of the device, told apart from eager work."""

from __future__ import annotations

import re

import numpy as np

from suanli.explain.intervals import Array
from suanli.explain.usage import seconds
from suanli.nouns.explained import GraphReplay
from suanli.nouns.trace import HostKind, Trace, TraceFault
from suanli.units import counted

_LAUNCHES = re.compile(r"(?i)^(cuda|hip|cu)GraphLaunch")
_MOST_NAMES = 10
_EMPTY = "{count} {launches have|launch has} none in the file, so that what {they|it} ran is counted as idle"


def graph_launches(trace: Trace) -> Array:
    """Rows of Host that launch a graph."""
    places = [place for place, name in enumerate(trace.names) if _LAUNCHES.match(name)]
    return np.flatnonzero((trace.host.kind == HostKind.RUNTIME) & np.isin(trace.host.name, places))


def replayed(trace: Trace) -> Array:
    """bool [N]: work that a graph ran: it has a graph, or its launch is that of a graph."""
    by_launch = np.isin(trace.work.launch, graph_launches(trace))
    found: Array = (trace.work.graph >= 0) | by_launch
    return found


def graphs(trace: Trace) -> tuple[GraphReplay, ...]:
    """The replays by device and graph, the longest first."""
    work, rows = trace.work, np.flatnonzero(replayed(trace))
    keys = sorted({(int(d), int(g)) for d, g in zip(work.device[rows], work.graph[rows], strict=True)})
    made = [_replay(trace, rows[(work.device[rows] == d) & (work.graph[rows] == g)], d, g) for d, g in keys]
    return tuple(sorted(made, key=lambda each: -each.total_s))


def _replay(trace: Trace, rows: Array, device: int, graph: int) -> GraphReplay:
    work = trace.work
    length = work.end_ns[rows] - work.start_ns[rows]
    times = np.bincount(work.name[rows], weights=length)
    longest = [int(place) for place in np.argsort(-times, kind="stable")[:_MOST_NAMES] if times[place] > 0]
    launches = np.unique(work.launch[rows])
    return GraphReplay(
        device=device,
        graph=graph if graph >= 0 else None,
        launches=int((launches >= 0).sum()),
        work=len(rows),
        total_s=seconds(int(length.sum())),
        kernels=tuple(trace.names[place] for place in longest),
    )


def incomplete(trace: Trace) -> TraceFault | None:
    """The warning for graphs that were launched and whose kernels the file lacks; None where all have theirs."""
    launched = graph_launches(trace)
    used = np.zeros(len(trace.host) + 1, dtype=bool)
    used[trace.work.launch] = True  # the last place takes work without a launch
    empty = int((~used[launched]).sum())
    if not empty:
        return None
    kernels = int(replayed(trace).sum())
    return TraceFault(
        code="graphs-incomplete",
        count=empty,
        message=f"trace incomplete: {counted(len(launched), '{count} graph {launches|launch}')}, "
        f"{counted(kernels, '{count} {kernels|kernel} of graphs')}; {counted(empty, _EMPTY)}",
    )
