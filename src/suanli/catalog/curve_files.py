"""Curve files: TOML text to checked records. Every fault of a file is listed together."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from suanli.errors import ConfigError, Fault, FaultList, UnreadableFileError, nearest_names, shown
from suanli.nouns.curves import (
    MATMUL_DTYPES,
    AttentionCurve,
    CollectiveCurve,
    ExpertsCurve,
    Fit,
    MatmulCurve,
    MemoryCurve,
)

Record = TypeVar("Record")

KINDS = ("all_reduce", "all_reduce_switch", "all_gather", "reduce_scatter", "all_to_all")
_SECTIONS: dict[str, tuple[type, tuple[str, ...]]] = {
    "matmul": (MatmulCurve, MATMUL_DTYPES),
    "experts": (ExpertsCurve, MATMUL_DTYPES),
    "attention": (AttentionCurve, ("bf16", "fp8")),
    "collectives": (CollectiveCurve, KINDS),
}
# What must lie above 0; everything else may be 0. Exponents and shares of a loss end at 1, sharpness begins there.
_RATES = ("efficiency", "peak_flop_per_s", "memory_fraction", "fraction", "rate_fraction", "backward_rate")
_ABOVE_ZERO = frozenset((*_RATES, "operand_bytes", "output_bytes", "n"))
_AT_MOST_ONE = frozenset({"wave_exponent", "ramp_exponent"})
_AT_LEAST_ONE = frozenset({"sharpness", "least_ranks"})
_ABOVE_MINUS_ONE = frozenset({"few_ranks", "wide_head"})


@dataclass(frozen=True, kw_only=True)
class CurveFile:
    """One file of `catalog/curves/`: the curves of a measured device."""

    device: str
    units: float
    memory_bytes_per_s: float
    data: str
    command: str
    date: str
    stands_for: Mapping[str, str]
    matmul: Mapping[str, MatmulCurve]
    experts: Mapping[str, ExpertsCurve]
    attention: Mapping[str, AttentionCurve]
    collectives: Mapping[str, CollectiveCurve]
    memory: MemoryCurve


@dataclass(frozen=True, kw_only=True)
class Relative:
    """A device without measurements and the measured one whose curves it takes."""

    device: str
    of: str
    why: str
    rate: tuple[tuple[str, float], ...] = ()  # by dtype, attained rate over what the peaks alone would give


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """The table of a TOML text. Raises UnreadableFileError where it is none."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        hint = "scripts/fit_curves.py writes these files."
        fault = Fault(code="unreadable_file", message=f"not a TOML file: {problem}", where=where, hint=hint)
        raise UnreadableFileError(fault) from problem


def read_curve_text(text: str, where: str) -> CurveFile:
    """The curves of a file's text. Raises UnreadableFileError, or one ConfigError that lists every fault."""
    table = parse_toml(text, where)
    faults = FaultList(ConfigError)
    simple = ("device", "units", "memory_bytes_per_s", "data", "command", "date")
    _check_keys(table, (*simple, "stands_for", *_SECTIONS, "memory"), where, faults)
    texts = {key: _text(table, key, where, faults) for key in ("device", "data", "command", "date")}
    numbers = {key: _number(table, key, f"{where}: {key}", faults, above=0) for key in simple[1:3]}
    sections = {name: _section(table, name, where, faults) for name in _SECTIONS}
    memory = _record(MemoryCurve, table.get("memory"), f"{where}: memory", faults, {})
    stands_for = _stand_ins(table, where, faults)
    faults.raise_if_any()
    assert memory is not None, "a missing table is a fault"
    return CurveFile(**texts, **numbers, **sections, memory=memory, stands_for=stands_for)  # type: ignore[arg-type]


def read_relatives_text(text: str, where: str, measured: set[str]) -> dict[str, Relative]:
    """Devices that take the curves of one of `measured`. Raises as `read_curve_text` does."""
    faults, found = FaultList(ConfigError), {}
    for device, entry in parse_toml(text, where).items():
        at = f"{where}: {device}"
        if not isinstance(entry, dict):
            faults.add(code="bad_value", message="not a table", where=at, got=shown(entry))
            continue
        _check_keys(entry, ("of", "why", "rate"), at, faults)
        of, why = (_text(entry, key, at, faults) for key in ("of", "why"))
        if of and of not in measured:
            near = nearest_names(of, measured)
            faults.add(code="unknown_device", message=f"no curves of {shown(of)}", where=f"{at}.of", nearest=near)
        rates = entry.get("rate", {})
        if not isinstance(rates, dict):
            faults.add(code="bad_value", message="not a table", where=f"{at}.rate", got=shown(rates))
            rates = {}
        _check_keys(rates, MATMUL_DTYPES, f"{at}.rate", faults)
        rate = tuple((key, _number(rates, key, f"{at}.rate.{key}", faults, above=0)) for key in rates)
        found[device] = Relative(device=device, of=of, why=why, rate=rate)
    faults.raise_if_any()
    return found


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], where: str, faults: FaultList) -> None:
    for key in table:
        if key not in known:
            near = nearest_names(key, known)
            faults.add(code="unknown_key", message=f"unknown key {shown(key)}", where=where, nearest=near)


def _text(table: Mapping[str, Any], key: str, where: str, faults: FaultList) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        faults.add(code="bad_value", message="not a text", where=f"{where}: {key}", got=shown(value))
        return ""
    return value


def _number(
    table: Mapping[str, Any], key: str, where: str, faults: FaultList, *, above: float = -math.inf
) -> int | float:
    """The finite number under `key`; 0 with a fault where there is none, or it is not above `above`."""
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        faults.add(code="bad_value", message="not a finite number", where=where, got=shown(value))
        return 0
    if value <= above:
        faults.add(code="bad_value", message="too small", where=where, got=shown(value), expected=f"above {above:g}")
    return value


def _section(table: Mapping[str, Any], name: str, where: str, faults: FaultList) -> dict[str, Any]:
    """The curves of one section by dtype or kind; {} where the file has none."""
    kind, known = _SECTIONS[name]
    entries = table.get(name, {})
    if not isinstance(entries, dict):
        faults.add(code="bad_value", message="not a table", where=f"{where}: {name}", got=shown(entries))
        return {}
    _check_keys(entries, known, f"{where}: {name}", faults)
    named = {key: {"dtype": key} if name != "collectives" else {} for key in entries}
    found = {key: _record(kind, entries[key], f"{where}: {name}.{key}", faults, named[key]) for key in entries}
    return {key: record for key, record in found.items() if record is not None}


def _stand_ins(table: Mapping[str, Any], where: str, faults: FaultList) -> dict[str, str]:
    """Dtypes that take another one's curve."""
    entry, matmul = table.get("stands_for", {}), table.get("matmul")
    matmul = matmul if isinstance(matmul, dict) else {}
    if not isinstance(entry, dict):
        faults.add(code="bad_value", message="not a table", where=f"{where}: stands_for", got=shown(entry))
        return {}
    for key, other in entry.items():
        if not isinstance(other, str) or other not in matmul:
            at = f"{where}: stands_for.{key}"
            faults.add(
                code="unknown_name",
                message="a curve that the file does not have",
                where=at,
                got=shown(other),
                nearest=nearest_names(str(other), matmul),
            )
    return dict(entry)


def _record(kind: type[Record], entry: object, where: str, faults: FaultList, extra: dict[str, str]) -> Record | None:
    """The dataclass `kind` from a table; None with faults where a value is missing, unknown or impossible."""
    if not isinstance(entry, dict):
        faults.add(code="bad_value", message="not a table", where=where, got=shown(entry))
        return None
    before = len(faults.faults)
    parts = {part.name: part for part in dataclasses.fields(kind) if part.name not in extra}  # type: ignore[arg-type]
    _check_keys(entry, tuple(parts), where, faults)
    values: dict[str, Any] = dict(extra)
    for name, part in parts.items():
        if name not in entry and part.default is not dataclasses.MISSING:
            continue
        at = f"{where}.{name}"
        if part.type == "Fit":
            values[name] = _record(Fit, entry.get(name), at, faults, {})
        elif part.type == "str":
            values[name] = _text(entry, name, where, faults)
        else:
            values[name] = _bounded(entry, name, at, faults)
    return kind(**values) if len(faults.faults) == before else None


def _bounded(entry: Mapping[str, Any], name: str, where: str, faults: FaultList) -> int | float:
    """The number under `name`, checked against what such a number can be."""
    before = len(faults.faults)
    value = _number(entry, name, where, faults)
    if len(faults.faults) > before:
        return value  # no number at all: nothing to bound
    low = 0.0 if name not in _ABOVE_MINUS_ONE else -1.0
    strict = name in _ABOVE_ZERO or name in _ABOVE_MINUS_ONE
    if name in _AT_LEAST_ONE:
        low, strict = 1.0, False
    high = 1.0 if name in _AT_MOST_ONE else math.inf
    if value < low or (strict and value <= low) or value > high:
        bounds = f"{'above' if strict else 'at least'} {low:g}" + (f", at most {high:g}" if high < math.inf else "")
        faults.add(code="bad_value", message="out of bounds", where=where, got=shown(value), expected=bounds)
    return value
