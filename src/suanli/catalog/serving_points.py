"""A few measured serving points with their sources: `serving_points.csv`, which `scripts/thin_serving.py` chooses."""

from __future__ import annotations

import csv
import functools
import io
import math
from importlib import resources

from suanli.errors import ConfigError, FaultList, shown
from suanli.nouns.measured_serving import ServingPoint
from suanli.nouns.serving import ServingLayout

FILE = "serving_points.csv"
COLUMNS = ("model", "gpu", "tp", "ep", "dp_attention", "dtype", "engine", "version", "kind", "isl", "osl",
           "concurrency", "ttft_s", "tpot_s", "tokens_per_s", "source", "date")  # fmt: skip
SOURCES = {
    "aiconfigurator": "ai-dynamo/aiconfigurator systems/silicon_sample.csv (Apache-2.0)",
    "tensorrt-llm-docs": "NVIDIA/TensorRT-LLM 1.0 performance overview (Apache-2.0)",
}
_KINDS = ("served", "offline")
_NEEDED = ("tp", "ep", "dp_attention", "isl", "osl")


@functools.cache
def serving_points() -> tuple[ServingPoint, ...]:
    """Every row that ships."""
    return load(resources.files("suanli.catalog").joinpath(FILE).read_text(encoding="utf-8"), FILE)


def load(text: str, where: str) -> tuple[ServingPoint, ...]:
    """The rows of a table. Raises ConfigError listing every cell that cannot be."""
    faults = FaultList(ConfigError)
    reader = csv.DictReader(io.StringIO(text))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        faults.add(code="bad_columns", message="other columns than wanted", where=where, expected=", ".join(COLUMNS))
        faults.raise_if_any()
    found = []
    for line, row in enumerate(reader, start=2):
        numbers = {name: _number(row, name, f"{where}, line {line}", faults) for name in COLUMNS[9:15] + COLUMNS[2:5]}
        _check(row, numbers, f"{where}, line {line}", faults)
        if not faults.faults:
            found.append(_point(row, numbers, line))
    faults.raise_if_any()
    return tuple(found)


def _number(row: dict[str, str], name: str, where: str, faults: FaultList) -> float | None:
    text = row[name]
    try:
        value = float(text) if text else None
    except ValueError:
        value = math.nan
    if value is not None and not 0 < value < math.inf:
        faults.add(code="bad_number", message=f"{name} is no number above 0", where=where, got=shown(text))
        return None
    if value is None and name in _NEEDED:
        faults.add(code="missing_value", message=f"no {name}", where=where)
    return value


def _check(row: dict[str, str], numbers: dict[str, float | None], where: str, faults: FaultList) -> None:
    for name, known in (("kind", _KINDS), ("source", tuple(SOURCES))):
        if row[name] not in known:
            faults.add(code="unknown_word", message=f"unknown {name}", where=where, got=shown(row[name]),
                       expected=", ".join(known))  # fmt: skip
    measured = "tpot_s" if row["kind"] == "served" else "tokens_per_s"
    if numbers[measured] is None:
        faults.add(code="missing_value", message=f"no {measured}", where=where)


def _point(row: dict[str, str], numbers: dict[str, float | None], line: int) -> ServingPoint:
    degrees = {name: int(numbers[name] or 1) for name in COLUMNS[2:5]}
    layout = ServingLayout(**degrees)
    return ServingPoint(
        model=row["model"], preset=row["model"], gpu=row["gpu"], gpus=layout.gpus, layout=layout, dtype=row["dtype"],
        engine=row["engine"], version=row["version"], isl=numbers["isl"], osl=numbers["osl"] or 0.0,
        concurrency=numbers["concurrency"], ttft_s=numbers["ttft_s"], tpot_s=numbers["tpot_s"],
        tokens_per_s=numbers["tokens_per_s"], measured=row["date"], source=SOURCES[row["source"]], kind=row["kind"],
        row=line,
    )  # fmt: skip
