"""What a profiler saw, whatever its format: device work, host spans, and what is known of each, as columns.

Times are whole nanoseconds (int64) on the clock of the file with its base time added; nothing is rounded.
Tables are structures of arrays, one place a row; -1 stands for "none" in every column of places and numbers.
A reader gives what the file says and joins what the file itself joins (a kernel to its launch, a launch to its op).
What kernels are (matmul, communication …), steps, FLOPs and idle time are the business of `suanli.explain`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

Column = Any  # a one-dimensional numpy array; nouns never import numpy


def _field(unit: str, doc: str, **options: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **options)


class WorkKind(IntEnum):
    """What the profiler says a piece of device work is."""

    KERNEL = 0
    COPY = 1
    SET = 2


class HostKind(IntEnum):
    """What a span of a host thread is."""

    OP = 0  # an operator of the framework: aten::mm, an autograd node, an HLO op of the host
    RUNTIME = 1  # a call of the driver or runtime: cudaLaunchKernel, hipMemcpyAsync, cudaDeviceSynchronize
    MARK = 2  # what somebody named: ProfilerStep#3, record_function, an NVTX range


@dataclass(frozen=True, kw_only=True)
class TraceDevice:
    """One device as the file describes it. None means not said."""

    id: int = _field("", "number in the file")
    name: str | None = _field("", "name the driver reports", default=None)
    sm_count: int | None = _field("", "multiprocessors, compute units or cores", default=None)
    memory_bytes: int | None = _field("B", "device memory", default=None)
    memory_bytes_per_s: float | None = _field("B/s", "peak bandwidth the file states", default=None)
    peak_flop_per_s: float | None = _field("FLOP/s", "peak the file states (TPU)", default=None)


@dataclass(frozen=True, kw_only=True)
class OpDetail:
    """What a file says of one operator call or kernel beyond its name; equal ones are kept once. None: not recorded."""

    dims: tuple[Any, ...] | None = _field(
        "", "input shapes, one an argument; () for a scalar, nested for lists", default=None
    )
    types: tuple[str, ...] | None = _field("", "input types as printed, one an argument", default=None)
    concrete: tuple[str, ...] | None = _field("", "values of scalar arguments as text, one an argument", default=None)
    kernel: Mapping[str, Any] | None = _field(
        "", "what else is said of a kernel: grid, block, kernel_file …", default=None
    )
    hlo: Mapping[str, Any] | None = _field("", "XLA: module, op, category, text of the instruction", default=None)
    flops: float | None = _field("FLOPs", "the profiler's own count for one run", default=None)
    model_flops: float | None = _field("FLOPs", "the profiler's own count of model FLOPs for one run", default=None)
    bytes_accessed: float | None = _field("B", "the profiler's own count for one run", default=None)


@dataclass(frozen=True, kw_only=True)
class CollectiveCall:
    """What a file says of one call of a communication library. None: not said."""

    name: str | None = _field("", "allreduce, _allgather_base, send …, as printed", default=None)
    group: str | None = _field("", "name of the process group or communicator", default=None)
    group_label: str | None = _field("", "its description", default=None)
    ranks: tuple[int, ...] | None = _field("", "members, where listed in full", default=None)
    group_size: int | None = _field("ranks", "members", default=None)
    dtype: str | None = _field("", "element type as printed", default=None)
    in_elements: int | None = _field("", "elements sent in", default=None)
    out_elements: int | None = _field("", "elements that come out", default=None)
    message_bytes: int | None = _field("B", "size where the file states bytes (NCCL's NVTX payload)", default=None)
    sequence: int | None = _field("", "number of the call within its group", default=None)
    peer: int | None = _field("rank", "of a send or receive", default=None)


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceWork:
    """Everything that ran on devices, sorted by device, then start, then end. N rows."""

    start_ns: Column = _field("ns", "int64")
    end_ns: Column = _field("ns", "int64, never before start_ns")
    device: Column = _field("", "int32: TraceDevice.id")
    stream: Column = _field("", "int64: stream, queue or line")
    name: Column = _field("", "int32: place in Trace.names")
    kind: Column = _field("", "uint8: WorkKind")
    launch: Column = _field("", "int32: row of Host, the runtime call that launched it; -1: not in the file")
    op: Column = _field("", "int32: row of Host, the op the file itself ties it to; -1: none")
    correlation: Column = _field("", "int64: the file's own number of the launch (joined within a process)")
    graph: Column = _field("", "int64: number of the graph it was replayed from; -1: none or not said")
    graph_node: Column = _field("", "int64: node within the graph; -1: none or not said")
    bytes: Column = _field("B", "int64: of a copy or set; -1: not said")
    copy: Column = _field("", "int16: place in Trace.copy_kinds; -1: not a copy, or not said")
    detail: Column = _field("", "int32: place in Trace.details; -1: none")
    collective: Column = _field("", "int32: place in Trace.collectives; -1: none")

    def __len__(self) -> int:
        """Pieces of work."""
        return len(self.start_ns)


@dataclass(frozen=True, kw_only=True, eq=False)
class Host:
    """Spans of host threads, sorted by thread, then start, then the longer first. M rows."""

    start_ns: Column = _field("ns", "int64")
    end_ns: Column = _field("ns", "int64, never before start_ns")
    thread: Column = _field("", "int32: place in Trace.threads")
    name: Column = _field("", "int32: place in Trace.names")
    kind: Column = _field("", "uint8: HostKind")
    detail: Column = _field("", "int32: place in Trace.details; -1: none")
    collective: Column = _field("", "int32: place in Trace.collectives; -1: none")
    sequence: Column = _field("", "int64: autograd sequence number; -1: none")
    forward_thread: Column = _field(
        "", "int64: thread of the forward op where > 0 (then this is a backward op); else -1"
    )
    correlation: Column = _field("", "int64: of a runtime call; -1: none")

    def __len__(self) -> int:
        """Spans."""
        return len(self.start_ns)


@dataclass(frozen=True, kw_only=True)
class TraceFault:
    """Something the file had wrong or left out, counted: shown as a warning, never hidden."""

    code: str = _field("", "broken-json, negative-duration, no-time, dropped-events, base-time …")
    count: int = _field("", "events or pieces concerned; 0 where it cannot be counted")
    message: str = _field("", "a sentence for the reader")


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """One file of a profiler."""

    path: str = _field("", "name of the file as given")
    format: str = _field("", "kineto, chrome, nsys, xplane, jax-json, rocprofv3")
    producer: str = _field("", "who wrote it and which version, as far as said", default="")
    bytes_read: int = _field("B", "size of the file, unpacked", default=0)
    events: int = _field("", "events in the file, those not kept included", default=0)
    devices: tuple[TraceDevice, ...] = _field("", "devices described or seen, by id")
    names: tuple[str, ...] = _field("", "each name once")
    threads: tuple[tuple[str, str], ...] = _field("", "process and thread of host spans, as printed")
    copy_kinds: tuple[str, ...] = _field("", "HtoD, DtoH, DtoD, PtoP …", default=())
    details: tuple[OpDetail, ...] = _field("", "what ops and kernels say, each once", default=())
    collectives: tuple[CollectiveCall, ...] = _field("", "calls of a communication library", default=())
    work: DeviceWork = _field("", "what ran on devices")
    host: Host = _field("", "what ran on host threads")
    rank: int | None = _field("", "rank of the process; None: not said", default=None)
    world_size: int | None = _field("ranks", "None: not said", default=None)
    base_ns: int = _field("ns", "what was added to the file's own times", default=0)
    groups: Mapping[str, tuple[int, ...]] = _field("", "ranks of each process group", default_factory=dict)
    recorded: Mapping[str, bool] = _field(
        "", "switches of the profiler, where said: shapes, stacks, flops, modules, memory", default_factory=dict
    )
    faults: tuple[TraceFault, ...] = _field("", "what was wrong or missing", default=())
