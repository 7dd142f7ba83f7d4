"""Measured sizes of a cluster from a CSV or typed points.

Columns: `gpus`, one or more figures (`step_time_s`, `tokens_per_s` …, a percentage as `mfu_pct`), and if wanted
`global_batch`, `series`, and words that ought to be the same at all sizes (`software`, `machine`, `model` …).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

from suanli.errors import FaultList, InputError, SuanliError, nearest_names, shown
from suanli.nouns.scaling import METRICS, Figure, Series, Size
from suanli.readers import files
from suanli.units import parse

GPUS = ("gpus", "gpu_count", "n_gpus", "num_gpus")
BATCH = ("global_batch", "gbs_seqs", "gbs")
PERCENT = {"mfu_pct": "mfu", "hfu_pct": "hfu"}
NAMES = ("series", "name")
WORDS = ("model", "gpu", "precision", "framework", "software", "round", "machine", "seq_len", "layout")
MEASURED_IN = ("s", "fraction")  # units that a bare number may be thought not to have; suffixes of counts are no units
KINDS = {"s": "duration", "min": "factor", "fraction": "fraction"}
MOST_ROWS = 100_000
MOST_FAULTS = 20
MOST_GPUS = 10**9
# Of a figure in its unit: 31 years a step, or a rate that no cluster has, is no measurement.
LARGEST = {"s": 1e9, "min": 1e9}
LARGEST_RATE = 1e15
_NEEDED = "a column gpus and one of " + ", ".join((*METRICS, *PERCENT))


def read_sizes(path: Path, series: str | None = None) -> Series:
    """The series of a CSV file. Raises InputError with every fault (the first twenty)."""
    text, where, faults = files.read_table_text(path), str(path), FaultList(InputError)
    try:
        rows = list(csv.DictReader(io.StringIO(text), strict=True))
    except csv.Error:
        faults.add(code="not_csv", message="not a CSV table", where=where, expected=_NEEDED)
        rows = []
    names = [str(name).strip().lower() for name in (rows[0] if rows else {})]
    columns = _columns(names, where, faults, empty=not rows)
    faults.raise_if_any()
    if len(rows) > MOST_ROWS:
        faults.add(code="too_large", message="too many rows", where=where, got=f"{len(rows):,}",
                   expected=f"at most {MOST_ROWS:,}")  # fmt: skip
        faults.raise_if_any()
    longer = [line for line, row in enumerate(rows, 2) if None in row]
    if longer:
        faults.add(code="not_csv", message="a row has more cells than there are columns",
                   where=f"{where}, line {longer[0]}", expected=_NEEDED)  # fmt: skip
        faults.raise_if_any()
    plain = [{str(key).strip().lower(): (value or "") for key, value in row.items() if key} for row in rows]
    chosen, name = _one_series(plain, series, where)
    sizes = [_size(row, columns, f"{where}, line {line}", faults) for line, row in chosen]
    for metric in (each for each in METRICS if each in columns and columns[each] not in PERCENT):
        check_units(metric, [(f"line {line}", row[columns[metric]]) for line, row in chosen], where, faults)
    return series_of(name or path.name, [size for size in sizes if size is not None], faults)


def series_of(name: str, sizes: Sequence[Size], faults: FaultList) -> Series:
    """The series, fewest GPUs first. Raises InputError with the faults so far and sizes that are given twice."""
    try:
        found = Series(name=name, sizes=tuple(sorted(sizes, key=lambda size: size.gpus)))
    except InputError as problem:  # one size alone may be what faults have left
        faults.faults += [each for each in problem.faults if not faults.faults or each.code == "duplicate_size"]
    faults.raise_if_any()
    return found


def check_units(name: str, texts: Sequence[tuple[str, str]], where: str, faults: FaultList) -> None:
    """Times and parts written with a unit at one size and without at another may be in two units: a fault."""
    if METRICS[name].unit not in MEASURED_IN:
        return
    bare = [each for each in texts if each[1].strip() and each[1].strip()[-1].isdigit()]
    with_unit = [each for each in texts if each[1].strip() and not each[1].strip()[-1].isdigit()]
    if bare and with_unit:
        _fault(faults, "mixed_units", f"{name} is written with a unit and without", where,
               f"{shown(with_unit[0][1].strip())} ({with_unit[0][0]}) and {shown(bare[0][1].strip())} ({bare[0][0]})",
               "all with their unit, or all without", quoted=False)  # fmt: skip


def with_batch(found: Series, batch: int) -> Series:
    """The series with a global batch given beside it. Raises InputError where its sizes say one themselves."""
    own = sorted({size.global_batch for size in found.sizes if size.global_batch is not None})
    if own:
        faults = FaultList(InputError)
        faults.add(code="contradiction", message="the sizes say their batch themselves", where="--global-batch",
                   got=f"{batch:,} beside {', '.join(f'{each:,}' for each in own[:4])}",
                   expected="no such option")  # fmt: skip
        faults.raise_if_any()
    return replace(found, sizes=tuple(replace(size, global_batch=batch) for size in found.sizes))


def _columns(names: list[str], where: str, faults: FaultList, *, empty: bool) -> dict[str, str]:
    """Which column holds GPUs, the batch, and each figure."""
    found = {"gpus": next((name for name in GPUS if name in names), "")}
    found["batch"] = next((name for name in BATCH if name in names), "")
    found |= {PERCENT.get(name, name): name for name in names if name in METRICS or name in PERCENT}
    figures = [name for name in found if name in METRICS]
    if empty:
        faults.add(code="empty", message="no rows", where=where, expected=_NEEDED)
    elif not found["gpus"] or not figures:
        got = ", ".join(map(shown, names))
        close = nearest_names(names[0], (*GPUS, *METRICS)) if names else ()
        faults.add(code="missing_column", message="the columns are not there", where=where, got=got, expected=_NEEDED,
                   nearest=close)  # fmt: skip
    return found


def _one_series(
    rows: list[dict[str, str]], series: str | None, where: str
) -> tuple[list[tuple[int, dict[str, str]]], str]:
    """Rows with their line numbers, and the series' name. Raises UnknownNameError where one has to be chosen."""
    numbered = list(enumerate(rows, 2))
    column = next((name for name in NAMES if name in rows[0]), None)
    if column is None and series is not None:
        faults = FaultList(InputError)
        faults.add(code="missing_column", message="the file has one series, without a name", where="--series",
                   got=shown(series), expected="a column series, or no --series")  # fmt: skip
        faults.raise_if_any()
    names = list(dict.fromkeys(row[column].strip() for row in rows)) if column else []
    if column is None or (len(names) == 1 and series is None):
        return numbered, names[0] if names else ""
    exact = [name for name in names if name == series]
    fits = exact or [name for name in names if series is not None and series.lower() in name.lower()]
    if len(fits) != 1:
        faults = FaultList(InputError)
        faults.add(code="choose_series", message=f"{len(fits) or 'no'} series fit" if series else "several series",
                   where=f"--series of {where}", got=shown(series) if series else f"{len(names)} of them",
                   expected="the name of one, or a part of it that no other has",
                   nearest=tuple(fits[:3]) or nearest_names(series or names[0], names))  # fmt: skip
        faults.raise_if_any()
    return [(line, row) for line, row in numbered if row[column].strip() == fits[0]], fits[0]


def _size(row: Mapping[str, str], columns: Mapping[str, str], where: str, faults: FaultList) -> Size | None:
    gpus = _gpus(row[columns["gpus"]], where, faults)
    batch = row[columns["batch"]].strip() if columns["batch"] else ""
    sequences = _gpus(batch, where, faults, "global_batch") if batch else None
    figures = {}
    for name in METRICS:
        cell = row[columns[name]].strip() if name in columns else ""
        if cell:
            figure = read_figure(name, cell, where, faults, percent=columns[name] in PERCENT)
            if figure is not None:
                figures[name] = figure
    words = {name: row[name].strip() for name in WORDS if row.get(name, "").strip()}
    return None if gpus is None else Size(gpus=gpus, figures=figures, global_batch=sequences, words=words)


def _gpus(text: str, where: str, faults: FaultList, name: str = "gpus") -> int | None:
    try:
        value = parse(text.strip(), "count", name)
    except SuanliError:
        value = 0
    if 1 <= value <= MOST_GPUS and float(value).is_integer():
        return int(value)
    if len(faults.faults) < MOST_FAULTS:
        faults.add(code=f"bad_{name}", message=f"{name} is not possible", where=where, got=shown(text),
                   expected=f"a whole number, 1 to {MOST_GPUS:,}")  # fmt: skip
    return None


def read_figure(name: str, text: str, where: str, faults: FaultList, *, percent: bool = False) -> Figure | None:
    """A cell as a figure with half a unit of its last digit; faults are recorded."""
    metric = METRICS[name]
    kind = KINDS.get(metric.unit, "count")
    try:
        value = float(parse(f"{text.rstrip(' %')}%" if percent else text, kind, name))
    except SuanliError as problem:
        if problem.faults[0].code == "negative_quantity":
            _fault(faults, f"bad_{name}", f"{name} is not possible", where, text, "a number above 0")
            return None
        _fault(
            faults, f"bad_{name}", f"{name} cannot be read", where, text, str(problem.faults[0].expected or metric.unit)
        )
        return None
    most = LARGEST.get(metric.unit, LARGEST_RATE)
    if not 0 < value <= most:
        expected = "a number above 0" if value <= 0 else f"at most {most:,.0f} {metric.unit}"
        _fault(faults, f"bad_{name}", f"{name} is not possible", where, text, expected)
        return None
    if metric.unit == "fraction" and value > 1:
        _fault(faults, f"bad_{name}", f"{name} is above 100 %", where, text, "a part of 1, a percentage like 41%, or a "
               f"column {name}_pct")  # fmt: skip
        return None
    return Figure(value=value, half_digit=_half_digit(text, value))


def _fault(
    faults: FaultList, code: str, message: str, where: str, got: str, expected: str, *, quoted: bool = True
) -> None:
    if len(faults.faults) < MOST_FAULTS:
        faults.add(code=code, message=message, where=where, got=shown(got) if quoted else got, expected=expected)


def _half_digit(text: str, value: float) -> float:
    """Half a unit of the last digit written, in the figure's own unit."""
    number = text.strip().rstrip("%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/ ")
    try:
        digits = Decimal(number.replace(",", "").replace("_", ""))
    except InvalidOperation:
        return 0.0
    exponent = digits.as_tuple().exponent
    if not digits or not isinstance(exponent, int):
        return 0.0
    return float(abs(value / float(digits))) * float(Decimal(10) ** exponent) / 2
