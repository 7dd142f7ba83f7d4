"""Rows in the order a file has them -> the sorted tables of a Trace, places of rows carried along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.nouns.trace import DeviceWork, Host
from suanli.readers.traces.growing import constant, is_constant

Array = npt.NDArray[Any]
WORK_COLUMNS: Mapping[str, type[np.generic]] = {
    "start_ns": np.int64,
    "end_ns": np.int64,
    "device": np.int32,
    "stream": np.int64,
    "name": np.int32,
    "kind": np.uint8,
    "launch": np.int32,
    "op": np.int32,
    "correlation": np.int64,
    "graph": np.int64,
    "graph_node": np.int64,
    "bytes": np.int64,
    "copy": np.int16,
    "detail": np.int32,
    "collective": np.int32,
}
HOST_COLUMNS: Mapping[str, type[np.generic]] = {
    "start_ns": np.int64,
    "end_ns": np.int64,
    "thread": np.int32,
    "name": np.int32,
    "kind": np.uint8,
    "detail": np.int32,
    "collective": np.int32,
    "sequence": np.int64,
    "forward_thread": np.int64,
    "correlation": np.int64,
}


def sorted_tables(
    work: Mapping[str, Array], host: Mapping[str, Array], *, given_up: bool = False
) -> tuple[DeviceWork, Host]:
    """Both tables sorted; `launch` and `op` of `work` are rows of `host` as given and become rows of the sorted one.

    A column not given is -1 throughout; `start_ns`, `end_ns`, and of host `thread`, must be given. Columns that are
    `given_up`, each an array of its own, are written over, as long tables are slow to find memory for.
    """
    spans = _typed(host, HOST_COLUMNS)
    order = _parents_first(spans["thread"], spans["start_ns"], spans["end_ns"])
    pieces = _typed(work, WORK_COLUMNS)
    for column in ("launch", "op"):
        pieces[column] = _moved(pieces[column], order)
    by_time = np.lexsort((pieces["end_ns"], pieces["start_ns"], pieces["device"]))
    return (
        DeviceWork(**_reordered(pieces, by_time, given_up=False)),
        Host(**_reordered(spans, order, given_up=given_up)),
    )


def _reordered(columns: Mapping[str, Array], order: Array, *, given_up: bool) -> dict[str, Array]:
    """Every column in a new order; each is written to the place of the one of its type before it, where `given_up`."""
    found: dict[str, Array] = {}
    spare: dict[np.dtype[Any], Array] = {}
    for name, values in columns.items():
        if is_constant(values):
            found[name] = values
            continue
        out = spare.pop(values.dtype, None) if given_up else None
        found[name] = values.take(order, out=out, mode="clip")  # another mode would write to a copy first
        spare[values.dtype] = values
    return found


def by_begin(table: dict[str, Array]) -> dict[str, Array]:
    """The rows in the order in which they begin, the longer first: for those that came as they ended."""
    order = np.lexsort((-table["end_ns"], table["start_ns"]))
    return {name: values[order] for name, values in table.items()}


def _parents_first(thread: Array, start: Array, end: Array) -> Array:
    """The order by thread, then start, then the longer first, so that a parent stands before its children.

    Files are nearly in order of start, which a stable sort is quick with; lengths are in none, so that only spans of
    the same start are sorted by them.
    """
    order = np.argsort(start, kind="stable")
    order = order[np.argsort(thread[order], kind="stable")]
    again = (np.diff(start[order]) == 0) & (np.diff(thread[order]) == 0)  # starts where the one before it does
    if (again & (np.diff(end[order]) > 0)).any():
        beside = np.concatenate((again, [False])) | np.concatenate(([False], again))
        group = np.cumsum(~np.concatenate(([False], again)))[beside]
        order[beside] = order[beside][np.lexsort((-end[order[beside]], group))]
    return order


def _typed(given: Mapping[str, Array], columns: Mapping[str, type[np.generic]]) -> dict[str, Array]:
    """Every column in its type, one length; -1 where the reader has nothing."""
    unknown = set(given) - set(columns)
    assert not unknown, f"no such columns: {sorted(unknown)}"
    rows = len(given["start_ns"])
    made = {
        name: np.asarray(given[name], dtype=kind) if name in given else constant(-1, rows, kind)
        for name, kind in columns.items()
    }
    assert all(len(values) == rows for values in made.values()), "columns of different lengths"
    return made


def _moved(places: Array, order: Array) -> Array:
    """Places of rows after the rows were put in `order`; -1 stays."""
    after: Array = np.empty(len(order) + 1, dtype=np.int32)
    after[order] = np.arange(len(order), dtype=np.int32)
    after[-1] = -1
    moved: Array = after[places]
    return moved
