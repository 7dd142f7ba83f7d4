"""The accelerators of `accelerators.csv` as Device nouns; `sources.toml` spells out their sources."""

from __future__ import annotations

import csv
import functools
import tomllib
from collections import Counter
from importlib import resources
from typing import Any

from suanli.catalog import match
from suanli.errors import ConfigError, FaultList, InputError, shown
from suanli.nouns.hardware import DTYPES, Device
from suanli.units import MEBI, MEGA, parse

Row = dict[str, str]
FILE, USABLE = "accelerators.csv", "usable_memory.toml"


def list_devices() -> tuple[Device, ...]:
    """Every device of the catalogue, in its order, those without figures included."""
    return _catalogue()


def find_device(text: str, memory_bytes: int | None = None, where: str = "--gpu") -> Device:
    """The one device that `text` means: an id, a short id, or what a driver calls it.

    `memory_bytes` (of one device as torch sees it) splits names that fit several memory sizes.
    Raises UnknownNameError for an unknown name, AmbiguousNameError for one that fits several.

    >>> find_device("NVIDIA H100 80GB HBM3").short_id
    'h100-sxm'
    """
    return match.find(text, _index(), memory_bytes=memory_bytes, where=where)


def source_texts() -> dict[str, str]:
    """What each source key stands for, in words."""
    return {key: f"{entry['what']}: {entry['where']}" for key, entry in _sources().items()}


def read_rows(name: str) -> list[Row]:
    """The rows of one of the project's CSV files."""
    text = (resources.files("suanli.catalog") / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def words(cell: str) -> tuple[str, ...]:
    """The parts of a cell that lists several things, separated by semicolons."""
    return tuple(part.strip() for part in cell.split(";") if part.strip())


@functools.cache
def _sources() -> dict[str, dict[str, str]]:
    text = (resources.files("suanli.catalog") / "sources.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@functools.cache
def _index() -> tuple[match.Entry, ...]:
    return match.index(_catalogue())


@functools.cache
def _catalogue() -> tuple[Device, ...]:
    return load(read_rows(FILE))


def load(rows: list[Row]) -> tuple[Device, ...]:
    """The devices of `rows`. Raises ConfigError that lists every fault of every row."""
    faults, devices = FaultList(ConfigError), []
    for row in rows:
        try:
            devices.append(_device(row))
        except InputError as problem:
            faults.faults.extend(problem.faults)
    _check(devices, faults)
    faults.raise_if_any()
    return tuple(devices)


def _check(devices: list[Device], faults: FaultList) -> None:
    """Ids mean one device each; every row names known sources and its date."""
    for name, times in Counter(name for d in devices for name in (d.id, *d.aliases)).items():
        if times > 1:
            faults.add(code="repeated_id", message="an id that stands twice", where=FILE, got=shown(name))
    for device in devices:
        unknown = [key for key in device.sources if key not in _sources()]
        if unknown or not (device.sources or device.confidence == "none"):
            faults.add(
                code="no_source",
                message="a row without a known source",
                where=f"{FILE}: {device.id}",
                got=shown(unknown),
                expected="keys of sources.toml",
            )
        if not device.compiled:
            faults.add(code="no_date", message="a row without its date", where=f"{FILE}: {device.id}")


def _device(row: Row) -> Device:
    peaks, formulas = _peaks(row)
    memory = _number(row, "mem_gb", "count")
    return Device(
        id=row["id"],
        aliases=words(row["aliases"]),
        family=row["family"],
        name=row["name"],
        vendor=row["vendor"],
        device_strings=words(row["device_strings"]),
        form=row["form"],
        arch=row["arch"],
        peaks_flop_per_s=peaks,
        formulas=formulas,
        sparse_multiple=_number(row, "sparse_mult", "count"),
        memory_bytes=_memory_bytes(row),
        **_usable_memory(row["id"]),
        memory_advertised_gb=memory,
        memory_unit=row["mem_unit"] or None,
        memory_options_gb=tuple(float(size) for size in words(row["mem_options_gb"])),
        memory_kind=row["mem_kind"] or None,
        memory_bytes_per_s=None if "mem_bw_gbs" in formulas else _number(row, "mem_bw_gbs", "bytes_per_s", "GB/s"),
        l2_bytes=_scaled_int(row, "l2_mb", MEBI),
        sm_count=_scaled_int(row, "sm_count", 1),
        boost_hz=_scaled_int(row, "boost_mhz", MEGA),
        link=row["link"] or None,
        link_bytes_per_s=_number(row, "link_bidir_gbs", "bytes_per_s", "GB/s"),
        pcie_gen=_scaled_int(row, "pcie_gen", 1),
        tdp_w=_number(row, "tdp_w", "power", "W"),
        release=row["release"] or None,
        torch_devices_per_package=_scaled_int(row, "torch_devices_per_package", 1) or 1,
        formula_fp16_flop_per_s=_number(row, "formula_fp16_tflops", "flop_per_s", "TFLOPS"),
        status="formula" if formulas else "ok" if peaks else "no_figures",
        confidence=row["confidence"],
        sources=words(row["sources"]),
        compiled=row["compiled"],
        notes=words(row["notes"]),
    )


def _usable_memory(device: str) -> dict[str, Any]:
    """What a program can have, and where that is from."""
    found = _usable().get(device)
    if found is None:
        return {}
    return {"usable_memory_bytes": found["usable_mib"] * MEBI, "usable_memory_source": found["what"]}


@functools.cache
def _usable() -> dict[str, Any]:
    return tomllib.loads(resources.files("suanli.catalog").joinpath(USABLE).read_text(encoding="utf-8"))


def _peaks(row: Row) -> tuple[dict[str, int | float], dict[str, str]]:
    """The peaks that are numbers in FLOP/s, and the cells that hold a formula."""
    cells = {key: row[key] for key in (*DTYPES, "mem_bw_gbs") if row[key]}
    formulas = {key: text for key, text in cells.items() if "*" in text}
    peaks = {key: _number(row, key, "flop_per_s", "TFLOPS") for key in DTYPES if key in cells and key not in formulas}
    return {key: peak for key, peak in peaks.items() if peak}, formulas


def _number(row: Row, key: str, kind: str, suffix: str = "") -> int | float | None:
    """The cell in the base unit of `kind`; None where it is empty."""
    return parse(row[key] + suffix, kind, f"{FILE}: {row['id']}: {key}") if row[key] else None


def _scaled_int(row: Row, key: str, factor: int) -> int | None:
    value = _number(row, key, "count")
    return None if value is None else int(value * factor)


def _memory_bytes(row: Row) -> int | None:
    """What the driver shows, where known; otherwise the advertised size in its own unit."""
    if row["visible_mib"]:
        return _scaled_int(row, "visible_mib", MEBI)
    size = _number(row, "mem_gb", "bytes", row["mem_unit"] or "GB")
    return None if size is None else int(size)
