"""What `rerun` and `diff` answer: what differs between two reports, figure by figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def _doc(doc: str, unit: str = "", **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of two reports."""

    file: str = _doc("where it lies; empty for a result made now")
    kind: str = _doc("verb that made it")
    version: str = _doc("version of Suanli that made it")
    convention: str | None = _doc("convention of its FLOPs")


@dataclass(frozen=True, kw_only=True)
class Moved:
    """A number that is another one in the second report."""

    key: str = _doc("key of the JSON under `result`; rows by their name, else by their place from 0")
    old: int | float = _doc("in the first report, in the unit of the JSON")
    new: int | float = _doc("in the second")
    change: int | float = _doc("new less old")
    fraction: float | None = _doc("change over the old number; None where that is 0", "fraction")


@dataclass(frozen=True, kw_only=True)
class Reworded:
    """Anything else that is not the same: a text, a choice, a number that became none."""

    key: str = _doc("key of the JSON")
    old: Any = _doc("in the first report")
    new: Any = _doc("in the second")


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What differs between two reports of one verb."""

    first: Side = _doc("the older, or the one named first")
    second: Side = _doc("the one made now, or named second")
    equal: bool = _doc("nothing under `result` differs")
    compared: int = _doc("numbers that stand in both", "numbers")
    inputs: tuple[Reworded, ...] = _doc("options that differ; None: not given")
    numbers: tuple[Moved, ...] = _doc("numbers that differ, in the order of the report")
    texts: tuple[Reworded, ...] = _doc("other values that differ")
    gone: tuple[str, ...] = _doc("keys of the first report alone")
    added: tuple[str, ...] = _doc("keys of the second report alone")
