"""Serving engines as data: `serving_presets.toml`, which `scripts/fit_serving.py` writes, and the ideal engine."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from suanli.errors import ConfigError, FaultList, nearest_names, shown, unknown_name
from suanli.nouns.serving_error import ServingError
from suanli.nouns.serving_profile import NUMBERS, PowerProfile, ServingPreset, ServingProfile

FILE = "serving_presets.toml"
_POWER = ("always", "memory", "products", "half_width", "rows", "source")
_ERROR = ("quantity", "source", "judged", "n", "mean_fitted", "mean_held_out", "median_fitted", "median_held_out",
          "bias_held_out")  # fmt: skip
_BARS = ("bar_fitted", "bar_held_out")
_WORDS = ("title", "source", "gpus", "quantity", "judged", "bias_held_out")
_KEYS = ("title", "half_width", "rows", "gpus", "source", *NUMBERS)


def serving_preset_names() -> tuple[str, ...]:
    """Every preset, `ideal` first."""
    return ("ideal", *_catalogue()[0])


def find_serving_preset(name: str, where: str = "--preset") -> ServingPreset:
    """The preset of that name. Raises UnknownNameError, naming the nearest."""
    text = str(name).strip().lower()
    if text == "ideal":
        return ideal_preset()
    found = _catalogue()[0].get(text)
    if found is None:
        names = serving_preset_names()
        raise unknown_name("preset", str(name), names, where=where, hint="Presets: " + ", ".join(names) + ".")
    return found


@functools.cache
def ideal_preset() -> ServingPreset:
    """No engine beats it: data-sheet peaks, nothing between operators, collectives and passes at the best that an
    engine was found to do."""
    ideal = ServingProfile()
    for each in _catalogue()[0].values():
        ideal = ideal.least(each.profile)
    return ServingPreset(
        name="ideal", title="every operator at the peak rate, nothing between operators", profile=ideal,
        half_width=0.0, rows=0, gpus=(), source="definition: data-sheet peaks, the fastest collectives fitted",
    )  # fmt: skip


def power_profile() -> PowerProfile:
    """Power of a GPU by what it does."""
    return _catalogue()[1]


def serving_errors() -> tuple[ServingError, ...]:
    """Errors that the presets were found to have when they were fitted: as fitted, and on points left out."""
    return _catalogue()[2]


@functools.cache
def _catalogue() -> tuple[dict[str, ServingPreset], PowerProfile, tuple[ServingError, ...]]:
    text = resources.files("suanli.catalog").joinpath(FILE).read_text(encoding="utf-8")
    return load(tomllib.loads(text), FILE)


def load(
    tables: Mapping[str, Any], where: str
) -> tuple[dict[str, ServingPreset], PowerProfile, tuple[ServingError, ...]]:
    """Presets by name, the power profile, and the errors recorded.

    Raises ConfigError listing every missing, unknown or impossible entry.
    """
    faults = FaultList(ConfigError)
    engines = {name: table for name, table in tables.items() if name not in ("power", "error")}
    errors = tables.get("error", [])
    for number, table in enumerate(errors, start=1):
        bars = tuple(key for key in _BARS if key in table)
        _check(table, (*_ERROR, *bars), f"{where}, [[error]] {number}", faults)
    for name, table in engines.items():
        _check(table, _KEYS, f"{where}, [{name}]", faults)
    _check(tables.get("power", {}), _POWER, f"{where}, [power]", faults)
    faults.raise_if_any()
    presets = {name: _preset(name, table) for name, table in engines.items()}
    return presets, PowerProfile(**tables["power"]), tuple(ServingError(**table) for table in errors)


def _check(table: Mapping[str, Any], keys: tuple[str, ...], where: str, faults: FaultList) -> None:
    for key in keys:
        if key not in table:
            faults.add(code="missing_key", message=f"no {key}", where=where)
    for key, value in table.items():
        if key not in keys:
            faults.add(
                code="unknown_key", message=f"unknown {shown(key)}", where=where, nearest=nearest_names(key, keys)
            )
        elif key not in _WORDS and not _number(value):
            faults.add(code="bad_number", message=f"{key} is no number of 0 or more", where=where, got=shown(value))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _preset(name: str, table: Mapping[str, Any]) -> ServingPreset:
    profile = ServingProfile(**{number: float(table[number]) for number in NUMBERS})
    return ServingPreset(
        name=name, title=table["title"], profile=profile, half_width=float(table["half_width"]),
        rows=int(table["rows"]), gpus=tuple(table["gpus"]), source=table["source"],
    )  # fmt: skip
