"""Tables of measured kernels: Parquet in ai-dynamo/aiconfigurator's columns, or a CSV of `explain --kernels-csv`."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from measured_machines import Machine

Array = Any
DTYPES = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4"}


def read(folder: Path, name: str) -> dict[str, Any]:
    """One table as columns of numpy arrays."""
    table = pq.read_table(folder / f"{name}.parquet")
    return {column: table[column].to_numpy() for column in table.column_names}


NUMBERS = ("m", "n", "k", "num_gpus", "message_size", "milliseconds", "runs")


ATTENTION = ("batch_size", "isl", "keys", "num_heads", "num_key_value_heads", "head_dim", "value_dim")
SECTIONS = {"gemm": "gemm", "nccl": "nccl", "attention": "prefill_attention"}  # `table` of a CSV → of measured tables


def read_csv(path: Path) -> dict[str, dict[str, Any]]:
    """The tables in a CSV of kernels; of what it has none, empty ones. Raises SystemExit for another file."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = [row for row in reader if row.get("table") in SECTIONS and _has_curve(row)]
    lacking = [name for name in ("table", "gpu", *NUMBERS) if name not in (reader.fieldnames or ())]
    if lacking or not rows:
        raise SystemExit(f"{path}: no kernels of suanli explain --kernels-csv ({', '.join(lacking) or 'no rows'})")
    held = {name: [row for row in rows if row["table"] == table] for table, name in SECTIONS.items()}
    try:
        return {table: {name: _column(name, each) for name in reader.fieldnames or ()} for table, each in held.items()}
    except ValueError as problem:
        raise SystemExit(f"{path}: {problem}") from problem


def _has_curve(row: dict[str, str]) -> bool:
    """Whether a row is of what a curve is fitted to: of attention the causal forward pass over its own positions."""
    if row["table"] != "attention":
        return True
    itself = row.get("isl") == row.get("keys") and row.get("head_dim") == row.get("value_dim")
    return itself and (row.get("causal"), row.get("direction")) == ("1", "forward")


def _column(name: str, rows: Sequence[dict[str, str]]) -> Array:
    if name in NUMBERS or name in ATTENTION:
        return np.array([float(row[name] or "nan") for row in rows])
    return np.array([row[name] or "" for row in rows], dtype=object)


def columns(table: Any, rows: Array, *names: str) -> list[Array]:
    """Columns of a table as float64 arrays."""
    return [np.asarray(table[name], float)[rows] for name in names]


def engines_of(table: dict[str, Any], machine: Machine, dtype_column: str) -> list[tuple[str, str, str]]:
    """Engine, version and dtype of every set of rows of this machine that has a curve here."""
    rows = table["gpu"] == machine.gpu
    names = {
        (str(e), str(v), str(d))
        for e, v, d in zip(table["engine"][rows], table["engine_version"][rows], table[dtype_column][rows], strict=True)
    }
    return sorted(each for each in names if each[2] in DTYPES)
