"""JSON of rocprofv3 (`--output-format json`), also packed as .gz, as a Trace.

One object a process: dispatches, copies and calls as records of numbers, with tables of names beside them. A record's
`correlation_id.internal` is the number of the call that caused it, within its process. Streams of HIP share the queues
of the hardware; a stream here is the queue, which runs what it is given in order. Times are ns of the machine's clock,
without a base. https://rocm.docs.amd.com/projects/rocprofiler-sdk
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import msgspec
import numpy as np

from suanli.nouns.trace import CollectiveCall, HostKind, OpDetail, Trace, TraceDevice, WorkKind
from suanli.readers.traces.columns import sorted_tables
from suanli.readers.traces.gathered import Array, Faults, Names, Once, devices_seen, joined, sound
from suanli.readers.traces.opened import read_unpacked, refuse
from suanli.readers.traces.rocprofv3_records import Agent, Document, Extent, Handle, Process, Record, Symbol
from suanli.readers.traces.rocprofv3_salvage import salvaged
from suanli.readers.traces.sentences import NO_DEVICE, SPANS
from suanli.readers.traces.sentences import WORK as PIECES

_GPU = 2  # of agents: 1 is a CPU
_COPIES = {
    "HOST_TO_HOST": "HtoH", "HOST_TO_DEVICE": "HtoD", "DEVICE_TO_HOST": "DtoH", "DEVICE_TO_DEVICE": "DtoD",
}  # fmt: skip
_COPY = "MEMORY_COPY_"


CALLS = {"hip_api": HostKind.RUNTIME, "hsa_api": HostKind.RUNTIME, "rccl_api": HostKind.RUNTIME,
         "marker_api": HostKind.MARK}  # fmt: skip
WORK = ("start_ns", "end_ns", "device", "stream", "name", "kind", "bytes", "copy", "detail", "correlation", "process")
HOST = ("start_ns", "end_ns", "thread", "name", "kind", "collective", "correlation", "process")
Row = tuple[int, ...]


def read_rocprofv3(path: str | os.PathLike[str]) -> Trace:
    """The trace in a JSON file of rocprofv3.

    Raises UnreadableFileError for a file that is absent, no JSON, or not of this form.
    """
    content, given = read_unpacked(Path(path))
    faults = Faults(given)
    try:
        processes = msgspec.json.decode(content, type=Document).processes
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        processes = salvaged(content, faults) or _refuse(path, problem)
    return _Reading(str(path), len(content), processes, faults).trace()


def _refuse(path: str | os.PathLike[str], problem: Exception) -> NoReturn:
    hint = "Record again with: rocprofv3 --output-format json --kernel-trace --memory-copy-trace -- COMMAND."
    refuse(path, "bad_rocprofv3", "the file is no JSON of rocprofv3", got=str(problem)[:200], hint=hint)


class _Reading:
    """One file on its way to a Trace."""

    def __init__(self, path: str, size: int, processes: list[Process], faults: Faults) -> None:
        self.path, self.size, self.processes, self.faults = path, size, processes, faults
        self.names, self.copies, self.details = Names(), Names(), Once[OpDetail]()
        self.threads, self.collectives = Once[tuple[str, str]](), Once[CollectiveCall]()
        self.work: list[Row] = []
        self.host: list[Row] = []

    def trace(self) -> Trace:
        """Everything, sorted."""
        for number, process in enumerate(self.processes):
            _OneProcess(self, number, process).read()
        events = len(self.work) + len(self.host)
        work, host = self._kept(self.work, WORK, PIECES), self._kept(self.host, HOST, SPANS)
        work["launch"] = joined(work["process"], work["correlation"], host["process"], host["correlation"])
        if not len(work["launch"]):
            self.faults.note("no-device-work", "no kernel was recorded: use --kernel-trace --memory-copy-trace")
        rows, spans = sorted_tables(*({k: v for k, v in each.items() if k != "process"} for each in (work, host)))
        described = [made for process in self.processes for made in _devices(process)]
        return Trace(
            path=self.path,
            format="rocprofv3",
            producer="rocprofv3",
            bytes_read=self.size,
            events=events,
            devices=devices_seen(described, np.unique(rows.device).tolist()),
            names=tuple(self.names.items),
            threads=tuple(self.threads.items),
            copy_kinds=tuple(self.copies.items),
            details=tuple(self.details.items),
            collectives=tuple(self.collectives.items),
            work=rows,
            host=spans,
            faults=self.faults.found(),
        )

    def _kept(self, rows: list[Row], names: tuple[str, ...], what: str) -> dict[str, Array]:
        table = np.array(rows, dtype=np.int64).reshape(len(rows), len(names))
        table = table[sound(table[:, 0], table[:, 1], self.faults, what)]
        return {name: table[:, at] for at, name in enumerate(names)}


class _OneProcess:
    """The records of one process, with its own tables of names."""

    def __init__(self, into: _Reading, number: int, process: Process) -> None:
        self.into, self.number, self.process = into, number, process
        self.kinds = process.strings.buffer_records
        self.gpus = {agent.id.handle: _number(agent) for agent in process.agents if agent.type == _GPU}
        self.kernels = {symbol.kernel_id: _kernel_name(symbol) for symbol in process.kernel_symbols}
        self.markers = {text.key: text.value for text in process.strings.marker_api}

    def read(self) -> None:
        """All records."""
        records = self.process.buffer_records
        self.into.work += [row for each in records.kernel_dispatch if (row := self._dispatch(each))]
        self.into.work += [row for each in records.memory_copy if (row := self._copy(each))]
        for domain, kind in CALLS.items():
            self.into.host += [self._call(each, kind) for each in getattr(records, domain)]

    def _dispatch(self, record: Record) -> Row | None:
        info = record.dispatch_info
        device = self._device(info.agent_id)
        if device is None:
            return None
        name = self.kernels.get(info.kernel_id)
        if not name:
            self.into.faults.add(
                "no-name", 1, "{count} {dispatches of kernels|dispatch of a kernel} that the file does not name"
            )
        grid, block = _extent(info.grid_size), _extent(info.workgroup_size)
        detail = self.into.details.place((grid, block), OpDetail(kernel={"grid": grid, "block": block}))
        place = self.into.names.of(name or f"kernel {info.kernel_id}")
        more = (detail, record.correlation_id.internal, self.number)
        return (*_times(record), device, _queue(info.queue_id), place, WorkKind.KERNEL, -1, -1, *more)

    def _copy(self, record: Record) -> Row | None:
        """A copy belongs to the GPU it goes to, or else comes from."""
        ends = (record.dst_agent_id.handle, record.src_agent_id.handle)
        device = next((self.gpus[end] for end in ends if end in self.gpus), None)
        if device is None:
            self.into.faults.add("no-device", 1, NO_DEVICE)
            return None
        label = _COPIES.get(self._operation(record).removeprefix(_COPY))
        copy = -1 if label is None else self.into.copies.of(label)
        place = self.into.names.of(f"Memcpy {label}" if label else "Memcpy")
        more = (max(record.bytes, -1), copy, -1, record.correlation_id.internal, self.number)
        return (*_times(record), device, -1, place, WorkKind.COPY, *more)

    def _call(self, record: Record, kind: HostKind) -> Row:
        number = record.correlation_id.internal
        name = self.markers.get(number) if kind is HostKind.MARK else None
        name = name or self._operation(record) or "call without a name"
        label = (str(self.process.metadata.pid), str(record.thread_id))
        thread = self.into.threads.place((self.number, record.thread_id), label)
        collective = self.into.collectives.place(name, CollectiveCall(name=name)) if name.startswith("nccl") else -1
        correlation = number if kind is HostKind.RUNTIME else -1
        return (*_times(record), thread, self.into.names.of(name), kind, collective, correlation, self.number)

    def _operation(self, record: Record) -> str:
        """The name of what a record is, by the tables; empty: not there."""
        if not 0 <= record.kind < len(self.kinds):
            return ""
        names = self.kinds[record.kind].operations
        return names[record.operation] if 0 <= record.operation < len(names) else ""

    def _device(self, agent: Handle) -> int | None:
        device = self.gpus.get(agent.handle)
        if device is None:
            self.into.faults.add("no-device", 1, NO_DEVICE)
        return device


def _times(record: Record) -> tuple[int, int]:
    return record.start_timestamp, record.end_timestamp


def _queue(queue: Handle) -> int:
    return queue.handle if 0 <= queue.handle < 2**63 else -1


def _extent(size: Extent) -> tuple[int, int, int]:
    return size.x, size.y, size.z


def _kernel_name(symbol: Symbol) -> str:
    return symbol.formatted_kernel_name or symbol.demangled_kernel_name or symbol.kernel_name


def _number(agent: Agent) -> int:
    """The number that HIP gives a GPU where it is visible, else the machine's."""
    return agent.gpu_index if agent.gpu_index >= 0 else agent.logical_node_type_id


def _devices(process: Process) -> list[TraceDevice]:
    return [
        TraceDevice(
            id=_number(agent),
            name=agent.product_name or agent.name or None,
            sm_count=agent.cu_count or None,
            memory_bytes=sum(bank.size_in_bytes for bank in agent.mem_banks) or None,
        )
        for agent in process.agents
        if agent.type == _GPU
    ]
