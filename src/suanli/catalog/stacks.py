"""The software stacks of `stacks.toml` as Stack nouns."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from typing import Any

from suanli.errors import ConfigError, FaultList, InputError, nearest_names, unknown_name
from suanli.nouns.layout import ZERO
from suanli.nouns.stack import SCATTERS, SELECTIVE, Stack

FILE = "stacks.toml"
_OWN = ("name", "sources")


def list_stacks() -> tuple[Stack, ...]:
    """Every stack, in the file's order."""
    return tuple(_catalogue().values())


def find_stack(name: str, where: str = "--stack") -> Stack:
    """The stack of that name. Raises UnknownNameError, naming the nearest."""
    found = _catalogue().get(str(name).strip().lower())
    if found is None:
        hint = "The nearest in kind is better than none: the report says which was taken."
        raise unknown_name("stack", str(name), tuple(_catalogue()), where=where, hint=hint)
    return found


@functools.cache
def _catalogue() -> dict[str, Stack]:
    text = resources.files("suanli.catalog").joinpath(FILE).read_text(encoding="utf-8")
    return load(tomllib.loads(text))


def load(tables: Mapping[str, Any]) -> dict[str, Stack]:
    """Stacks by name. Raises ConfigError listing every missing or unknown field of every stack."""
    faults, whole = FaultList(ConfigError), {name: _whole(name, tables) for name in tables}
    known = [each.name for each in fields(Stack) if each.name not in _OWN]
    for name, table in whole.items():
        for missing in (each for each in known if each not in table):
            faults.add(code="missing_field", message=f"stack {name} lacks {missing}", where=FILE, expected="a value")
        for other in (each for each in table if each not in known):
            faults.add(code="unknown_field", message=f"stack {name} has an unknown field {other}", where=FILE,
                       nearest=nearest_names(other, known))  # fmt: skip
        for field, entry in table.items():
            if field != "title" and not (isinstance(entry, Mapping) and entry.get("source") and "value" in entry):
                faults.add(code="no_source", message=f"stack {name} gives {field} without value and source", where=FILE)
        if table.get("selective", {"value": SELECTIVE[0]})["value"] not in SELECTIVE:
            faults.add(code="unknown_selective", message=f"stack {name} recomputes something unknown", where=FILE,
                       expected="one of " + ", ".join(SELECTIVE))  # fmt: skip
        _check_choices(name, table, faults)
    faults.raise_if_any()
    return {name: _stack(name, table) for name, table in whole.items()}


def _check_choices(name: str, table: Mapping[str, Any], faults: FaultList) -> None:
    """Fields whose values are of a few."""
    for field, choices in (("scatters", SCATTERS), ("pipeline_scatters", SCATTERS), ("zero", ZERO),
                           ("pipeline_zero", ZERO), ("hybrid", ZERO)):  # fmt: skip
        entry = table.get(field)
        value = entry.get("value") if isinstance(entry, Mapping) else None
        for each in value if isinstance(value, list) else [] if value is None else [value]:
            if each not in choices:
                faults.add(code=f"unknown_{field}", message=f"stack {name} gives {field} as {each}", where=FILE,
                           expected="one of " + ", ".join(map(str, choices)))  # fmt: skip


def _whole(name: str, tables: Mapping[str, Any], seen: tuple[str, ...] = ()) -> dict[str, Any]:
    """A stack's table with what it extends filled in. Raises InputError where that leads nowhere or in a ring."""
    table = dict(tables.get(name, {}))
    base = table.pop("extends", None)
    if base is None:
        return table
    if base not in tables or base in (*seen, name):
        faults = FaultList(InputError)
        faults.add(code="bad_extends", message=f"stack {name} extends {base}, which cannot be", where=FILE)
        faults.raise_if_any()
    return {**_whole(base, tables, (*seen, name)), **table}


def _stack(name: str, table: Mapping[str, Any]) -> Stack:
    entries = {field: entry for field, entry in table.items() if field != "title"}
    values = {field: _frozen(entry["value"]) for field, entry in entries.items()}
    sources = {field: entry["source"] for field, entry in entries.items()}
    return Stack(name=name, title=table["title"], sources=sources, **values)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
