"""Records of Kineto's events -> columns, text by text, so that no record outlives its text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.nouns.trace import WorkKind
from suanli.readers.traces.columns import HOST_COLUMNS, WORK_COLUMNS
from suanli.readers.traces.growing import GrowingTable
from suanli.readers.traces.interning import Places
from suanli.readers.traces.kineto_details import Details, value_of
from suanli.readers.traces.kineto_events import HALVES, NONE, KinetoDecoder, Width, absent, says_more
from suanli.readers.traces.kineto_threads import Threads
from suanli.readers.traces.numbers import MISSING, nanoseconds, whole_nanoseconds, whole_numbers

Array = npt.NDArray[Any]
_WORK, _HOST = ({**columns, "external": np.int64} for columns in (WORK_COLUMNS, HOST_COLUMNS))
_COPY = re.compile(r"\b([A-Z][a-z]?to[A-Z][a-z]?)\b")
_DIGITS = re.compile(r"\d{1,9}")


class KinetoColumns:
    """Columns of device work and of host spans of one file, and the things that stand in them once."""

    def __init__(self, decoder: KinetoDecoder) -> None:
        self.decoder = decoder
        self.names, self.threads, self.copies = Places(), Places(), Places()
        self._threads = Threads(self.threads)
        self.details = Details()
        self.no_time = self.negative = self.negative_work = 0
        self.halves = 0  # events that begin or end only ("B", "E"): none of them is taken
        self.phases: Counter[str] = Counter()  # of events that are neither whole nor halves of one
        self.unknown: dict[str, int] = {}
        self._labels: dict[tuple[bytes, bytes, str], str] = {}
        self._work, self._host = GrowingTable(_WORK), GrowingTable(_HOST)

    def add(self, records: Sequence[Any]) -> bool:
        """Take what is kept of the records of one text; False, and nothing taken, where only full records hold all."""
        codes = self.decoder.codes
        code = np.frombuffer(bytes(map(codes.__getitem__, map(type, records))), dtype=np.uint8)
        work, ops, calls = (self._rows(records, code, low, high) for low, high in self.decoder.groups)
        if not self.decoder.full and (says_more(work.args, ops=False) or says_more(ops.args, ops=True)):
            return False
        for phase in (*work.others, *ops.others, *calls.others):
            self.halves += phase in HALVES
            self.phases[phase] += phase not in HALVES
        if work.rows:
            self._work.add(self._of_work(work))
        if ops.rows:
            self._host.add(self._spans(ops) | self._of_ops(ops.args))
        if calls.rows:
            self._host.add(self._spans(calls) | {"correlation": whole_numbers([a.correlation for a in calls.args])})
        if self.decoder.unknown:
            self._count_unknown(records)
        return True

    def _rows(self, records: Sequence[Any], code: Array, low: int, high: int) -> _Rows:
        """The complete events of some categories."""
        among = (code >= low) & (code < high)
        if not among.any():
            return _Rows([], [], code[:0], [])
        rows, own, others = list(compress(records, among.tobytes())), code[among], []
        if self.decoder.width == Width.ANY and [row.ph for row in rows].count("X") < len(rows):
            whole = [row.ph == "X" for row in rows]
            others = [row.ph for row in rows if row.ph != "X"]
            rows, own = list(compress(rows, whole)), own[np.array(whole, dtype=bool)]
        return _Rows(rows, [row.args for row in rows], own, others)

    def _count_unknown(self, records: Sequence[Any]) -> None:
        names = self.decoder.unknown
        found = Counter((names[r.__class__], r.ph) for r in records if r.__class__ in names)
        for (cat, phase), count in found.items():
            self.halves += count * (phase in HALVES)
            if phase == "X":
                self.unknown[cat] = self.unknown.get(cat, 0) + count

    def take_over(self, lists: Mapping[str, Sequence[Any]], work: dict[str, Array], host: dict[str, Array]) -> None:
        """Rows that were read beside these, to stand behind them. `lists` has what their places are places in."""
        places = {"name": self.names, "thread": self.threads, "copy": self.copies,
                  "detail": self.details.ops, "collective": self.details.calls}  # fmt: skip
        mine = {name: np.array([*(places[name][key] for key in keys), -1]) for name, keys in lists.items()}
        for table, part in ((self._work, work), (self._host, host)):
            if part:
                table.add({name: mine[name][values] if name in mine else values for name, values in part.items()})

    def take_counts(self, counts: tuple[int, int, int], unknown: Mapping[str, int]) -> None:
        """What was left out of rows that were read beside these."""
        no_time, negative, negative_work = counts
        self.no_time += no_time
        self.negative += negative
        self.negative_work += negative_work
        for cat, count in unknown.items():
            self.unknown[cat] = self.unknown.get(cat, 0) + count

    def work(self) -> dict[str, Array]:
        """Columns of device work, in the order of the file; `external` beside those of DeviceWork. Once only."""
        return self._work.taken()

    def host(self) -> dict[str, Array]:
        """Columns of host spans, in the order of the file; `external` beside those of Host. Once only."""
        return self._host.taken()

    def _of_work(self, taken: _Rows) -> dict[str, Array]:
        rows, args, kinds = taken.rows, taken.args, self.decoder.kinds[taken.code]
        columns = self._times(rows, work=True) | {
            "kind": kinds,
            "name": self.names.of([row.name for row in rows]),
            "device": _or_else(whole_numbers([a.device for a in args]), lambda at: _number(rows[at].pid)),
            "stream": _or_else(whole_numbers([a.stream for a in args]), lambda at: _number(rows[at].tid)),
            "correlation": whole_numbers([a.correlation for a in args]),
            "external": _ids(_first_said([a.external for a in args], lambda: [a.old_external for a in args])),
            "bytes": whole_numbers(_first_said([a.bytes for a in args], lambda: [a.size for a in args])),
            "detail": self.details.of_kernels(args),
            "copy": self._copy_kinds(rows, kinds),
        }
        columns |= _if_any("graph", [a.graph for a in args])
        columns |= _if_any("graph_node", [a.graph_node for a in args])
        return columns | self._of_collectives(args)

    def _spans(self, taken: _Rows) -> dict[str, Array]:
        rows = taken.rows
        return self._times(rows, work=False) | {
            "kind": self.decoder.kinds[taken.code],
            "name": self.names.of([row.name for row in rows]),
            "thread": self._threads.of([row.pid for row in rows], [row.tid for row in rows], self.decoder.width),
        }

    def _of_ops(self, args: Sequence[Any]) -> dict[str, Array]:
        columns = {
            "external": _ids([a.external for a in args]),
            "forward_thread": _ids([a.forward for a in args]),
            "detail": self.details.of_ops(args, launches=self.decoder.full),
        }
        return columns | _if_any("sequence", [a.sequence for a in args]) | self._of_collectives(args)

    def _of_collectives(self, args: Sequence[Any]) -> dict[str, Array]:
        """Nothing where records are too small to hold any: then none was said."""
        return {"collective": self.details.of_collectives(args)} if self.decoder.full else {}

    def _times(self, rows: Sequence[Any], *, work: bool) -> dict[str, Array]:
        """Start and end, and which rows are `kept` where not all are."""
        ns = whole_nanoseconds if self.decoder.width == Width.WHOLE else nanoseconds
        start, length = ns([row.ts for row in rows]), ns([row.dur for row in rows])
        if start.min() > 0 and length.min() >= 0:
            return {"start_ns": start, "end_ns": start + length}
        lacking = (start == MISSING) | (length == MISSING) | ((start == 0) & (length == 0))
        negative = ~lacking & (length < 0)
        self.no_time += int(lacking.sum())
        self.negative += int(negative.sum())
        self.negative_work += int(negative.sum()) * work
        return {"start_ns": start, "end_ns": start + length, "kept": ~(lacking | negative)}

    def _copy_kinds(self, rows: Sequence[Any], kinds: Array) -> Array:
        """Places of HtoD and its kin, by what the event says, else by its name; MTIA says a direction."""
        found = np.full(len(rows), -1)
        directions = [row.args.direction for row in rows]
        directed = [] if absent(directions) else [at for at, said in enumerate(directions) if said is not NONE]
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


@dataclass(frozen=True)
class _Rows:
    """Complete events, their arguments, the code of each one's category; and the phases of those that are none."""

    rows: list[Any]
    args: list[Any]
    code: Array
    others: list[str]


def _first_said(values: Sequence[int], other: Callable[[], Sequence[int]]) -> Sequence[int]:
    """Each value, and where it is negative the other one, which is rarely asked for."""
    if min(values) >= 0:
        return values
    if max(values) < 0:
        return other()
    return [value if value >= 0 else instead for value, instead in zip(values, other(), strict=True)]


def _if_any(name: str, values: Sequence[int]) -> dict[str, Array]:
    """A column of whole numbers; none where all are -1."""
    return {} if values.count(-1) == len(values) else {name: whole_numbers(values)}


def _ids(values: Sequence[int]) -> Array:
    """External ids and threads; -1 for none, which is also written as 0."""
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
