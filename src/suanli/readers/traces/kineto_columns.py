"""Records of Kineto's events -> columns, text by text, so that no record outlives its text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.readers.traces.interning import Places
from suanli.readers.traces.kineto_details import Details, value_of
from suanli.readers.traces.kineto_events import NONE, KinetoDecoder, says_more
from suanli.readers.traces.numbers import MISSING, nanoseconds, whole_numbers

Array = npt.NDArray[Any]
_COPY = re.compile(r"\b([A-Z][a-z]?to[A-Z][a-z]?)\b")
_DIGITS = re.compile(r"\d{1,9}")
_WORK_CAT, _COPY_CAT = "kernel", "gpu_memcpy"


class KinetoColumns:
    """Columns of device work and of host spans of one file, and the things that stand in them once."""

    def __init__(self, decoder: KinetoDecoder) -> None:
        self.decoder = decoder
        self.names, self.threads, self.copies = Places(), Places(_thread), Places()
        self.details = Details()
        self.no_time = self.negative = self.negative_work = 0
        self.unknown: dict[str, int] = {}
        self._copy_of: dict[int, int] = {}
        self._work: list[dict[str, Array]] = []
        self._host: list[dict[str, Array]] = []

    def add(self, records: Sequence[Any]) -> bool:
        """Take what is kept of the records of one text; False, and nothing taken, where only full records hold all."""
        by_class: dict[type[Any], list[Any]] = {each: [] for each in self.decoder.classes}
        takes = {each: rows.append for each, rows in by_class.items()}
        for record in records:
            takes[record.__class__](record)
        if not self.decoder.full and self._more(by_class):
            return False
        self._take_work(by_class)
        self._take_host(by_class)
        for each, cat in self.decoder.unknown.items():
            spans = sum(record.ph == "X" for record in by_class[each])
            if spans:
                self.unknown[cat] = self.unknown.get(cat, 0) + spans
        return True

    def _more(self, by_class: dict[type[Any], list[Any]]) -> bool:
        work = [row.args for each in self.decoder.work for row in by_class[each]]
        return says_more(work, ops=False) or any(
            says_more([row.args for row in by_class[each]], ops=True) for each in self.decoder.ops
        )

    def work(self) -> dict[str, Array]:
        """Columns of device work so far, in the order of the file; `external` beside those of DeviceWork."""
        return _concatenated(self._work, _NO_WORK)

    def host(self) -> dict[str, Array]:
        """Columns of host spans so far, in the order of the file; `external` beside those of Host."""
        return _concatenated(self._host, _NO_HOST)

    def _take_work(self, by_class: dict[type[Any], list[Any]]) -> None:
        rows, kinds = _spans(by_class, self.decoder.work)
        if not rows:
            return
        args = [row.args for row in rows]
        columns = self._times(rows, work=True) | {
            "kind": kinds,
            "name": self.names.of([row.name for row in rows]),
            "device": _or_else(whole_numbers([a.device for a in args]), lambda at: _number(rows[at].pid)),
            "stream": _or_else(whole_numbers([a.stream for a in args]), lambda at: _number(rows[at].tid)),
            "correlation": whole_numbers([a.correlation for a in args]),
            "external": _ids([a.external if a.external >= 0 else a.old_external for a in args]),
            "graph": whole_numbers([a.graph for a in args]),
            "graph_node": whole_numbers([a.graph_node for a in args]),
            "bytes": whole_numbers([a.bytes if a.bytes >= 0 else a.size for a in args]),
            "detail": self.details.of_kernels(args),
            "collective": self.details.of_collectives(args),
        }
        columns["copy"] = self._copy_kinds(rows, kinds)
        self._work.append(self._timed(columns))

    def _take_host(self, by_class: dict[type[Any], list[Any]]) -> None:
        for classes in (self.decoder.ops, self.decoder.runtime):
            rows, kinds = _spans(by_class, classes)
            if not rows:
                continue
            columns = self._times(rows, work=False) | {
                "kind": kinds,
                "name": self.names.of([row.name for row in rows]),
                "thread": self.threads.of([(row.pid, row.tid) for row in rows]),
            }
            args = [row.args for row in rows]
            columns |= self._of_ops(args) if classes is self.decoder.ops else _of_calls(args)
            self._host.append(self._timed(columns))

    def _of_ops(self, args: Sequence[Any]) -> dict[str, Array]:
        forward = whole_numbers([a.forward for a in args])
        return {
            "external": _ids([a.external for a in args]),
            "sequence": whole_numbers([a.sequence for a in args]),
            "forward_thread": np.where(forward > 0, forward, -1),
            "detail": self.details.of_ops(args),
            "collective": self.details.of_collectives(args),
            "correlation": np.full(len(args), -1),
        }

    def _times(self, rows: Sequence[Any], *, work: bool) -> dict[str, Array]:
        start, length = nanoseconds([row.ts for row in rows]), nanoseconds([row.dur for row in rows])
        lacking = (start == MISSING) | (length == MISSING) | ((start == 0) & (length == 0))
        negative = ~lacking & (length < 0)
        self.no_time += int(lacking.sum())
        self.negative += int(negative.sum())
        self.negative_work += int(negative.sum()) * work
        return {"start_ns": start, "end_ns": start + length, "kept": ~(lacking | negative)}

    def _timed(self, columns: dict[str, Array]) -> dict[str, Array]:
        kept = columns.pop("kept")
        return columns if kept.all() else {name: values[kept] for name, values in columns.items()}

    def _copy_kinds(self, rows: Sequence[Any], kinds: Array) -> Array:
        """Places of HtoD and its kin, by what the event says, else by its name; MTIA says a direction."""
        found = np.full(len(rows), -1)
        for at, row in enumerate(rows):
            args = row.args
            if kinds[at] == 1 or args.direction is not NONE:
                said = value_of(bytes(args.kind)) or value_of(bytes(args.direction)) or ""
                match = _COPY.search(str(said)) or _COPY.search(row.name)
                label = match[1] if match else str(said)
                found[at] = self.copies[label] if label else -1
        return found


_NO_WORK = (
    "start_ns", "end_ns", "kind", "name", "device", "stream", "correlation", "external", "graph", "graph_node", "bytes",
    "detail", "collective", "copy",
)  # fmt: skip
_NO_HOST = (
    "start_ns", "end_ns", "kind", "name", "thread", "external", "sequence", "forward_thread", "detail", "collective",
    "correlation",
)  # fmt: skip


def _concatenated(parts: list[dict[str, Array]], names: Sequence[str]) -> dict[str, Array]:
    empty = np.zeros(0, dtype=np.int64)
    return {name: np.concatenate([part[name] for part in parts]) if parts else empty for name in names}


def _spans(by_class: dict[type[Any], list[Any]], kept: Mapping[type[Any], int]) -> tuple[list[Any], Array]:
    """The complete events of some records, and the kind of each."""
    rows: list[Any] = []
    kinds: list[Array] = []
    for each, kind in kept.items():
        if by_class[each]:
            found = [record for record in by_class[each] if record.ph == "X"]
            rows += found
            kinds.append(np.full(len(found), kind, dtype=np.uint8))
    return rows, np.concatenate(kinds) if kinds else np.zeros(0, dtype=np.uint8)


def _of_calls(args: Sequence[Any]) -> dict[str, Array]:
    none = np.full(len(args), -1)
    names = ("external", "sequence", "forward_thread", "detail", "collective")
    return dict.fromkeys(names, none) | {"correlation": whole_numbers([a.correlation for a in args])}


def _ids(values: Sequence[int]) -> Array:
    """External ids; -1 for none, which old versions wrote as 0."""
    found = whole_numbers(values)
    return np.where(found > 0, found, -1)


def _or_else(values: Array, other: Any) -> Array:
    for at in np.flatnonzero(values < 0):
        values[at] = other(at)
    return values


def _number(value: int | str) -> int:
    """A number of a device or stream as printed; -1 where it is none."""
    match = _DIGITS.search(str(value)[:100])
    return int(match[0]) if match else -1


def _thread(pair: tuple[int | str, int | str]) -> tuple[str, str]:
    return str(pair[0])[:200], str(pair[1])[:200]
