"""Measured kernels as a CSV that curves are fitted from."""

from __future__ import annotations

import csv
import importlib.util
import io
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from suanli.errors import InputError
from suanli.nouns.result import Result
from suanli.nouns.trace_times import MeasuredAttention, MeasuredCollective, MeasuredKernels, MeasuredProduct
from suanli.report.kernel_tables import COLUMNS, kernels_csv, write_kernels

MADE = MeasuredKernels(
    products=(MeasuredProduct(gpu="h100-sxm", dtype="bf16", m=8, n=16, k=32, seconds=1.5e-3, runs=3),),
    collectives=(MeasuredCollective(gpu="h100-sxm", kind="all_to_all", bytes=4096, ranks=8, seconds=2e-5, runs=2),),
    attentions=(
        MeasuredAttention(gpu="h100-sxm", dtype="bf16", batch=2, heads=8, kv_heads=4, queries=512, keys=900, qk_dim=64,
                          v_dim=32, causal=True, backward=True, seconds=3e-4, runs=6),
    ),
    left_out={},
)  # fmt: skip


def test_rows_in_the_columns_of_measured_tables() -> None:
    rows = list(csv.DictReader(io.StringIO(kernels_csv(MADE))))
    assert [{key: value for key, value in row.items() if value} for row in rows] == [
        {"table": "gemm", "gpu": "h100_sxm", "engine": "trace", "gemm_dtype": "bfloat16", "m": "8", "n": "16",
         "k": "32", "milliseconds": "1.5", "runs": "3"},
        {"table": "nccl", "gpu": "h100_sxm", "engine": "trace", "op_name": "alltoall", "nccl_dtype": "int8",
         "num_gpus": "8", "message_size": "4096", "milliseconds": "0.02", "runs": "2"},
        {"table": "attention", "gpu": "h100_sxm", "engine": "trace", "milliseconds": "0.3", "runs": "6",
         "attn_dtype": "bfloat16", "kv_cache_dtype": "bfloat16", "batch_size": "2", "isl": "512", "keys": "900",
         "num_heads": "8", "num_key_value_heads": "4", "head_dim": "64", "value_dim": "32", "causal": "1",
         "direction": "backward"},
    ]  # fmt: skip


@pytest.fixture(scope="module")
def fitting() -> ModuleType:
    pytest.importorskip("scipy", reason="the fit needs scipy: pip install '.[calibrate]'")
    pytest.importorskip("pyarrow", reason="the fit reads with pyarrow: pip install '.[calibrate]'")
    path = Path(__file__).resolve().parents[2] / "scripts" / "fit_curves.py"
    spec = importlib.util.spec_from_file_location("fit_curves", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fit_curves"] = module
    spec.loader.exec_module(module)
    return module


def table(text: str, name: str) -> dict[str, Any]:
    """One table of the CSV as columns of numpy arrays, as the fit has them."""
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["table"] == name]
    numbers = ("m", "n", "k", "num_gpus", "message_size", "milliseconds")
    return {column: np.array([float(row[column] or 0) if column in numbers else row[column] for row in rows])
            for column in COLUMNS}  # fmt: skip


def test_the_fit_finds_its_rows_in_it(fitting: ModuleType) -> None:
    machine = next(each for each in fitting.MACHINES if each.gpu == "h100_sxm")
    products = table(kernels_csv(MADE), "gemm")
    assert fitting.engines_of(products, machine, "gemm_dtype") == [("trace", "", "bfloat16")]
    assert [list(each) for each in fitting.columns(products, products["gpu"] == machine.gpu, "m", "n", "k")] == [
        [8.0], [16.0], [32.0],
    ]  # fmt: skip
    calls = tuple(
        MeasuredCollective(gpu="h100-sxm", kind="all_reduce", bytes=2**k, ranks=8, runs=1,
                           seconds=2e-5 + 2**k * 1.75 / 360e9)
        for k in range(14, 29)
    )  # fmt: skip
    found = fitting.fit_collective(
        machine, table(kernels_csv(replace(MADE, collectives=calls)), "nccl"), "all_reduce", {}, False
    )
    assert found is not None
    assert (found.section, found.key) == ("collectives", "all_reduce")


def test_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "k.csv"
    write_kernels(Result("explain", {}, None, asked={"measured": lambda: MADE}), path)
    assert path.read_text(encoding="utf-8") == kernels_csv(MADE)


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError) as problem:
        write_kernels(Result("explain", {}, None), tmp_path / "k.parquet")
    assert str(problem.value) == (
        "kernels are written as CSV in --kernels-csv; got 'k.parquet'; expected a file ending in .csv."
    )
    with pytest.raises(InputError) as problem:
        write_kernels(Result("explain", {}, None), tmp_path / "k.csv")
    assert str(problem.value) == (
        "kernels are measured from one file in --kernels-csv; got many ranks. Explain the file of one rank by itself."
    )
