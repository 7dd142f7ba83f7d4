"""The CSV of kernels that `suanli explain --kernels-csv` writes, read back; every fault with its line and column."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Mapping
from pathlib import Path

from suanli.errors import FaultList, InputError, nearest_names, shown
from suanli.nouns.trace_times import MeasuredAttention, MeasuredCollective, MeasuredKernels, MeasuredProduct
from suanli.readers import files
from suanli.units import MILLI

COLUMNS = (
    "table", "gpu", "engine", "engine_version", "gemm_dtype", "m", "n", "k", "op_name", "nccl_dtype", "num_gpus",
    "message_size", "milliseconds", "runs", "attn_dtype", "kv_cache_dtype", "batch_size", "isl", "keys", "num_heads",
    "num_key_value_heads", "head_dim", "value_dim", "causal", "direction",
)  # fmt: skip
OF_ATTENTION = COLUMNS[COLUMNS.index("runs") + 1 :]  # a table without attention may lack them
NEEDED = tuple(name for name in COLUMNS if name not in ("engine", "engine_version", "nccl_dtype", *OF_ATTENTION))
DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "tf32": "tf32"}
KINDS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
         "alltoall": "all_to_all"}  # fmt: skip
MOST_ROWS, MOST_FAULTS, MOST = 1_000_000, 50, 10**15
HINT = "suanli explain --kernels-csv writes them."
_TOLD = ("table", "milliseconds")


def is_kernels_text(text: str) -> bool:
    """Whether a table holds kernels, by its header."""
    return set(_TOLD) <= {name.strip() for name in text.partition("\n")[0].split(",")}


def read_kernel_rows(path: Path) -> tuple[MeasuredKernels, str]:
    """The kernels of a CSV, and the SHA-256 of its text. Raises UnreadableFileError, or one InputError."""
    text = files.read_table_text(path)
    return kernel_rows(text, path.name), hashlib.sha256(text.encode()).hexdigest()


def kernel_rows(text: str, where: str) -> MeasuredKernels:
    """The rows of a table. Raises one InputError that lists every fault."""
    faults = FaultList(InputError)
    reader = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    header = [name.strip() for name in reader.fieldnames or ()]
    for name in NEEDED:
        if name not in header:
            faults.add(code="missing_column", message=f"no column {name}", where=f"{where}, line 1",
                       nearest=nearest_names(name, header), hint=HINT)  # fmt: skip
    faults.raise_if_any()
    reader.fieldnames = header
    products, attentions, collectives, count = [], [], [], 0
    for line, row in enumerate(reader, start=2):
        cells = _Cells(row, f"{where}, line {line}", faults)
        kind = cells.text("table")
        if kind == "gemm":
            products.append(_product(cells))
        elif kind == "nccl":
            collectives.append(_collective(cells))
        elif kind == "attention":
            attentions.append(_attention(cells))
        else:
            cells.fault("table", "gemm for a product, nccl for a collective, attention")
        count += 1
        if count > MOST_ROWS or len(faults.faults) >= MOST_FAULTS:
            break
    if not count:
        faults.add(code="no_rows", message="the table has no rows", where=where)
    faults.raise_if_any()
    return MeasuredKernels(
        products=tuple(products), attentions=tuple(attentions), collectives=tuple(collectives), left_out={}
    )


class _Cells:
    """The cells of one line; what is wrong with one becomes a fault."""

    def __init__(self, row: Mapping[str, object], where: str, faults: FaultList) -> None:
        self.row, self.where, self.faults = row, where, faults

    def text(self, name: str) -> str:
        """A cell, stripped; empty where there is none."""
        value = self.row.get(name)
        return value.strip() if isinstance(value, str) else ""

    def fault(self, name: str, expected: str) -> None:
        """A cell that cannot be read."""
        self.faults.add(code="bad_cell", message="the cell cannot be read", where=f"{self.where}, {name}",
                        got=shown(self.text(name)) if self.text(name) else "nothing", expected=expected)  # fmt: skip

    def whole(self, name: str, low: int = 1) -> int:
        """A whole number."""
        text = self.text(name)
        if text.isascii() and text.isdecimal() and low <= int(text[:16]) and len(text) < 16:
            return int(text)
        self.fault(name, f"a whole number, {low} or more")
        return low

    def seconds(self) -> float:
        """The time, in s."""
        try:
            found = float(self.text("milliseconds"))
        except ValueError:
            found = 0.0
        if not (0 < found < MOST and math.isfinite(found)):
            self.fault("milliseconds", "a time above 0 in ms")
            return MILLI
        return found * MILLI

    def word(self, name: str, expected: str) -> str:
        """A text that is not empty."""
        if not self.text(name):
            self.fault(name, expected)
        return self.text(name)


def _gpu(cells: _Cells) -> str:
    return cells.word("gpu", "a device, like h100_sxm").replace("_", "-")


def _product(cells: _Cells) -> MeasuredProduct:
    dtype = cells.word("gemm_dtype", "a dtype, like bfloat16")
    m, n, k = (cells.whole(name) for name in "mnk")
    return MeasuredProduct(gpu=_gpu(cells), dtype=DTYPES.get(dtype, dtype), m=m, n=n, k=k, seconds=cells.seconds(),
                           runs=cells.whole("runs"))  # fmt: skip


def _attention(cells: _Cells) -> MeasuredAttention:
    dtype = cells.word("attn_dtype", "a dtype, like bfloat16")
    names = ("batch_size", "isl", "keys", "num_heads", "num_key_value_heads", "head_dim", "value_dim")
    batch, queries, keys, heads, kv_heads, qk_dim, v_dim = (cells.whole(name) for name in names)
    for name, words in (("causal", ("0", "1")), ("direction", ("forward", "backward"))):
        if cells.text(name) not in words:
            cells.fault(name, " or ".join(words))
    return MeasuredAttention(
        gpu=_gpu(cells), dtype=DTYPES.get(dtype, dtype), batch=batch, heads=heads, kv_heads=kv_heads, queries=queries,
        keys=keys, qk_dim=qk_dim, v_dim=v_dim, causal=cells.text("causal") == "1",
        backward=cells.text("direction") == "backward", seconds=cells.seconds(), runs=cells.whole("runs"),
    )  # fmt: skip


def _collective(cells: _Cells) -> MeasuredCollective:
    kind = KINDS.get(cells.text("op_name"))
    if kind is None:
        cells.fault("op_name", "one of " + ", ".join(KINDS))
    return MeasuredCollective(
        gpu=_gpu(cells), kind=kind or "", bytes=cells.whole("message_size"), ranks=cells.whole("num_gpus", 2),
        seconds=cells.seconds(), runs=cells.whole("runs"),
    )  # fmt: skip
