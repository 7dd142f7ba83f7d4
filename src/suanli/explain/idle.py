"""Why a device had nothing to run: what its host was doing in the instants of each gap.

A gap ends with a piece of work; the host thread that launched it is looked at. Before the launch the host was fetching
data, inside a synchronising call, or at anything else (host-bound, until the work starts). Where the launch came before
the device ran dry, the work waited for the device itself: other streams, other ranks, the next kernel of a graph.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from suanli.explain.intervals import Array, Cover, gaps
from suanli.explain.sweep import Pieces, cut
from suanli.nouns.trace import DeviceWork, Host, HostKind, Trace

HOST, SYNC, DATA = "idle: host-bound", "idle: synchronisation", "idle: waiting for data"
QUEUED, BETWEEN, UNKNOWN = "idle: launched, not started", "idle: between steps", "idle: launch not in the file"
PARTS = (HOST, SYNC, DATA, QUEUED, BETWEEN, UNKNOWN)

# Calls in which the host waits for the device: CUDA, HIP, Level Zero and SYCL, MTIA, Ascend, PjRt.
SYNCHRONISES = re.compile(
    r"(?i)synchroni[sz]e|^(cuda|hip|cu)Memcpy(?!.*(Async|Peer))|hipMemcpyWithStream|^urQueueFinish|BlockUntilReady"
    r"|block_until_ready|^(cuda|hip|cu)(Free|Malloc)(_v\d+)?$"
)
# What people and frameworks call waiting for a batch.
DATA_WAITS = re.compile(
    r"(?i)^enumerate\(DataLoader\)|dataloader.*(next|fetch|iter)|wait_for_(batch|data)|(load|fetch|get|next)_batch"
    r"|data_?(wait|load|fetch)|train_dataloader_next|batch[_-]generator|IteratorGetNext|prefetch_to_device"
)


@dataclass(frozen=True, eq=False)
class Waits:
    """Of one host thread: when it fetched data, and when it fetched data or waited for the device."""

    data: Cover
    any_wait: Cover


def waits(trace: Trace) -> dict[int, Waits]:
    """The waits of every host thread that has any."""
    host = trace.host
    sync = named(trace, SYNCHRONISES) & (host.kind == HostKind.RUNTIME)
    data = named(trace, DATA_WAITS) & (host.kind != HostKind.RUNTIME)
    found = {}
    for thread in np.unique(host.thread[sync | data]):
        own = host.thread == thread
        found[int(thread)] = Waits(_cover(host, own & data), _cover(host, own & (data | sync)))
    return found


def named(trace: Trace, pattern: re.Pattern[str]) -> Array:
    """bool [M]: host spans whose name fits, each distinct name looked at once."""
    table = np.zeros(len(trace.names), dtype=bool)
    for place in np.flatnonzero(np.bincount(trace.host.name)):
        table[place] = pattern.search(trace.names[place]) is not None
    return table[trace.host.name] if len(trace.host) else np.zeros(0, dtype=bool)


def _cover(host: Host, chosen: Array) -> Cover:
    return Cover(host.start_ns[chosen], host.end_ns[chosen])


@dataclass(frozen=True, eq=False)
class Gaps:
    """Idle intervals of one device and the work that ends each."""

    start: Array
    end: Array
    row: Array  # row of DeviceWork that ends the gap: of those that start then, the first launched
    launched: Array  # ns; -1: not in the file
    thread: Array  # of the launch; -1: not in the file


def gaps_of(pieces: Pieces, work: DeviceWork, host: Host, borders: Array) -> Gaps:
    """The gaps between the pieces of one device, cut at borders (at work of no length, which fills no gap)."""
    start, end = gaps(pieces.start, pieces.end)
    apart = cut(np.arange(len(start)), start, end, borders)
    start, end = apart.start, apart.end
    first = np.searchsorted(pieces.start, end, side="left")
    count = np.searchsorted(pieces.start, end, side="right") - first
    row = pieces.row[first] if len(end) else np.zeros(0, dtype=np.int64)
    for gap in np.flatnonzero(count > 1):
        row[gap] = _first_launched(pieces.row[first[gap] : first[gap] + count[gap]], work, host)
    launch = work.launch[row]
    known = launch >= 0
    launched = np.where(known, host.start_ns[launch] if len(host) else 0, -1)
    thread = np.where(known, host.thread[launch] if len(host) else 0, -1)
    return Gaps(start, end, row, launched, thread)


def _first_launched(rows: Array, work: DeviceWork, host: Host) -> int:
    linked = rows[work.launch[rows] >= 0]
    if not len(linked):
        return int(rows[0])
    return int(linked[np.argmin(host.start_ns[work.launch[linked]])])


def split_ns(found: Gaps, waiting: dict[int, Waits], borders: Array) -> dict[str, Array]:
    """Part → ns of each gap. What no cause explains of a gap before a step's first work is between steps."""
    length = found.end - found.start
    known = found.thread >= 0
    launched = np.clip(np.where(known, found.launched, found.start), found.start, found.end)
    data, either = np.zeros_like(length), np.zeros_like(length)
    for thread in np.unique(found.thread[known]):
        own = found.thread == thread
        if (spans := waiting.get(int(thread))) is not None:
            data[own] = spans.data.between(found.start[own], launched[own])
            either[own] = spans.any_wait.between(found.start[own], launched[own])
    rest = length - either
    late = known & (found.launched > found.start)
    between = np.isin(found.end, borders)
    causes = {
        QUEUED: known & ~late & ~between, BETWEEN: between, HOST: late & ~between, UNKNOWN: ~known & ~between,
    }  # fmt: skip
    return {DATA: data, SYNC: either - data} | {part: rest * chosen for part, chosen in causes.items()}
