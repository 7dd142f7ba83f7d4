"""The memory rules of `engines.toml` as Engine nouns."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from typing import Any

from suanli.errors import ConfigError, FaultList, nearest_names, unknown_name
from suanli.nouns.engine import BUDGET_RULES, HYBRID_RULES, WINDOW_RULES, Engine

FILE = "engines.toml"
_OWN = ("name", "title", "sources")
_CHOICES = {"window_rule": WINDOW_RULES, "hybrid_rule": HYBRID_RULES, "budget_rule": BUDGET_RULES}


def list_engines() -> tuple[Engine, ...]:
    """Every engine, in the file's order."""
    return tuple(_catalogue().values())


def find_engine(name: str, where: str = "--preset") -> Engine:
    """The engine of that name, letter case aside. Raises UnknownNameError, naming the nearest."""
    found = _catalogue().get(str(name).strip().lower())
    if found is None:
        hint = "`ideal` rounds nothing and reserves nothing."
        raise unknown_name("engine", str(name), tuple(_catalogue()), where=where, hint=hint)
    return found


@functools.cache
def _catalogue() -> dict[str, Engine]:
    text = resources.files("suanli.catalog").joinpath(FILE).read_text(encoding="utf-8")
    return load(tomllib.loads(text))


def load(tables: Mapping[str, Any]) -> dict[str, Engine]:
    """Engines by name. Raises ConfigError listing every missing, unknown or impossible field of every engine."""
    faults = FaultList(ConfigError)
    whole = {name: _whole(name, tables, faults) for name in tables}
    known = [each.name for each in fields(Engine) if each.name not in _OWN]
    for name, table in whole.items():
        for missing in (each for each in (*known, "title") if each not in table):
            faults.add(code="missing_field", message=f"engine {name} lacks {missing}", where=FILE, expected="a value")
        for other in (each for each in table if each not in (*known, "title")):
            faults.add(code="unknown_field", message=f"engine {name} has an unknown field {other}", where=FILE,
                       nearest=nearest_names(other, known))  # fmt: skip
        for field, entry in table.items():
            _check_entry(name, field, entry, faults)
    faults.raise_if_any()
    return {name: _engine(name, table) for name, table in whole.items()}


def _whole(name: str, tables: Mapping[str, Any], faults: FaultList) -> dict[str, Any]:
    """An engine's table with what it extends filled in; one step, not a chain."""
    table = dict(tables[name])
    base = table.pop("extends", None)
    if base is None:
        return table
    if base not in tables or "extends" in tables[base]:
        faults.add(code="bad_extends", message=f"engine {name} extends {base}, which cannot be", where=FILE)
        return table
    return {**tables[base], **table}


def _check_entry(name: str, field: str, entry: Any, faults: FaultList) -> None:
    if field == "title":
        return
    if not (isinstance(entry, Mapping) and entry.get("source") and "value" in entry):
        faults.add(code="no_source", message=f"engine {name} gives {field} without value and source", where=FILE)
    elif field in _CHOICES and entry["value"] not in _CHOICES[field]:
        faults.add(code="unknown_rule", message=f"engine {name} has an unknown {field}", where=FILE,
                   expected="one of " + ", ".join(_CHOICES[field]))  # fmt: skip


def _engine(name: str, table: Mapping[str, Any]) -> Engine:
    entries = {field: entry for field, entry in table.items() if field != "title"}
    values = {field: entry["value"] for field, entry in entries.items()}
    return Engine(
        name=name, title=table["title"], sources={field: entry["source"] for field, entry in entries.items()}, **values
    )
