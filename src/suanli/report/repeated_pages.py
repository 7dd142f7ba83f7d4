"""The reports of `rerun` and `diff`: what differs between two reports."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

from suanli.nouns.repeated import Changes, Moved, Reworded, Side
from suanli.nouns.result import Result
from suanli.report.common import NOT_GIVEN
from suanli.report.document import Block, Document, Facts, Lines, Table
from suanli.units import (
    format_as,
    format_change,
    format_exact,
)

MOST = 200  # rows of a table; the JSON has all
_ONLY = {"then": "Only then", "now": "Only now", "A": "Only in A", "B": "Only in B"}
LONGEST = 60  # characters of a value
PARTS = "percent3"
# Endings of keys, and how numbers of these are printed; the first that fits.
_PRINTED = (
    ("flop_per_s", "flop_per_s"), ("bytes_per_s", "bytes_per_s"), ("_bytes", "bytes"), ("_flops", "flops"),
    ("_usd", "usd"), ("_s", "seconds"), ("seconds", "seconds"), ("_fraction", PARTS), ("mfu", PARTS), ("hfu", PARTS),
    ("goodput", PARTS),
)  # fmt: skip
_INSIDE = (("bytes.", "bytes"), ("memory_bytes.", "bytes"), ("flops.", "flops"))


def rerun_document(result: Result) -> Document:
    """What a report says now that it did not say then."""
    found: Changes = result.result
    name, then, now = PurePath(found.first.file).name, found.first.version, found.second.version
    versions = f"version {now}" if then == now else f"version {now}, made under {then}"
    return Document(f"{name}: {_verdict(found)}, {versions}", _blocks(found, "then", "now"))


def diff_document(result: Result) -> Document:
    """What differs between two reports."""
    found: Changes = result.result
    names = (PurePath(found.first.file).name, PurePath(found.second.file).name)
    return Document(f"{names[0]} and {names[1]}: {_verdict(found)}", _blocks(found, "A", "B"))


def _verdict(found: Changes) -> str:
    if found.equal:
        return f"the same result, {found.compared:,} numbers"
    moved = f"{len(found.numbers):,} of {found.compared:,} numbers differ"
    others = len(found.texts) + len(found.gone) + len(found.added)
    return moved + (f", {others:,} other values too" if others else "")


def _facts(found: Changes, names: tuple[str, str]) -> Facts:
    rows = [
        (name, side.file or "made now", _made(side))
        for name, side in zip(names, (found.first, found.second), strict=True)
    ]
    return Facts("Reports", tuple(rows), right=False)


def _made(side: Side) -> str:
    convention = f", convention {side.convention}" if side.convention else ""
    return f"{side.kind}, version {side.version or NOT_GIVEN}{convention}"


def _blocks(found: Changes, first: str, second: str) -> tuple[Block, ...]:
    return (
        _facts(found, (first, second)),
        _reworded("Inputs that differ", found.inputs, first, second),
        _numbers(found.numbers, first, second),
        _reworded("Other values that differ", found.texts, first, second),
        Lines(_ONLY[first], _some(found.gone)),
        Lines(_ONLY[second], _some(found.added)),
    )


def _numbers(rows: tuple[Moved, ...], first: str, second: str) -> Table:
    shown = [
        (
            each.key,
            printed(each.key, each.old),
            printed(each.key, each.new),
            printed(each.key, each.change, signed=True),
            NOT_GIVEN if each.fraction is None else format_change(each.fraction),
        )
        for each in rows[:MOST]
    ]
    if len(rows) > MOST:
        shown.append((f"… {len(rows) - MOST:,} more", "", "", "", ""))
    return Table("Numbers that differ", ("key", first, second, "change", "percent"), tuple(shown))


def printed(key: str, value: float, *, signed: bool = False) -> str:
    """A number of a key in the unit that its name says, else as it is; `signed` with its sign."""
    sign = ("-" if value < 0 else "+") if signed else ("-" if value < 0 else "")
    spec = _format(key)
    text = format_as(abs(value), spec) if spec else format_exact(abs(value))
    if signed and spec == PARTS:  # a difference of two percentages is no percentage of either
        text = text.replace("%", "points")
    return sign + text


def _format(key: str) -> str:
    name = key.rpartition("].")[2].rpartition("/")[2]
    for ending, spec in _PRINTED:
        if name.endswith(ending):
            return spec
    return next((spec for part, spec in _INSIDE if part in key), "")


def _reworded(title: str, rows: tuple[Reworded, ...], first: str, second: str) -> Table:
    shown = [(each.key, _value(each.old), _value(each.new)) for each in rows[:MOST]]
    if len(rows) > MOST:
        shown.append((f"… {len(rows) - MOST:,} more", "", ""))
    return Table(title, ("key", first, second), tuple(shown), (False, False, False))


def _value(value: Any) -> str:
    if value is None:
        return NOT_GIVEN
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _some(keys: tuple[str, ...]) -> tuple[str, ...]:
    return keys if len(keys) <= MOST else (*keys[:MOST], f"… {len(keys) - MOST:,} more")
