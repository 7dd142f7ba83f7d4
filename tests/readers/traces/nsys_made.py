"""Small nsys exports made by the tests: tables with the columns named, of schema 3.x or of an old one."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
PID = 281_474_976_710_656 + (77 << 24)  # globalPid of process 77: the lower 24 bits are the thread's
OTHER = 281_474_976_710_656 + (78 << 24)
TID = PID + 5  # globalTid of thread 5 of it
STRINGS = {
    1: "void gemm<float>(int)", 2: "gemm", 3: "cudaLaunchKernel_v7000", 4: "_Z4gemmIfEvi", 5: "cudaMemcpyAsync_v3020",
    6: "ncclAllReduce", 7: "ncclCommInitRankConfig", 8: "worker",
}  # fmt: skip
META = [
    {"name": "EXPORT_PRODUCT_NAME", "value": "NVIDIA Nsight Systems"},
    {"name": "EXPORT_PRODUCT_VERSION", "value": "2026.1.1.204"},
    {"name": "EXPORT_SCHEMA_VERSION", "value": "3.24.14"},
]
SHAPE = {"gridX": 8, "gridY": 4, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1, "registersPerThread": 32,
         "staticSharedMemory": 16, "dynamicSharedMemory": 1024}  # fmt: skip


def kernel(start: int, end: int, correlation: int | None = 1, **more: Any) -> dict[str, Any]:
    """A row of CUPTI_ACTIVITY_KIND_KERNEL, on device 0, stream 7 of process 77."""
    row = {"start": start, "end": end, "deviceId": 0, "streamId": 7, "correlationId": correlation, "globalPid": PID}
    return row | {"demangledName": 1, "shortName": 2, "graphId": None, "graphNodeId": None} | SHAPE | more


def copy(start: int, end: int, kind: int = 1, **more: Any) -> dict[str, Any]:
    """A row of CUPTI_ACTIVITY_KIND_MEMCPY."""
    row = {"start": start, "end": end, "deviceId": 0, "streamId": 7, "correlationId": 2, "globalPid": PID}
    return row | {"bytes": 4096, "copyKind": kind} | more


def call(start: int, end: int, correlation: int = 1, **more: Any) -> dict[str, Any]:
    """A row of CUPTI_ACTIVITY_KIND_RUNTIME."""
    return {"start": start, "end": end, "globalTid": TID, "correlationId": correlation, "nameId": 3} | more


def nvtx(start: int, end: int | None, text: str | None = None, **more: Any) -> dict[str, Any]:
    """A row of NVTX_EVENTS: a push/pop range of thread 5."""
    row = {"start": start, "end": end, "eventType": 59, "text": text, "globalTid": TID, "textId": None, "domainId": 0}
    return row | {"jsonText": None, "jsonTextId": None, "binaryData": None} | more


def made(path: Path, tables: Mapping[str, Sequence[Row]], more_sql: str = "", declared: str = "") -> Path:
    """Write an export: the given tables, StringIds and META_DATA_EXPORT unless they are given."""
    every: dict[str, Sequence[Row]] = {
        "META_DATA_EXPORT": META,
        "StringIds": [{"id": number, "value": text} for number, text in STRINGS.items()],
    } | dict(tables)
    with sqlite3.connect(path) as connection:
        for table, rows in every.items():
            names = list(dict.fromkeys(name for row in rows for name in row)) or ["start", "end", "deviceId"]
            columns = ", ".join(f'"{name}" {_type(name)} {declared}' for name in names)
            connection.execute(f'CREATE TABLE "{table}" ({columns})')
            for row in rows:
                marks = ", ".join("?" for _ in names)
                connection.execute(f'INSERT INTO "{table}" VALUES ({marks})', [row.get(name) for name in names])
        connection.executescript(more_sql)
    connection.close()
    return path


def _type(name: str) -> str:
    return {"text": "TEXT", "value": "TEXT", "name": "TEXT", "jsonText": "TEXT", "binaryData": ""}.get(name, "INTEGER")
