"""Host spans of an nsys export: calls of the CUDA runtime and driver, and NVTX ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suanli.nouns.trace import CollectiveCall, HostKind, OpDetail
from suanli.readers.traces.gathered import Array, Once
from suanli.readers.traces.nsys_tables import NONE, Tables
from suanli.readers.traces.nsys_work import Columns, Gathering
from suanli.readers.traces.nvtx_payload import COMMUNICATOR, RANKS, Payloads, collective
from suanli.readers.traces.nvtx_text import nvtx_text

CALLS = tuple(f"CUPTI_ACTIVITY_KIND_{name}" for name in ("RUNTIME", "DRIVER"))
NVTX, ENTRIES = "NVTX_EVENTS", "NVTX_PAYLOAD_SCHEMA_ENTRIES"
# ENUM_NSYS_EVENT_TYPE: marks 34, 65; push/pop 59, 70; start/end 60, 71, which need not nest and may end elsewhere
MARKS, PUSHED, STARTED = (34, 65), (59, 70), (60, 71)
APART = " start/end ranges"  # beside a thread's name: spans of one thread nest
HOST = ("start_ns", "end_ns", "thread", "name", "kind", "detail", "collective", "sequence", "correlation")
_NCCL = "nccl"


def call_columns(of: Gathering) -> Columns:
    """Calls of the runtime and the driver; `thread` is the globalTid."""
    pieces = [_calls(of, table) for table in CALLS if table in of.tables]
    return _stacked(pieces)


def _calls(of: Gathering, table: str) -> Columns:
    raw = of.tables.whole(table, ("start", "end", "globalTid", "correlationId", "nameId"))
    rows = len(raw["start"])
    numbers, place = np.unique(raw["nameId"], return_inverse=True)
    named = of.names.column(of.texts.get(number, "call without a name") for number in numbers.tolist())
    nowhere: Array = np.full(rows, -1, dtype=np.int64)
    return dict.fromkeys(HOST, nowhere) | {
        "start_ns": raw["start"],
        "end_ns": raw["end"],
        "thread": raw["globalTid"],
        "name": named[place].astype(np.int64),
        "kind": np.full(rows, HostKind.RUNTIME, dtype=np.int64),
        "correlation": np.where(raw["correlationId"] > 0, raw["correlationId"], -1),
    }


def range_columns(of: Gathering, collectives: Once[CollectiveCall]) -> Columns:
    """NVTX ranges and marks: operators where PyTorch wrote them, else marks; `apart` says which are start/end ranges.

    Ranges without an end are left out and counted.
    """
    if NVTX not in of.tables:
        return _stacked([])
    raw = of.tables.whole(NVTX, ("start", "end", "eventType", "globalTid", "textId", "domainId"))
    texts = of.tables.values(NVTX, ("text", "jsonText", "binaryData", "jsonTextId"))
    kept, end = _ranges(of, raw)
    rows = _Ranges(of, collectives, kept, raw, texts)
    return {
        "start_ns": raw["start"][kept],
        "end_ns": end[kept],
        "thread": raw["globalTid"][kept],
        "apart": np.isin(raw["eventType"][kept], STARTED),
        "correlation": np.full(len(kept), -1, dtype=np.int64),
    } | rows.columns()


def _ranges(of: Gathering, raw: Mapping[str, Array]) -> tuple[Array, Array]:
    """Rows that are ranges or marks, and every row's end. Without eventType all with an end are ranges."""
    kinds = raw["eventType"]
    if not of.tables.has(NVTX, "eventType"):
        return np.flatnonzero(raw["end"] != NONE), raw["end"]
    mark = np.isin(kinds, MARKS)
    ranged = np.isin(kinds, (*PUSHED, *STARTED))
    # exports in which nothing may be NULL have 0 for the end of a range that nobody ended
    open_end = ranged & ((raw["end"] == NONE) | ((raw["end"] == 0) & (raw["start"] > 0)))
    of.faults.add(
        "open-range", int(open_end.sum()), "{count} NVTX {ranges have no end and are|range has no end and is} left out"
    )
    return np.flatnonzero(mark | (ranged & ~open_end)), np.where(mark, raw["start"], raw["end"])


class _Ranges:
    """The texts and payloads of ranges, one row at a time."""

    def __init__(
        self,
        of: Gathering,
        collectives: Once[CollectiveCall],
        kept: Array,
        raw: Mapping[str, Array],
        texts: list[tuple[Any, ...]],
    ) -> None:
        self.of, self.collectives = of, collectives
        self.payloads = Payloads(_entries(of.tables))
        self.ranks: dict[int, int] = {}
        self.details: dict[tuple[Any, ...], int] = {}
        self.shapes = self.operators = 0
        ids = raw["textId"].tolist()
        self.rows = [(self._text(ids[row], texts[row][0]), texts[row][1:]) for row in kept.tolist()]

    def _text(self, number: int, text: Any) -> str:
        if isinstance(text, str) and text:
            return text
        return self.of.texts.get(number, "range without a name")

    def columns(self) -> Columns:
        """name, kind, detail, collective and sequence of each."""
        said = [self._payload(text, more) for text, more in self.rows]
        made = [self._row(text, payload) for (text, _), payload in zip(self.rows, said, strict=True)]
        table = np.array(made, dtype=np.int64).reshape(len(made), 5)
        if self.operators:
            self.of.shapes.append(self.shapes > 0)
        return {name: table[:, at] for at, name in enumerate(("name", "kind", "detail", "collective", "sequence"))}

    def _payload(self, text: str, more: tuple[Any, ...]) -> Mapping[str, int] | None:
        """What NCCL says of a range; the size of a communicator is said once, when it is made."""
        if not text.startswith(_NCCL):
            return None
        json_text, binary, number = more
        found = self.payloads.read(json_text or self.of.texts.get(number), binary)
        self.of.faults.add(
            "payload",
            int(found is None and binary is not None),
            "{count} NVTX {payloads|payload} of NCCL could not be read",
        )
        if found and COMMUNICATOR in found and RANKS in found:
            self.ranks[found[COMMUNICATOR]] = found[RANKS]
        return found

    def _row(self, text: str, payload: Mapping[str, int] | None) -> tuple[int, int, int, int, int]:
        call = collective(text, payload, self.ranks)
        if call is not None:
            return self.of.names.of(text), HostKind.MARK, -1, self.collectives.place(call, call), -1
        said = nvtx_text(text)
        detail = -1
        if said.dims is not None:
            detail = self.details.get(said.dims, -1)
            if detail < 0:
                detail = self.details[said.dims] = self.of.details.place(said.dims, OpDetail(dims=said.dims))
            self.shapes += 1
        self.operators += said.operator
        kind = HostKind.OP if said.operator else HostKind.MARK
        return self.of.names.of(said.name), kind, detail, -1, said.sequence


def _entries(tables: Tables) -> list[tuple[Any, ...]]:
    wanted = ("domainId", "schemaId", "name", "type", "offset")
    return tables.values(ENTRIES, wanted) if ENTRIES in tables else []


def _stacked(pieces: list[Columns]) -> Columns:
    empty: Array = np.empty(0, dtype=np.int64)
    return {name: np.concatenate([piece[name] for piece in pieces]) if pieces else empty for name in HOST}
