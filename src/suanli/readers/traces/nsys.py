"""SQLite exports of Nsight Systems (`nsys export --type sqlite`), schema 3.x, as a Trace.

The vendor says that the schema changes at will and that tables are made with their first row, so columns are taken by
what exists. `correlationId` is unique within a process alone: a piece of work is joined to its launch by both. Times
count from the session's start; its UTC is added where the export says it (`Trace.base_ns`). Nothing of the file is run
and nothing is written beside it: see `nsys_tables`.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from suanli.errors import Fault, UnreadableFileError
from suanli.nouns.trace import CollectiveCall, OpDetail, Trace
from suanli.readers.traces.columns import sorted_tables
from suanli.readers.traces.gathered import Array, Faults, Names, Once, devices_seen, joined, sound, within
from suanli.readers.traces.nsys_about import (
    META,
    STRINGS,
    THREAD_MASK,
    described_devices,
    diagnostics,
    gpu_of,
    producer,
    session_start_ns,
    strings,
    threads,
)
from suanli.readers.traces.nsys_host import APART, CALLS, HOST, NVTX, call_columns, range_columns
from suanli.readers.traces.nsys_tables import NONE, Tables, open_tables
from suanli.readers.traces.nsys_work import (
    GRAPH,
    KERNEL,
    MEMCPY,
    MEMSET,
    NAMES,
    REQUIRED,
    Columns,
    Gathering,
    device_columns,
)
from suanli.readers.traces.opened import refuse
from suanli.readers.traces.sentences import NO_DEVICE, SPANS
from suanli.readers.traces.sentences import WORK as PIECES

WORK = (KERNEL, MEMCPY, MEMSET, GRAPH)
SYNCHRONIZATION = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"  # waiting is no device work
_JOINING = ("correlationId", "globalPid", "streamId")
_EVENTS = (*WORK, *CALLS, NVTX, SYNCHRONIZATION)


def read_nsys(path: str | os.PathLike[str]) -> Trace:
    """The trace in an nsys export.

    Raises UnreadableFileError for a file that is absent, no SQLite, broken, no export of nsys, or one whose tables of
    device work lack columns without which there is no time (all of them are named).
    """
    with open_tables(Path(path)) as tables:
        _check(tables)
        return _trace(str(path), tables)


def _check(tables: Tables) -> None:
    if any(name.startswith("rocpd_") for name in tables.names):
        refuse(tables.path, "rocpd", "the SQLite database is one of rocprofv3 (rocpd), which is not read",
               expected="its JSON", hint="Record with rocprofv3 --output-format json.")  # fmt: skip
    if META not in tables and not any(table in tables for table in _EVENTS):
        refuse(
            tables.path,
            "not_nsys",
            "the SQLite database is no export of Nsight Systems",
            expected=f"a table {META} or {KERNEL}",
            hint="Export the report: nsys export --type sqlite REPORT.nsys-rep.",
        )
    missing = [
        f"{table}.{name}" for table in WORK if table in tables for name in REQUIRED if not tables.has(table, name)
    ]
    spans = [table for table in (*CALLS, NVTX) if table in tables]
    missing += [f"{table}.{name}" for table in spans for name in ("start", "end") if not tables.has(table, name)]
    if KERNEL in tables and not any(tables.has(KERNEL, name) for name in NAMES):
        missing.append(f"{KERNEL}.{NAMES[0]}")
    if missing:
        raise UnreadableFileError(
            *(
                Fault(
                    code="missing_column",
                    message=f"the nsys export lacks the column {name}",
                    where=str(tables.path),
                    hint="Export the report again with a current nsys.",
                )
                for name in missing
            )
        )


def _trace(path: str, tables: Tables) -> Trace:
    faults = Faults()
    texts = strings(tables)
    of = Gathering(tables, texts, Names(), Once[OpDetail](), Names(), faults)
    collectives = Once[CollectiveCall]()
    made_by = producer(tables, faults)
    _note_missing(tables, faults)
    base = session_start_ns(tables)
    host, labels = _host(of, call_columns(of), range_columns(of, collectives))
    work = _work(of, host)
    pieces, spans = sorted_tables(_based(work, base), _based(host, base))
    diagnostics(tables, faults)
    return Trace(
        path=path,
        format="nsys",
        producer=made_by,
        bytes_read=tables.size_bytes,
        events=sum(tables.count(table) for table in _EVENTS),
        devices=devices_seen(described_devices(tables), np.unique(pieces.device).tolist()),
        names=tuple(of.names.items),
        threads=labels,
        copy_kinds=tuple(of.copies.items),
        details=tuple(of.details.items),
        collectives=tuple(collectives.items),
        work=pieces,
        host=spans,
        base_ns=base,
        recorded={"shapes": any(of.shapes)} if of.shapes else {},
        faults=faults.found(),
    )


def _note_missing(tables: Tables, faults: Faults) -> None:
    """What would make the trace fuller and is not there."""
    if not any(table in tables for table in WORK):
        faults.note("no-device-work", "the export has no kernels, copies or sets: profile with --trace=cuda,nvtx")
    if KERNEL in tables and STRINGS not in tables:
        faults.note("missing-table", f"the export has no {STRINGS}: kernels have no names")
    missing = [
        f"{table}.{name}" for table in WORK if table in tables for name in _JOINING if not tables.has(table, name)
    ]
    missing += [
        f"{table}.{name}"
        for table in CALLS
        if table in tables
        for name in ("correlationId", "globalTid")
        if not tables.has(table, name)
    ]
    if missing:
        faults.note("missing-column", f"the export lacks {', '.join(missing)}")
    pending = tables.path.with_name(f"{tables.path.name}-wal")
    if pending.exists() and pending.stat().st_size:
        faults.note("not-merged", f"{pending.name} beside the export holds changes that are not read")


def _host(of: Gathering, calls: Columns, ranges: Columns) -> tuple[Columns, tuple[tuple[str, str], ...]]:
    """All spans that have a time, `thread` as a place among the labels, and `process` (globalPid) beside."""
    apart = np.concatenate((np.zeros(len(calls["thread"]), dtype=bool), ranges.get("apart", np.empty(0, dtype=bool))))
    merged = {name: np.concatenate((calls[name], ranges[name])) for name in HOST}
    kept = sound(merged["start_ns"], merged["end_ns"], of.faults, SPANS)
    merged, apart = {name: values[kept] for name, values in merged.items()}, apart[kept]
    thread = np.where(merged["thread"] == NONE, 0, merged["thread"])
    lanes, place = np.unique(np.stack((thread, apart.astype(np.int64))), axis=1, return_inverse=True)
    plain = threads(of.tables, lanes[0].tolist(), of.texts)
    labels = tuple(
        (process, f"{name}{APART}" if ranged else name)
        for (process, name), ranged in zip(plain, lanes[1].tolist(), strict=True)
    )
    return merged | {"thread": place.reshape(-1), "process": _process(thread)}, labels


def _process(thread: Array) -> Array:
    """globalPid of a globalTid: the thread's 24 bits are 0."""
    process: Array = thread & ~np.int64(THREAD_MASK)
    return process


def _work(of: Gathering, host: Columns) -> Columns:
    """Device work that has a time and a device, each joined to its launch within its process."""
    work = device_columns(of)
    if not work:
        return {name: np.empty(0, dtype=np.int64) for name in ("start_ns", "end_ns", "device")}
    placed = within(work["device"], 2**31)
    of.faults.add("no-device", int((~placed).sum()), NO_DEVICE)
    work = {name: values[placed] for name, values in work.items()}
    kept = sound(work["start_ns"], work["end_ns"], of.faults, PIECES)
    work = {name: values[kept] for name, values in work.items()}
    process = work["process"]
    work["launch"] = _launches(of, work, host)
    work["device"] = gpu_of(of.tables, process, work["device"], of.faults)
    return work


def _launches(of: Gathering, work: Columns, host: Columns) -> Array:
    """The call of the same process and correlation. Work without a process is joined where there is one process."""
    calls, process = np.where(host["correlation"] >= 0, host["process"], -1), work["process"]
    callers = np.unique(host["process"][host["correlation"] >= 0])
    unsaid = process == NONE
    if len(callers) == 1:
        process = np.where(unsaid, callers[0], process)
    elif len(callers):
        sentence = "{count} {pieces|piece} of device work {do not say their|does not say its} process, of several: "
        sentence += "{they have|it has} no launch"
        of.faults.add("no-process", int(unsaid.sum()), sentence)
    return joined(process, work["correlation"], calls, host["correlation"])


def _based(columns: Columns, base: int) -> Columns:
    """The columns of a table alone, on the clock of the session's start."""
    based = {name: values for name, values in columns.items() if name != "process"}
    return based | {name: based[name] + base for name in ("start_ns", "end_ns")}
