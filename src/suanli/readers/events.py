"""A run's log of events as a CSV: what the job did from when to when.

Columns `start`, `end`, `kind` and, if wanted, `cause`. Times are ISO 8601, or lengths since the start with a unit
(`3.5h`).
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from suanli.errors import FaultList, InputError, SuanliError, nearest_names, shown
from suanli.readers import files
from suanli.units import parse

USEFUL, DOWN, REPLAY = "training", "restart", "replay"
KINDS = {
    USEFUL: "work that stayed",
    REPLAY: "work done again after an interrupt",
    "checkpoint": "standing still for a checkpoint",
    DOWN: "down after an interrupt: detection, repair, restart, loading",
    "maintenance": "planned downtime",
    "waiting": "waiting for data, nodes or the queue",
    "other": "anything else that is not work",
}
NEEDED = ("start", "end", "kind")
_COLUMNS = "columns start, end, kind and, if wanted, cause"
MOST_EVENTS = 1_000_000
MOST_FAULTS = 20


@dataclass(frozen=True)
class Event:
    """One span of wall time, in seconds from the first."""

    start_s: float
    end_s: float
    kind: str
    cause: str
    line: int

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end_s - self.start_s


def read_events(path: Path) -> tuple[Event, ...]:
    """The events of a CSV file, in order of time. Raises InputError listing the faults (the first twenty)."""
    faults = FaultList(InputError)
    rows: list[Event] = []
    try:
        rows.extend(_rows(files.read_table_text(path), str(path), faults))
    except csv.Error:  # a stray carriage return, a field without end
        faults.add(code="not_csv", message="not a CSV table", where=str(path), expected=_COLUMNS)
    faults.raise_if_any()
    rows.sort(key=lambda event: (event.start_s, event.end_s))
    for before, after in pairwise(rows):
        if after.start_s < before.end_s - 1e-6 and len(faults.faults) < MOST_FAULTS:
            faults.add(code="overlap", message=f"lines {before.line} and {after.line} overlap", where=str(path),
                       expected="spans one after the other")  # fmt: skip
    faults.raise_if_any()
    first = rows[0].start_s
    return tuple(Event(each.start_s - first, each.end_s - first, each.kind, each.cause, each.line) for each in rows)


def _rows(text: str, where: str, faults: FaultList) -> Iterator[Event]:
    table = csv.DictReader(io.StringIO(text))
    names = [name.strip().lower() for name in table.fieldnames or ()]
    missing = [name for name in NEEDED if name not in names]
    if missing:
        faults.add(code="missing_column", message=f"no column {' or '.join(missing)}", where=where,
                   got=", ".join(map(shown, names)) or "an empty file",
                   expected=_COLUMNS)  # fmt: skip
        return
    table.fieldnames = names
    count = 0
    kinds: dict[str, int] = {}  # ways times are written, with a line that does
    for row in table:
        count += 1
        if count > MOST_EVENTS:
            faults.add(code="too_large", message="too many events", where=where, expected=f"at most {MOST_EVENTS:,}")
            return
        if len(faults.faults) < MOST_FAULTS:
            event = _event(row, where, table.line_num, kinds, faults)
            if event is not None:
                yield event
    if len(kinds) > 1:
        got = " and ".join(f"{kind} (line {line})" for kind, line in kinds.items())
        faults.add(code="mixed_times", message="times written in more than one way", where=where, got=got,
                   expected="dates with a zone, dates without one, or lengths")  # fmt: skip
    if not count:
        faults.add(code="empty", message="no events", where=where, expected="a line for each span of time")


def _event(row: dict[str, str | None], where: str, line: int, kinds: dict[str, int], faults: FaultList) -> Event | None:
    place = f"{where}, line {line}"
    times = [_time(row[name], place, name, faults) for name in ("start", "end")]
    kind = (row["kind"] or "").strip().lower()
    if kind not in KINDS:
        faults.add(code="unknown_kind", message=f"unknown kind {shown(kind)}", where=place,
                   expected="one of " + ", ".join(KINDS), nearest=nearest_names(kind, KINDS))  # fmt: skip
        return None
    if times[0] is None or times[1] is None:
        return None
    (how, start), (how_end, end) = times  # type: ignore[misc]
    kinds.update(dict.fromkeys((how, how_end), line))
    if end <= start:
        faults.add(code="bad_span", message="ends before it starts", where=place, got=f"{row['start']} to {row['end']}",
                   expected="an end after the start")  # fmt: skip
        return None
    return Event(start, end, kind, (row.get("cause") or "").strip(), line)


def _time(text: str | None, where: str, name: str, faults: FaultList) -> tuple[str, float] | None:
    """Kind and seconds: since 1970 for dates (without a zone they are UTC), since the start for lengths."""
    text = (text or "").strip()
    with contextlib.suppress(ValueError, OverflowError):
        date = datetime.fromisoformat(text)
        if date.tzinfo is None:
            return "a date without a zone", date.replace(tzinfo=UTC).timestamp()
        return "a date with a zone", date.timestamp()
    with contextlib.suppress(SuanliError):
        seconds = float(parse(text, "span", name))
        if math.isfinite(seconds):
            return "a length", seconds
    faults.add(code="bad_time", message=f"{name} is no time", where=where, got=shown(text),
               expected="2024-07-01T12:00 or a length with its unit, 3.5h")  # fmt: skip
    return None
