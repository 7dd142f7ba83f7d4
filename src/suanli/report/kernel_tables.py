"""Kernels that a trace measured, as a CSV in the columns that curves are fitted from (`scripts/fit_curves.py`)."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from suanli.errors import Fault, InputError, shown
from suanli.nouns.result import Result
from suanli.nouns.trace_times import MeasuredKernels
from suanli.report.files import write_text
from suanli.units import MILLI

COLUMNS = (
    "table", "gpu", "engine", "engine_version", "gemm_dtype", "m", "n", "k", "op_name", "nccl_dtype", "num_gpus",
    "message_size", "milliseconds", "runs", "attn_dtype", "kv_cache_dtype", "batch_size", "isl", "keys", "num_heads",
    "num_key_value_heads", "head_dim", "value_dim", "causal", "direction",
)  # fmt: skip
# The names that measured tables have for what the catalogue calls bf16 …; others stay.
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "tf32": "tf32"}
_OPS = {"all_to_all": "alltoall"}
_NO_ATTENTION = ("",) * 11
ENGINE = "trace"
BYTES = "int8"  # sizes are in bytes, so that an element is one


def kernels_csv(measured: MeasuredKernels) -> str:
    """A row a product (table gemm), collective (nccl) or attention; cells of the other tables stay empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in measured.products:
        dtype = _DTYPES.get(row.dtype, row.dtype)
        product = ("gemm", _gpu(row.gpu), ENGINE, "", dtype, row.m, row.n, row.k)
        writer.writerow((*product, *[""] * 4, repr(row.seconds / MILLI), row.runs, *_NO_ATTENTION))
    for call in measured.collectives:
        head = ("nccl", _gpu(call.gpu), ENGINE, "", "", "", "", "")
        kind = _OPS.get(call.kind, call.kind)
        told = (kind, BYTES, call.ranks, call.bytes, repr(call.seconds / MILLI), call.runs)
        writer.writerow((*head, *told, *_NO_ATTENTION))
    for each in measured.attentions:
        head = ("attention", _gpu(each.gpu), ENGINE, "", "", "", "", "")
        dtype, direction = _DTYPES.get(each.dtype, each.dtype), "backward" if each.backward else "forward"
        sizes = (each.batch, each.queries, each.keys, each.heads, each.kv_heads, each.qk_dim, each.v_dim)
        shape = (dtype, dtype, *sizes, int(each.causal), direction)
        writer.writerow((*head, "", "", "", "", repr(each.seconds / MILLI), each.runs, *shape))
    return out.getvalue()


def _gpu(name: str) -> str:
    """As measured tables spell it: h100_sxm."""
    return name.replace("-", "_")


def check_kernels_file(path: Path) -> None:
    """Raise InputError where the suffix is not that of a CSV."""
    if path.suffix.lower() != ".csv":
        raise InputError(
            Fault(code="unknown_format", message="kernels are written as CSV", where="--kernels-csv",
                  got=shown(path.name), expected="a file ending in .csv")
        )  # fmt: skip


def write_kernels(result: Result, path: Path) -> None:
    """Write the kernels behind an answer of `explain`. Raises InputError where it has none, or for another suffix."""
    check_kernels_file(path)
    measured = result.asked.get("measured")
    if measured is None:
        raise InputError(
            Fault(code="one_file_only", message="kernels are measured from one file", where="--kernels-csv",
                  got="many ranks", hint="Explain the file of one rank by itself.")
        )  # fmt: skip
    write_text(path, kernels_csv(measured()))
