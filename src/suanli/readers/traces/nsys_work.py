"""Device work of an nsys export: kernels, copies, sets, and graphs that were traced as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from suanli.nouns.trace import OpDetail, WorkKind
from suanli.readers.traces.gathered import Array, Faults, Names, Once, distinct
from suanli.readers.traces.nsys_tables import NONE, Tables

KERNEL, MEMCPY, MEMSET, GRAPH = (
    f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")
)
REQUIRED = ("start", "end", "deviceId")
NAMES = ("demangledName", "shortName", "mangledName")
_COMMON = (*REQUIRED, "streamId", "correlationId", "globalPid", "graphId", "graphNodeId")
_SHAPE = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
          "dynamicSharedMemory")  # fmt: skip
# CUpti_ActivityMemcpyKind; 11 to 13 are migrations of unified memory
COPIES = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP",
    11: "UVM HtoD", 12: "UVM DtoH", 13: "UVM DtoD",
}  # fmt: skip
Columns = dict[str, Array]
_WHOLE = (
    "{count} {replays of CUDA graphs have|replay of a CUDA graph has} no kernels: profile with --cuda-graph-trace=node"
)


@dataclass(frozen=True)
class Gathering:
    """What the tables of one file are read into."""

    tables: Tables
    texts: dict[int, str]
    names: Names
    details: Once[OpDetail]
    copies: Names
    faults: Faults
    shapes: list[bool] = field(default_factory=list)  # whether operators came with shapes


def device_columns(of: Gathering) -> Columns:
    """The rows of all tables of device work, one after the other, with `process` (globalPid) beside the columns."""
    readers = {KERNEL: _kernels, MEMCPY: _copies, MEMSET: _sets, GRAPH: _graphs}
    pieces = [read(of) for table, read in readers.items() if table in of.tables]
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]} if pieces else {}


def _common(of: Gathering, table: str, more: tuple[str, ...], kind: WorkKind) -> tuple[Columns, Columns]:
    """Columns that every table fills alike, and the raw ones."""
    raw = of.tables.whole(table, (*_COMMON, *more))
    rows = len(raw["start"])
    nowhere: Array = np.full(rows, -1, dtype=np.int64)
    made = {
        "start_ns": raw["start"],
        "end_ns": raw["end"],
        "device": raw["deviceId"],
        "stream": _or_none(raw["streamId"], 0),
        "kind": np.full(rows, kind, dtype=np.int64),
        # exports in which nothing may be NULL have 0 for "none": numbers of all three start at 1
        "correlation": _or_none(raw["correlationId"], 1),
        "graph": _or_none(raw["graphId"], 1),
        "graph_node": _or_none(raw["graphNodeId"], 1),
        "process": raw["globalPid"],
    }
    return made | dict.fromkeys(("name", "bytes", "copy", "detail"), nowhere), raw


def _or_none(values: Array, least: int) -> Array:
    """-1 where a value is below `least`, and NULL is."""
    chosen: Array = np.where(values >= least, values, -1)
    return chosen


def _kernels(of: Gathering) -> Columns:
    made, raw = _common(of, KERNEL, (*NAMES, *_SHAPE), WorkKind.KERNEL)
    chosen = np.full(len(made["name"]), NONE, dtype=np.int64)
    for column in NAMES:  # the fullest first; a number without a text is as good as none
        known = np.isin(raw[column], _keys(of.texts))
        chosen = np.where((chosen == NONE) & known, raw[column], chosen)
    numbers, place = np.unique(chosen, return_inverse=True)
    named = of.names.column(of.texts.get(number, "kernel without a name") for number in numbers.tolist())
    of.faults.add("no-name", int((chosen == NONE).sum()), "{count} {kernels have|kernel has} no name in StringIds")
    shapes = [raw[name] for name in _SHAPE]
    first, number = distinct(shapes)
    details = [_detail(of, [int(column[row]) for column in shapes]) for row in first.tolist()]
    return made | {"name": named[place].astype(np.int64), "detail": np.array(details, dtype=np.int64)[number]}


def _keys(texts: dict[int, str]) -> Array:
    return np.fromiter(texts, dtype=np.int64, count=len(texts))


def _detail(of: Gathering, values: list[int]) -> int:
    """The launch's shape; -1 where the export has none of it."""
    said: dict[str, object] = {}
    for key, part in (("grid", values[0:3]), ("block", values[3:6])):
        if NONE not in part:
            said[key] = tuple(part)
    if values[6] != NONE:
        said["registers per thread"] = values[6]
    memory = [value for value in values[7:] if value != NONE]
    if memory:
        said["shared memory"] = sum(memory)
    return of.details.place(("kernel", *values), OpDetail(kernel=said)) if said else -1


def _copies(of: Gathering) -> Columns:
    made, raw = _common(of, MEMCPY, ("bytes", "copyKind"), WorkKind.COPY)
    kinds, place = np.unique(raw["copyKind"], return_inverse=True)
    labels = [COPIES.get(kind) for kind in kinds.tolist()]
    copy = np.array([-1 if label is None else of.copies.of(label) for label in labels], dtype=np.int64)
    name = np.array([of.names.of(f"Memcpy {label}" if label else "Memcpy") for label in labels], dtype=np.int64)
    return made | {"bytes": _or_none(raw["bytes"], 0), "copy": copy[place], "name": name[place]}


def _sets(of: Gathering) -> Columns:
    made, raw = _common(of, MEMSET, ("bytes",), WorkKind.SET)
    return made | {"bytes": _or_none(raw["bytes"], 0), "name": np.full(len(raw["bytes"]), of.names.of("Memset"))}


def _graphs(of: Gathering) -> Columns:
    made, _ = _common(of, GRAPH, (), WorkKind.KERNEL)
    graphs, place = np.unique(made["graph"], return_inverse=True)
    labels = (f"CUDA graph {graph}" if graph >= 0 else "CUDA graph" for graph in graphs.tolist())
    of.faults.add("graph-as-a-whole", len(place), _WHOLE)
    return made | {"name": of.names.column(labels)[place].astype(np.int64)}
