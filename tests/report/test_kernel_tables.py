"""Measured kernels as a CSV that curves are fitted from."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from suanli.errors import InputError
from suanli.nouns.result import Result
from suanli.nouns.trace_times import MeasuredCollective, MeasuredKernels, MeasuredProduct
from suanli.report.kernel_tables import COLUMNS, kernels_csv, write_kernels

MADE = MeasuredKernels(
    products=(MeasuredProduct(gpu="h100-sxm", dtype="bf16", m=8, n=16, k=32, seconds=1.5e-3, runs=3),),
    collectives=(MeasuredCollective(gpu="h100-sxm", kind="all_to_all", bytes=4096, ranks=8, seconds=2e-5, runs=2),),
    left_out={},
)


def test_rows_in_the_columns_of_measured_tables() -> None:
    rows = list(csv.DictReader(io.StringIO(kernels_csv(MADE))))
    assert [{key: value for key, value in row.items() if value} for row in rows] == [
        {"table": "gemm", "gpu": "h100-sxm", "gemm_dtype": "bfloat16", "m": "8", "n": "16", "k": "32",
         "milliseconds": "1.5", "runs": "3"},
        {"table": "nccl", "gpu": "h100-sxm", "op_name": "alltoall", "nccl_dtype": "int8", "num_gpus": "8",
         "message_size": "4096", "milliseconds": "0.02", "runs": "2"},
    ]  # fmt: skip


def test_every_column_that_a_fit_reads_is_there() -> None:
    source = (Path(__file__).resolve().parents[2] / "scripts" / "fit_curves.py").read_text(encoding="utf-8")
    gemm = ("gpu", "gemm_dtype", "m", "n", "k", "milliseconds")
    nccl = ("gpu", "op_name", "nccl_dtype", "num_gpus", "message_size", "milliseconds")
    assert set(gemm) | set(nccl) <= set(COLUMNS)
    assert all(f'"{name}"' in source for name in (*gemm, *nccl))


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
