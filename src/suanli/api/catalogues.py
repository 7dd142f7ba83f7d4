"""`suanli.gpus` and `suanli.models`: the catalogues, sorted and filtered."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from suanli.api.keeping import keeps_request
from suanli.catalog.devices import find_device, list_devices, source_texts
from suanli.catalog.presets import Preset, find_preset, presets
from suanli.catalog.prices import list_prices
from suanli.errors import Fault, InputError, shown, unknown_name
from suanli.nouns.hardware import DTYPES, Device, Price
from suanli.nouns.result import Result
from suanli.readers.preset import read_preset
from suanli.units import parse


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class Devices:
    """Accelerators of the catalogue; `prices` are given for a single one."""

    devices: tuple[Device, ...] = _doc("", "rows of the catalogue")
    prices: tuple[Price, ...] = _doc("", "prices seen, where one device was asked for", default=())


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """One preset with its figures."""

    name: str = _doc("", "name to give as MODEL")
    title: str = _doc("", "name as people write it")
    family: str = _doc("", "file of the catalogue it is in")
    task: str = _doc("", "what the class counted does")
    params: int = _doc("parameters", "counted")
    params_active: int = _doc("parameters", "those one token passes through")
    params_published: str | None = _doc("", "figure its authors print")
    max_positions: int | None = _doc("tokens", "longest sequence")
    date: str | None = _doc("", "of publication")
    source: str = _doc("", "config or paper")
    notes: str = _doc("", "choices and doubts")
    aliases: tuple[str, ...] = _doc("", "other spellings")


@dataclass(frozen=True, kw_only=True)
class Models:
    """Presets."""

    models: tuple[ModelRow, ...] = _doc("", "presets")


@keeps_request
def gpus(name: str | None = None, *, sort: str | None = None, filter: str | None = None) -> Result:
    """The accelerators, or the one called `name`. `filter` is text that a row holds, or `field>number`."""
    _one_or_many(name, sort, filter)
    if name is not None:
        device = find_device(name, where="NAME")
        found, prices = (device,), tuple(price for price in list_prices() if price.device == device.id)
    else:
        found, prices = _chosen(list_devices(), sort, filter, Device), ()
    keys = dict.fromkeys(key for device in found for key in device.sources)
    texts = source_texts()
    return Result(
        kind="gpus",
        inputs=_given(name=name, sort=sort, filter=filter),
        result=Devices(devices=found, prices=prices),
        sources=tuple(f"{key}: {texts.get(key, key)}" for key in keys),
        notes=("peaks are dense and per package; a package may hold several torch devices",),
    )


@keeps_request
def models(name: str | None = None, *, sort: str | None = None, filter: str | None = None) -> Result:
    """The model presets, or the one called `name`."""
    _one_or_many(name, sort, filter)
    if name is not None:
        found: tuple[ModelRow, ...] = (_row(find_preset(name, where="NAME")),)
    else:
        kept = [preset for preset in presets().values() if filter is None or _holds(filter, preset)]
        found = _chosen(tuple(_row(preset) for preset in kept), sort, filter, ModelRow)
    return Result(
        kind="models",
        inputs=_given(name=name, sort=sort, filter=filter),
        result=Models(models=found),
        sources=tuple(dict.fromkeys(row.source for row in found)) if name is not None else (),
    )


def _one_or_many(name: Any, sort: Any, filter_: Any) -> None:
    """Refuse to sort or filter a single row, and what is no text."""
    for option_name, value in (("NAME", name), ("--sort", sort), ("--filter", filter_)):
        if value is not None and not isinstance(value, str):
            raise InputError(Fault(code="bad_text", message="not a text", where=option_name, got=shown(value)))
    if name is not None and (sort is not None or filter_ is not None):
        raise InputError(
            Fault(
                code="contradiction",
                message="one row is neither sorted nor filtered",
                where="--sort and --filter",
                expected="a NAME, or --sort and --filter",
            )
        )


def _row(preset: Preset) -> ModelRow:
    arch = read_preset(preset)
    return ModelRow(
        name=preset.name, title=preset.title, family=preset.family, task=preset.task, params=arch.params_total,
        params_active=arch.params_active, params_published=preset.params_published,
        max_positions=arch.max_positions, date=preset.date, source=preset.source, notes=preset.notes,
        aliases=preset.aliases,
    )  # fmt: skip


def _holds(filter_: str, preset: Preset) -> bool:
    """Whether a preset may pass a filter before it is read: comparisons need its figures, words do not."""
    if _comparison(filter_):
        return True
    words = " ".join((preset.name, preset.title, preset.family, preset.task, *preset.aliases)).lower()
    return all(word in words for word in filter_.lower().split())


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


_OPERATORS = {">=": float.__ge__, "<=": float.__le__, ">": float.__gt__, "<": float.__lt__, "=": float.__eq__}


def _comparison(text: str) -> tuple[str, str, str] | None:
    """`field>number` in its parts, None where the filter is words."""
    for sign in _OPERATORS:
        left, found, right = text.partition(sign)
        if found:
            return left.strip(), sign, right.strip()
    return None


def _chosen(rows: tuple[Any, ...], sort: str | None, filter_: str | None, kind: type) -> tuple[Any, ...]:
    """Rows that pass the filter, sorted largest first by a field; rows without a figure come last."""
    names = [each.name for each in fields(kind)]
    peaks = list(DTYPES) if kind is Device else []
    if filter_ is not None:
        parts = _comparison(filter_)
        rows = tuple(row for row in rows if (_passes(row, parts, names + peaks) if parts else _has_words(row, filter_)))
    if sort is not None:
        field = _known(sort, names + peaks, "--sort")
        rows = tuple(sorted(rows, key=lambda row: _sort_key(_value(row, field))))
    return rows


# Heads of the printed tables, and shorter words, for fields
FIELD_NAMES = {
    "memory": "memory_bytes", "bandwidth": "memory_bytes_per_s", "gb/s": "memory_bytes_per_s", "power": "tdp_w",
    "w": "tdp_w", "active": "params_active", "parameters": "params", "positions": "max_positions",
}  # fmt: skip
FIELD_KINDS = {"memory_bytes": "bytes", "memory_bytes_per_s": "bytes_per_s", "l2_bytes": "bytes", "tdp_w": "watts"}


def _known(field: str, names: list[str], where: str) -> str:
    field = FIELD_NAMES.get(field.lower(), field.lower())
    if field in names:
        return field
    raise unknown_name("field", field, names, where=where, hint="Fields: " + ", ".join(names) + ".")


def _value(row: Any, field: str) -> Any:
    """A field of a row; a dtype means the dense peak of the package."""
    return getattr(row, field) if hasattr(row, field) else row.peaks_flop_per_s.get(field)


def _sort_key(value: Any) -> tuple[int, float, str]:
    if value is None:
        return (1, 0.0, "")
    return (0, -float(value), "") if isinstance(value, int | float) else (0, 0.0, str(value))


def _passes(row: Any, parts: tuple[str, str, str], names: list[str]) -> bool:
    field, sign, bound = parts
    field = _known(field, names, "--filter")
    value = _value(row, field)
    if isinstance(value, str) and sign == "=":
        return value.lower() == bound.lower()
    # a peak is shown in TFLOP/s, so a bare number is one
    kind = "tflop_per_s" if field in DTYPES else FIELD_KINDS.get(field, "count")
    limit = float(parse(bound, kind, "--filter"))
    if value is not None and not isinstance(value, int | float):
        raise InputError(Fault(code="bad_filter", message=f"{field} is no number", where="--filter", got=shown(value)))
    return value is not None and _OPERATORS[sign](float(value), limit)


def _has_words(row: Any, text: str) -> bool:
    names = ("id", "name", "vendor", "arch", "form", "status", "title", "family", "task")
    words = " ".join(str(getattr(row, name, "")) for name in names)
    words += " " + " ".join(getattr(row, "aliases", ()))
    return all(word in words.lower() for word in text.lower().split())
