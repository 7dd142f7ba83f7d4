"""Where a number of a report comes from: its meaning, formula, the numbers put in, source.

The table `whys.toml` says of every block which formula or field a number is; nothing is worked out here. Quantities
that `suanli why` knows are told by it, with the numbers of the very result.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from suanli.errors import SuanliError
from suanli.formulas import all_formulas
from suanli.nouns.reason import Why
from suanli.nouns.result import Result
from suanli.why import QUANTITIES, explain_count, explain_mfu, explain_train

MOST_VALUES, MOST_SOURCES, LONGEST = 24, 4, 160


@dataclass(frozen=True, kw_only=True)
class WhyNote:
    """What is told when a number is clicked."""

    title: str
    doc: str
    formula: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    source: str = ""


def reason_of(result: Result, block: str, label: str, column: str = "") -> WhyNote | None:
    """Why of the number in `block` (its title) beside `label` under `column`; None where nothing is known."""
    rule = rule_of(result.kind, block, label, column)
    if rule is None:
        return None
    quantity = QUANTITIES.get(rule.get("q", ""))
    why = _asked_why(result, quantity.id) if quantity else None
    formula = all_formulas().get(rule.get("f", quantity.formula if quantity else ""))
    field = _field(result.result, rule["p"]) if "p" in rule else {}
    unit = field.get("unit") or (quantity.unit if quantity else "")
    doc = rule.get("d") or field.get("doc") or (quantity.doc if quantity else label)
    return WhyNote(
        title=": ".join(part for part in (block, label, column) if part),
        doc=f"{doc} [{unit}]" if unit else doc,
        formula=rule.get("x")
        or (formula.expression if formula else why.formula if why else quantity.formula if quantity else ""),
        legend=tuple((why.legend if why else formula.legend if formula else {}).items()),
        values=(_shown_why(why) if why else _values(result, rule.get("v", ())))
        or _values(result, tuple(result.inputs)),
        source="; ".join(_sources(result, why.source if why else formula.source if formula else "", label)),
    )


def rule_of(kind: str, block: str, label: str, column: str) -> Mapping[str, Any] | None:
    """The first rule of the table that fits, looked up by the label, then by the column, then for the whole block."""
    for section in _table().get(kind, ()):
        if not _fits(section["block"], block):
            continue
        for name in (label, column):
            for key, rule in section.items():
                if key not in ("block", "*") and name and _fits(key, name):
                    return dict(rule)
        if "*" in section:
            return dict(section["*"])
    return None


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(files("suanli.report").joinpath("whys.toml").read_text(encoding="utf-8"))


def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


# --- what suanli.why knows ----------------------------------------------------------------------------------------


def _asked_why(result: Result, id_: str) -> Why | None:
    """The explanation with this result's own numbers; None where it cannot be had: the nouns are not at hand."""
    asked = result.asked
    try:
        if result.kind == "count":
            return explain_count(id_, asked["arch"], asked["workload"], asked["convention"], result.result)
        if result.kind == "mfu":
            return explain_mfu(id_, asked["arch"], result.result)
        budget = asked["budget"]
        return explain_train(id_, result.result, {name: getattr(budget, name) for name in ("price", "power", "pue")})
    except (KeyError, AttributeError, TypeError, SuanliError):
        return None


def _shown_why(why: Why) -> tuple[tuple[str, str], ...]:
    pairs = [(str(name), _text(value)) for name, value in why.values.items()]
    more = len(pairs) - MOST_VALUES
    return (*pairs[:MOST_VALUES], *((("…", f"and {more:,} more: suanli why {why.id}"),) if more > 0 else ()))


# --- fields and inputs --------------------------------------------------------------------------------------------


def _field(value: Any, path: str) -> Mapping[str, Any]:
    """Metadata of the field at a dotted path: its doc and unit; empty where there is no such field."""
    found: Mapping[str, Any] = {}
    for name in path.split("."):
        if not is_dataclass(value):
            return {}
        found = next((each.metadata for each in fields(value) if each.name.rstrip("_") == name), {})
        value = getattr(value, name, None)
    return found


def _values(result: Result, paths: tuple[str, ...] | list[str]) -> tuple[tuple[str, str], ...]:
    """Names and values of fields of the result, else of inputs typed or assumed; those that are not there left out."""
    found = [(path, value) for path in paths for value in [_value(result, path)] if value is not None]
    flat = [pair for path, value in found for pair in _flat(path, value)]
    return tuple((name, _text(value)) for name, value in flat[:MOST_VALUES])


def _value(result: Result, path: str) -> Any:
    value: Any = result.result
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    if value is None:
        value = result.inputs.get(path, result.inputs.get("assumed", {}).get(path))
    return value


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Scalars as they are, mappings of scalars one by one; anything else would not be read as a number put in."""
    if isinstance(value, str | int | float):
        yield path, value
    elif isinstance(value, Mapping):
        yield from ((f"{path}.{name}", each) for name, each in value.items() if isinstance(each, str | int | float))


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = str(value)
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _sources(result: Result, own: str, label: str) -> list[str]:
    """The formula's source, then those of the result; of a catalogue those of the row."""
    rows = getattr(result.result, "devices", None) or getattr(result.result, "models", None)
    if result.kind in ("gpus", "models") and isinstance(rows, tuple):
        row = next((each for each in rows if label in (getattr(each, "short_id", None), _name(each))), rows[0])
        told = getattr(row, "sources", None) or (row.source,)
        return [*([own] if own else []), *map(str, told)]
    return [*([own] if own else []), *result.sources[:MOST_SOURCES]]


def _name(row: Any) -> str:
    """What a row of a catalogue is called."""
    return str(getattr(row, "name", None) or getattr(row, "id", ""))
