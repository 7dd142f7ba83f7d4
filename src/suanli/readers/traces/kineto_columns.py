"""Records of Kineto's events -> columns, text by text, so that no record outlives its text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.nouns.trace import WorkKind
from suanli.readers.traces.interning import Places
from suanli.readers.traces.kineto_details import Details, value_of
from suanli.readers.traces.kineto_events import NONE, KinetoDecoder, says_more
from suanli.readers.traces.numbers import MISSING, nanoseconds, whole_numbers

Array = npt.NDArray[Any]
_COPY = re.compile(r"\b([A-Z][a-z]?to[A-Z][a-z]?)\b")
_DIGITS = re.compile(r"\d{1,9}")
_HALF_WORD = 2**31  # two numbers below it are one that fits int64


class KinetoColumns:
    """Columns of device work and of host spans of one file, and the things that stand in them once."""

    def __init__(self, decoder: KinetoDecoder) -> None:
        self.decoder = decoder
        self.names, self.threads, self.copies = Places(), Places(), Places()
        self.details = Details()
        self.no_time = self.negative = self.negative_work = 0
        self.unknown: dict[str, int] = {}
        self._labels: dict[tuple[bytes, bytes, str], str] = {}
        self._work: list[dict[str, Array]] = []
        self._host: list[dict[str, Array]] = []

    def add(self, records: Sequence[Any]) -> bool:
        """Take what is kept of the records of one text; False, and nothing taken, where only full records hold all."""
        codes, groups = self.decoder.codes, self.decoder.groups
        kept = [record for record in records if record.__class__ in codes]
        code = np.fromiter(map(codes.__getitem__, map(type, kept)), dtype=np.uint8, count=len(kept))
        taken = [_Rows.of(kept, code, low, high) for low, high in groups]
        if not self.decoder.full and self._more(*taken[:2]):
            return False
        self._take_work(taken[0])
        self._take_ops(taken[1])
        self._take_calls(taken[2])
        if self.decoder.unknown:
            self._count_unknown(records)
        return True

    def _more(self, work: _Rows, ops: _Rows) -> bool:
        return says_more(work.args, ops=False) or says_more(ops.args, ops=True)

    def _count_unknown(self, records: Sequence[Any]) -> None:
        names = self.decoder.unknown
        for cat, count in Counter(names[r.__class__] for r in records if r.__class__ in names and r.ph == "X").items():
            self.unknown[cat] = self.unknown.get(cat, 0) + count

    def work(self) -> dict[str, Array]:
        """Columns of device work so far, in the order of the file; `external` beside those of DeviceWork."""
        return _concatenated(self._work, _NO_WORK)

    def host(self) -> dict[str, Array]:
        """Columns of host spans so far, in the order of the file; `external` beside those of Host."""
        return _concatenated(self._host, _NO_HOST)

    def _take_work(self, taken: _Rows) -> None:
        rows, args, kinds = taken.rows, taken.args, self.decoder.kinds[taken.code]
        if not rows:
            return
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

    def _take_ops(self, taken: _Rows) -> None:
        if taken.rows:
            self._host.append(self._timed(self._spans(taken) | self._of_ops(taken.args)))

    def _take_calls(self, taken: _Rows) -> None:
        if taken.rows:
            self._host.append(self._timed(self._spans(taken) | _of_calls(taken.args)))

    def _spans(self, taken: _Rows) -> dict[str, Array]:
        rows = taken.rows
        return self._times(rows, work=False) | {
            "kind": self.decoder.kinds[taken.code],
            "name": self.names.of([row.name for row in rows]),
            "thread": self._threads([row.pid for row in rows], [row.tid for row in rows]),
        }

    def _threads(self, pids: Sequence[int | str], tids: Sequence[int | str]) -> Array:
        """Places of process and thread: numbers nearly always, which numpy tells apart."""
        try:
            pair = np.array((pids, tids), dtype=np.int64)
        except (ValueError, OverflowError):  # a name among them
            return self.threads.of([_thread(each) for each in zip(pids, tids, strict=True)])
        if isinstance(pids[0], str) or (pair < 0).any() or (pair >= _HALF_WORD).any():
            return self.threads.of([_thread(each) for each in zip(pids, tids, strict=True)])
        found, back = np.unique(pair[0] * _HALF_WORD + pair[1], return_inverse=True)
        return self.threads.of([_thread(divmod(int(each), _HALF_WORD)) for each in found])[back]

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
        directed = [at for at, row in enumerate(rows) if row.args.direction is not NONE]
        for at in {*np.flatnonzero(kinds == WorkKind.COPY).tolist(), *directed}:
            args, name = rows[at].args, rows[at].name
            key = bytes(args.kind), bytes(args.direction), name
            if key not in self._labels:
                said = value_of(key[0]) or value_of(key[1]) or ""
                match = _COPY.search(str(said)) or _COPY.search(name)
                self._labels[key] = match[1] if match else str(said)
            label = self._labels[key]
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


@dataclass(frozen=True)
class _Rows:
    """The complete events of some categories, their arguments, and the code of each one's category."""

    rows: list[Any]
    args: list[Any]
    code: Array

    @classmethod
    def of(cls, kept: Sequence[Any], code: Array, low: int, high: int) -> _Rows:
        among = (code >= low) & (code < high)
        rows, own = list(compress(kept, among.tolist())), code[among]
        if [row.ph for row in rows].count("X") < len(rows):
            whole = [row.ph == "X" for row in rows]
            rows, own = list(compress(rows, whole)), own[np.array(whole, dtype=bool)]
        return cls(rows, [row.args for row in rows], own)


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
    """Process and thread as text: some files print the same number now with quotes, now without."""
    return str(pair[0])[:200], str(pair[1])[:200]
