"""The file of a calibrated stack, as `suanli calibrate -o FILE.toml` writes it: read as data, every fault at once."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

from suanli.catalog.profiles import find_profile, stack_names
from suanli.errors import ConfigError, FaultList, nearest_names, shown
from suanli.nouns.profile import Profile, StackProfile
from suanli.readers import files

SUFFIX, FORMAT = ".toml", 1
LARGEST, WIDEST, LONGEST = 1e6, 3.0, 300


def is_stack_file(text: object) -> bool:
    """Whether a stack is named by a file."""
    return isinstance(text, Path) or (isinstance(text, str) and text.strip().lower().endswith(SUFFIX))


def _text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST and value.isprintable()


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(_text(each) for each in value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(most: float) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 < value <= most
    )


def _date(value: Any) -> bool:
    try:
        datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


# key of [stack] → what it must be, in a function and in words
KEYS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "format": (lambda value: value == FORMAT and not isinstance(value, bool), f"{FORMAT}, the form this version reads"),
    "name": (_text, f"a name of up to {LONGEST} characters"),
    "base": (lambda value: value in stack_names(), "a stack that ships"),
    "data": (_text, "the name of the file of runs"),
    "data_sha256": (lambda value: _text(value) and len(value) == 64, "64 hexadecimal digits"),
    "command": (_text, "the command that wrote it"),
    "date": (_date, "a date like 2026-11-30"),
    "rows": (_count, "a whole number, 0 or more"),
    "routed_rows": (_count, "a whole number, 0 or more"),
    "devices": (_texts, "a list of devices with dtypes"),
    "sources": (_texts, "a list of sources"),
    "untold": (_texts, "a list of names of numbers"),
    "half_width": (_number(WIDEST), f"a number above 0, up to {WIDEST:g}"),
    "routed_half_width": (_number(WIDEST), f"a number above 0, up to {WIDEST:g}"),
}  # fmt: skip
TABLES = ("stack", "numbers")


def read_stack_file(path: Path) -> StackProfile:
    """The stack of a file. Raises UnreadableFileError for what is no TOML, ConfigError listing every fault."""
    tables, where = files.read_toml(path), path.name
    faults = FaultList(ConfigError)
    for key in tables:
        if key not in TABLES:
            faults.add(code="unknown_key", message=f"unknown table {shown(key)}", where=where,
                       expected="[stack] and [numbers]", nearest=nearest_names(key, TABLES))  # fmt: skip
    head, numbers = (_table(tables, name, where, faults) for name in TABLES)
    _check(head, KEYS, f"{where}: [stack]", faults)
    known = {each.name for each in fields(Profile)}
    rule = (_number(LARGEST), f"a number above 0, up to {LARGEST:,.0f}")
    _check(numbers, dict.fromkeys(sorted(known), rule), f"{where}: [numbers]", faults)
    stray = [name for name in head.get("untold", ()) if name not in known] if _texts(head.get("untold")) else []
    for name in stray:
        faults.add(code="unknown_key", message=f"no number {shown(name)}", where=f"{where}: [stack] untold",
                   nearest=nearest_names(name, known))  # fmt: skip
    faults.raise_if_any()
    return _profile(head, numbers)


def _table(tables: Mapping[str, Any], name: str, where: str, faults: FaultList) -> dict[str, Any]:
    found = tables.get(name)
    if isinstance(found, dict):
        return found
    faults.add(code="missing_table", message=f"no table [{name}]", where=where,
               expected="a file that `suanli calibrate FILE.csv -o FILE.toml` wrote")  # fmt: skip
    return {}


def _check(
    table: Mapping[str, Any], rules: Mapping[str, tuple[Callable[[Any], bool], str]], where: str, faults: FaultList
) -> None:
    """Faults for keys that are unknown, missing, or not what they must be; none for a table that is not there."""
    for key, value in table.items():
        if key not in rules:
            faults.add(code="unknown_key", message=f"unknown key {shown(key)}", where=where,
                       nearest=nearest_names(key, rules))  # fmt: skip
        elif not rules[key][0](value):
            nearest = nearest_names(value, stack_names()) if key == "base" and isinstance(value, str) else ()
            faults.add(code="bad_value", message=f"{key} cannot be that", where=where, got=shown(value),
                       expected=rules[key][1], nearest=nearest)  # fmt: skip
    for key, (_, expected) in rules.items():
        if table and key not in table:
            faults.add(code="missing_key", message=f"no {key}", where=where, expected=expected)


def _profile(head: Mapping[str, Any], numbers: Mapping[str, Any]) -> StackProfile:
    own = {each.name for each in fields(StackProfile) if each.default is not MISSING or each.name == "name"}
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in head.items() if key in own
    }
    found = Profile(**{key: float(value) for key, value in numbers.items()})
    return replace(find_profile(head["base"]), **values, numbers=found, labels={})
