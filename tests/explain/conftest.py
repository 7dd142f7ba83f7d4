"""Traces of a few rows, written by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.trace import Host, HostKind, Trace, TraceDevice, WorkKind
from suanli.readers.traces.columns import sorted_tables

Rows = Sequence[Mapping[str, Any]]
KINDS = {"kernel": WorkKind.KERNEL, "copy": WorkKind.COPY, "set": WorkKind.SET}
HOST_KINDS = {"op": HostKind.OP, "runtime": HostKind.RUNTIME, "mark": HostKind.MARK}


def table(rows: Rows, names: dict[str, int], kinds: Mapping[str, int], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of rows given as dicts; names become places."""
    keys = {key for row in rows for key in row} | set(defaults)
    columns: dict[str, Any] = {}
    for key in keys:
        values = [row.get(key, defaults.get(key, -1)) for row in rows]
        if key == "name":
            values = [names.setdefault(value, len(names)) for value in values]
        if key == "kind":
            values = [kinds[value] for value in values]
        columns[key] = np.array(values, dtype=np.int64)
    return columns


def build(work: Rows = (), host: Rows = (), **fields: Any) -> Trace:
    """A trace of rows of work and host as dicts with start_ns, end_ns, name, kind …; `launch` is a row of `host`."""
    names: dict[str, int] = {}
    basic = {"start_ns": 0, "end_ns": 0, "name": "kernel"}
    columns = table(work, names, KINDS, basic | {"device": 0, "stream": 7, "kind": "kernel"})
    spans = table(host, names, HOST_KINDS, basic | {"thread": 0, "kind": "runtime"})
    rows, hosts = sorted_tables(columns, spans)
    given = {
        "devices": (TraceDevice(id=0, name="NVIDIA H100 80GB HBM3", sm_count=132),),
        "path": "t",
        "format": "kineto",
    }
    return Trace(**{**given, "names": tuple(names) or ("none",), "threads": (("1", "1"),), "work": rows, "host": hosts,
                    **fields})  # fmt: skip


def attributed(
    work_class: Sequence[int],
    flops: Sequence[float | None],
    dtypes: Sequence[str | None],
    recompute: Sequence[int] = (),
) -> Attribution:
    """An attribution of rows in their order; None: not known."""
    names = tuple(dict.fromkeys(each for each in dtypes if each))
    count = len(work_class)
    again = np.isin(np.arange(count), list(recompute))
    return Attribution(
        work_class=np.array(work_class, dtype=np.uint8),
        op=np.full(count, -1),
        formula=np.full(count, -1),
        flops=np.array([each or 0.0 for each in flops]),
        flops_known=np.array([each is not None for each in flops], dtype=bool),
        bytes=np.zeros(count),
        bytes_known=np.zeros(count, dtype=bool),
        dtype=np.array([names.index(each) if each else -1 for each in dtypes], dtype=np.int16),
        recompute=again,
        backward=np.zeros(count, dtype=bool),
        dtypes=names,
    )


@pytest.fixture(scope="session")
def make() -> Callable[..., Trace]:
    return build


@pytest.fixture(scope="session")
def attribute() -> Callable[..., Attribution]:
    return attributed


@pytest.fixture
def no_host() -> Host:
    return build().host


MATMUL, COMPUTE, COMM, PEER, COPY = (int(each) for each in WorkClass)
