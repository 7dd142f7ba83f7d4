"""The reports of `gpus` and `models`."""

from __future__ import annotations

from suanli.nouns.hardware import Device
from suanli.nouns.result import Result
from suanli.report.common import NOT_GIVEN, closing, exact
from suanli.report.document import Document, Facts, Lines, Table
from suanli.units import GIGA, TERA, format_bytes, format_bytes_per_s, format_count

_DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
_STATUS = {"ok": "", "no_figures": "no sourced peak", "formula": "formula only"}


def gpus_document(result: Result) -> Document:
    """All devices as a table, or one in full."""
    devices = result.result.devices
    if len(devices) == 1:
        return _one_device(result, devices[0])
    rows = tuple(_device_row(device) for device in devices)
    columns = ("id", *(f"{name}" for name in _DTYPES), "memory", "GB/s", "W", "")
    title = "Dense peaks of one package in TFLOP/s (int8: TOP/s)"
    return Document(f"{len(devices)} accelerators", (Table(title, columns, rows), Lines("Notes", result.notes)))


def _tera(value: float | None) -> str:
    return "" if value is None else f"{value / TERA:,.6g}"


def _device_row(device: Device) -> tuple[str, ...]:
    rate = device.memory_bytes_per_s
    return (
        device.short_id,
        *(_tera(device.peaks_flop_per_s.get(name)) for name in _DTYPES),
        "" if device.memory_advertised_gb is None else f"{device.memory_advertised_gb:g} {device.memory_unit or 'GB'}",
        "" if rate is None else f"{rate / GIGA:,.5g}",
        "" if device.tdp_w is None else f"{device.tdp_w:g}",
        _STATUS[device.status],
    )


def _one_device(result: Result, device: Device) -> Document:
    peaks = tuple(
        (name, f"{_tera(value)} {'TOP/s' if name.startswith('int') else 'TFLOP/s'}", "dense, one package")
        for name, value in device.peaks_flop_per_s.items()
    )
    formulas = tuple((name, text, "formula, refused for MFU") for name, text in device.formulas.items())
    memory = device.memory_bytes
    rate, link = device.memory_bytes_per_s, device.link_bytes_per_s
    facts = (
        ("vendor", device.vendor, device.arch),
        ("ids", ", ".join((device.id, *device.aliases)), ""),
        ("names it reports", ", ".join(device.device_strings) or NOT_GIVEN, ""),
        ("form", device.form or NOT_GIVEN, ""),
        ("torch devices", exact(device.torch_devices_per_package), "in one package; a peak is divided by it for MFU"),
        ("memory", NOT_GIVEN if memory is None else format_bytes(memory), device.memory_kind or ""),
        ("memory bandwidth", NOT_GIVEN if rate is None else format_bytes_per_s(rate), ""),
        ("link", device.link or NOT_GIVEN, "" if link is None else f"{format_bytes_per_s(link)} both ways"),
        ("power", NOT_GIVEN if device.tdp_w is None else f"{device.tdp_w:g} W", ""),
        ("released", device.release or NOT_GIVEN, ""),
        ("confidence", device.confidence or NOT_GIVEN, f"compiled {device.compiled}"),
    )
    prices = tuple(price.sentence() for price in result.result.prices)
    return Document(
        f"{device.name} ({device.short_id})",
        (
            Facts("Peaks", peaks + formulas),
            Facts("Facts", facts, right=False),
            Lines("Prices seen", prices),
            Lines("Notes", (*device.notes, *result.notes)),
            Lines("Sources", result.sources),
        ),
    )


def models_document(result: Result) -> Document:
    """All presets as a table, or one in full."""
    rows = result.result.models
    if len(rows) == 1:
        return _one_model(result)
    table = tuple(
        (
            row.name,
            format_count(row.params),
            "" if row.params_active == row.params else format_count(row.params_active),
            "" if row.max_positions is None else f"{row.max_positions:,}",
            row.task,
        )
        for row in rows
    )
    columns = ("name", "parameters", "active", "positions", "task")
    return Document(f"{len(rows)} model presets", (Table("", columns, table, (False, True, True, True, False)),))


def _one_model(result: Result) -> Document:
    row = result.result.models[0]
    facts = (
        ("name", row.name, ""),
        ("also called", ", ".join(row.aliases) or NOT_GIVEN, ""),
        ("family", row.family, row.task),
        ("parameters", exact(row.params), f"published as {row.params_published or NOT_GIVEN}"),
        ("active", exact(row.params_active), ""),
        ("positions", NOT_GIVEN if row.max_positions is None else exact(row.max_positions), ""),
        ("date", row.date or NOT_GIVEN, ""),
    )
    notes = (row.notes,) if row.notes else ()
    return Document(row.title, (Facts("", facts, right=False), Lines("Notes", notes), *closing(result)))
