"""Compares what two reports hold: their JSON, number by number, rows beside rows of the same name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.repeated import Changes, Moved, Reworded, Side
from suanli.readers.reports import Report

# What tells a row of a list from the others, the first that does so in both reports.
NAMES = ("name", "id", "entry", "layout", "path", "key", "short_id", "device", "gpus", "quantity", "topic", "axis")
ROUNDING = 1e-12  # of a number: what another order of the same sum leaves
# Times of the search itself, which no two runs share.
TIMINGS = {"layout": ("search_s", "refine_s"), "compare": ("seconds",)}
MISSING: Any = object()


def changes_of(first: Report, second: Report) -> Changes:
    """What of the second is not as in the first."""
    book = _Book(TIMINGS.get(first.kind, ()) if first.kind == second.kind else ())
    book.compare("", first.result, second.result)
    given = _Book(())
    given.compare("", _plain_inputs(first.inputs), _plain_inputs(second.inputs))
    inputs = [*(Reworded(key=each.key, old=each.old, new=each.new) for each in given.numbers), *given.texts]
    inputs += [Reworded(key=key, old=_at(first.inputs, key), new=None) for key in given.gone]
    inputs += [Reworded(key=key, old=None, new=_at(second.inputs, key)) for key in given.added]
    return Changes(
        first=_side(first), second=_side(second), compared=book.compared, inputs=tuple(inputs),
        equal=not (book.numbers or book.texts or book.gone or book.added), numbers=tuple(book.numbers),
        texts=tuple(book.texts), gone=tuple(book.gone), added=tuple(book.added),
    )  # fmt: skip


def _side(report: Report) -> Side:
    return Side(
        file=str(report.file) if report.file.name else "", kind=report.kind, version=report.version,
        convention=report.convention,
    )  # fmt: skip


def _plain_inputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What was given and what was assumed: the same value is no difference, whichever it was."""
    assumed = inputs.get("assumed")
    given = {name: value for name, value in inputs.items() if name != "assumed" and value is not None}
    return {**(assumed if isinstance(assumed, Mapping) else {}), **given}


def _at(inputs: Mapping[str, Any], key: str) -> Any:
    found: Any = _plain_inputs(inputs)
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


@dataclass
class _Book:
    """Differences as they are found."""

    left_out: Sequence[str]
    compared: int = 0
    numbers: list[Moved] = field(default_factory=list)
    texts: list[Reworded] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    def compare(self, key: str, old: Any, new: Any) -> None:
        """Two values of the same place."""
        if old is MISSING or new is MISSING:
            (self.added if old is MISSING else self.gone).append(key)
        elif isinstance(old, Mapping) and isinstance(new, Mapping):
            for name, left, right in _pairs(old, new):
                if name not in self.left_out:
                    self.compare(f"{key}.{name}" if key else name, left, right)
        elif isinstance(old, list) and isinstance(new, list):
            for name, left, right in _rows(old, new):
                self.compare(f"{key}[{name}]", left, right)
        elif _is_number(old) and _is_number(new):
            self._number(key, old, new)
        elif old != new:
            self.texts.append(Reworded(key=key, old=old, new=new))

    def _number(self, key: str, old: float, new: float) -> None:
        self.compared += 1
        whole = isinstance(old, int) and isinstance(new, int)
        if old != new and (whole or abs(new - old) > ROUNDING * max(abs(old), abs(new))):
            fraction = (new - old) / old if old else None
            self.numbers.append(Moved(key=key, old=old, new=new, change=new - old, fraction=fraction))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pairs(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Values of the same name, in the order of the first report."""
    for name in dict.fromkeys((*old, *new)):
        yield name, old.get(name, MISSING), new.get(name, MISSING)


def _rows(old: list[Any], new: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Rows of the same name where rows have one each, else of the same place."""
    name = next((each for each in NAMES if _tells(old, each) and _tells(new, each)), None)
    if name is None or not old or not new:
        places = range(max(len(old), len(new)))
        yield from ((str(at), *(_get(rows, at) for rows in (old, new))) for at in places)
        return
    yield from _pairs(*({str(row[name]): row for row in rows} for rows in (old, new)))


def _get(rows: list[Any], at: int) -> Any:
    return rows[at] if at < len(rows) else MISSING


def _tells(rows: list[Any], name: str) -> bool:
    """Whether every row is a record with a name of its own."""
    names = [row.get(name) if isinstance(row, Mapping) else None for row in rows]
    if not all(isinstance(each, str | int) and not isinstance(each, bool) for each in names):
        return False
    return len({str(each) for each in names}) == len(names)
