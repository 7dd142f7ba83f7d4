"""What an nsys export says of itself: version, start of the session, devices, diagnostics, processes and threads."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np

from suanli.nouns.trace import TraceDevice
from suanli.readers.traces.gathered import Array, Faults
from suanli.readers.traces.nsys_tables import NONE, Tables

META, GPU, CUDA_DEVICE = "META_DATA_EXPORT", "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE"
DIAGNOSTIC, SESSION = "DIAGNOSTIC_EVENT", "TARGET_INFO_SESSION_START_TIME"
STRINGS, PROCESSES, THREADS = "StringIds", "PROCESSES", "ThreadNames"
KNOWN_MAJOR = "3"  # of the export's schema
THREAD_BITS = 24  # globalTid = … · pid · tid, 24 bits each of the lower two
THREAD_MASK = 2**THREAD_BITS - 1
_SEVERE = (2, 3)  # ENUM_DIAGNOSTIC_SEVERITY_LEVEL: 1 information, 2 warning, 3 error, 4 verbose
_LOST = re.compile(
    r"\b(lost|drop(ped)?|discard(ed)?|overflow(ed)?|not all|incomplete|missing|truncated)\b", re.IGNORECASE
)
_MOST_DIAGNOSTICS, _LONGEST = 20, 300


def strings(tables: Tables) -> dict[int, str]:
    """Texts by their number."""
    rows = tables.values(STRINGS, ("id", "value")) if STRINGS in tables else []
    return {number: text for number, text in rows if isinstance(number, int) and isinstance(text, str)}


def producer(tables: Tables, faults: Faults) -> str:
    """Product, version and schema as far as said; a schema that is unknown or not said is noted."""
    said = {str(name): str(value) for name, value in tables.values(META, ("name", "value"))}
    schema = said.get("EXPORT_SCHEMA_VERSION")
    if schema is None:
        faults.note("schema-version", f"the export does not say its schema ({META}): columns are taken by name")
    elif schema.split(".")[0] != KNOWN_MAJOR:
        sentence = f"the export has schema {schema[:40]}, written for {KNOWN_MAJOR}.x: columns are taken by name"
        faults.note("schema-version", sentence)
    parts = (said.get("EXPORT_PRODUCT_NAME", "Nsight Systems"), said.get("EXPORT_PRODUCT_VERSION"))
    text = " ".join(part[:80] for part in parts if part)
    return f"{text}, schema {schema[:40]}" if schema else text


def session_start_ns(tables: Tables) -> int:
    """UTC of the session's start, which event times count from; 0 where it is not said."""
    rows = tables.values(SESSION, ("utcEpochNs",)) if SESSION in tables else []
    start = rows[0][0] if rows else 0
    return start if isinstance(start, int) and 0 < start < 2**61 else 0


def described_devices(tables: Tables) -> list[TraceDevice]:
    """Rows of TARGET_INFO_GPU; filtered exports have none."""
    wanted = ("id", "name", "smCount", "totalMemory", "memoryBandwidth")
    rows = tables.values(GPU, wanted) if GPU in tables else []
    return [
        TraceDevice(
            id=number,
            name=name if isinstance(name, str) and name else None,
            sm_count=_positive(cores),
            memory_bytes=_positive(memory),
            memory_bytes_per_s=_positive(bandwidth),
        )
        for number, name, cores, memory, bandwidth in rows
        if isinstance(number, int) and abs(number) < 2**31
    ]


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def gpu_of(tables: Tables, process: Array, ordinal: Array, faults: Faults) -> Array:
    """The GPU of each piece of work: CUDA numbers devices per process (CUDA_VISIBLE_DEVICES), a table has the GPU.

    Without the table the ordinal is taken, and a number that several processes use is noted.
    """
    columns = tables.whole(CUDA_DEVICE, ("gpuId", "cudaId", "pid")) if CUDA_DEVICE in tables else {}
    known: dict[tuple[int, int], int] = {}
    for gpu, cuda, pid in zip(*(columns[name].tolist() for name in columns), strict=True) if columns else ():
        if NONE not in (gpu, cuda, pid):
            known[pid, cuda] = gpu
    found = ordinal.copy()
    shared: Counter[int] = Counter()
    for number in np.unique(ordinal).tolist():
        at = ordinal == number
        for one in np.unique(process[at]).tolist():
            place = known.get(((one >> THREAD_BITS) & THREAD_MASK, number)) if one != NONE else None
            shared[number] += place is None and one != NONE
            if place is not None:
                found[at & (process == one)] = place
    for number, processes in shared.items():
        if processes > 1:
            sentence = (
                f"{processes} processes ran work on device {number}, taken as one GPU: {CUDA_DEVICE} is not there"
            )
            faults.note("shared-device", sentence)
    return found


def diagnostics(tables: Tables, faults: Faults) -> None:
    """Warnings and errors of the profiler itself, the same text once; lost events by their own code."""
    rows = tables.values(DIAGNOSTIC, ("severity", "text")) if DIAGNOSTIC in tables else []
    texts = Counter(
        " ".join(text.split())[:_LONGEST]
        for severity, text in rows
        if isinstance(text, str) and isinstance(severity, int) and (severity in _SEVERE or _LOST.search(text))
    )
    for text, count in texts.most_common(_MOST_DIAGNOSTICS):
        code = "dropped-events" if _LOST.search(text) else "diagnostic"
        faults.say(code, count, f"the profiler says: {text}")
    rest = len(texts) - _MOST_DIAGNOSTICS
    faults.add("diagnostic", rest, "{count} more {warnings|warning} of the profiler") if rest > 0 else None


def threads(tables: Tables, numbers: list[int], texts: dict[int, str]) -> tuple[tuple[str, str], ...]:
    """Process and thread of each globalTid: a name where one is given, and the number."""
    columns = tables.whole(THREADS, ("nameId", "globalTid")) if THREADS in tables else {}
    of_thread = dict(zip(columns["globalTid"].tolist(), columns["nameId"].tolist(), strict=True)) if columns else {}
    rows = tables.values(PROCESSES, ("globalPid", "name")) if PROCESSES in tables else []
    of_process = {number: name for number, name in rows if isinstance(number, int) and isinstance(name, str)}
    return tuple(
        (
            _named(of_process.get(number & ~THREAD_MASK), (number >> THREAD_BITS) & THREAD_MASK),
            _named(texts.get(of_thread.get(number, NONE)), number & THREAD_MASK),
        )
        for number in numbers
    )


def _named(name: str | None, number: int) -> str:
    return f"{name} {number}" if name else str(number)
