"""The CSV of measured kernels, read back, and its faults word by word."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.errors import InputError, UnreadableFileError
from suanli.nouns.trace_times import MeasuredAttention, MeasuredCollective, MeasuredKernels, MeasuredProduct
from suanli.readers import kernel_rows as k
from suanli.report.kernel_tables import COLUMNS, kernels_csv

HEAD = ",".join(COLUMNS)
PRODUCT = "gemm,h100_sxm,trace,,bfloat16,4096,4096,1024,,,,,0.05,3"
ATTENTION = "attention,h100_sxm,trace,,,,,,,,,,0.3,6,bfloat16,bfloat16,2,512,900,8,4,64,32,1,backward"
OLD_HEAD = HEAD[: HEAD.index(",attn_dtype")]  # of tables without attention
CALL = "nccl,h100_sxm,trace,,,,,,alltoall,int8,8,1048576,0.5,2"
ROWS = MeasuredKernels(
    products=(MeasuredProduct(gpu="h100-sxm", dtype="bf16", m=4096, n=4096, k=1024, seconds=0.05e-3, runs=3),),
    collectives=(
        MeasuredCollective(gpu="h100-sxm", kind="all_to_all", bytes=1048576, ranks=8, seconds=0.5e-3, runs=2),
    ),
    attentions=(
        MeasuredAttention(gpu="h100-sxm", dtype="bf16", batch=2, heads=8, kv_heads=4, queries=512, keys=900, qk_dim=64,
                          v_dim=32, causal=True, backward=True, seconds=0.3e-3, runs=6),
    ),
    left_out={},
)  # fmt: skip


def faults(*lines: str) -> list[str]:
    with pytest.raises(InputError) as problem:
        k.kernel_rows("\n".join(lines) + "\n", "own.csv")
    return str(problem.value).splitlines()


def test_products_and_collectives(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("\n".join([HEAD, PRODUCT, CALL, ATTENTION]) + "\n", encoding="utf-8")
    found, digest = k.read_kernel_rows(path)
    assert found == ROWS
    assert len(digest) == 64


def test_a_table_without_attention_needs_none_of_its_columns() -> None:
    found = k.kernel_rows("\n".join([OLD_HEAD, PRODUCT, CALL]), "own.csv")
    assert (found.products, found.collectives, found.attentions) == (ROWS.products, ROWS.collectives, ())
    said = faults(OLD_HEAD, ATTENTION[: ATTENTION.index(",bfloat16")])
    assert said[0] == (
        "the cell cannot be read in own.csv, line 2, attn_dtype; got nothing; expected a dtype, like bfloat16."
    )


def test_the_columns_are_those_that_explain_writes() -> None:
    assert k.COLUMNS == COLUMNS
    assert k.kernel_rows(kernels_csv(ROWS), "own.csv") == ROWS


@given(st.integers(1, 10**9), st.integers(1, 10**6), st.floats(1e-9, 1e3), st.sampled_from(["bf16", "fp8", "fp32"]))
def test_what_is_written_is_read_again(size: int, runs: int, seconds: float, dtype: str) -> None:
    row = MeasuredProduct(gpu="h100-sxm", dtype=dtype, m=size, n=1, k=7, seconds=seconds, runs=runs)
    text = kernels_csv(MeasuredKernels(products=(row,), collectives=(), left_out={}))
    (again,) = k.kernel_rows(text, "own.csv").products
    assert again.seconds == pytest.approx(seconds, rel=1e-12)
    assert (again.dtype, again.m, again.runs) == (dtype, size, runs)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (PRODUCT.replace("gemm", "moe"), "own.csv, line 2, table; got 'moe'; expected gemm for a product, nccl for a "
         "collective, attention."),
        (ATTENTION.replace(",512,", ",0,"), "own.csv, line 2, isl; got '0'; expected a whole number, 1 or more."),
        (ATTENTION.replace(",1,back", ",yes,back"), "own.csv, line 2, causal; got 'yes'; expected 0 or 1."),
        (ATTENTION.replace("backward", "b"), "own.csv, line 2, direction; got 'b'; expected forward or backward."),
        (ATTENTION.replace("bfloat16", ""), "own.csv, line 2, attn_dtype; got nothing; expected a dtype, like "
         "bfloat16."),
        (PRODUCT.replace("1024", "1e3"), "own.csv, line 2, k; got '1e3'; expected a whole number, 1 or more."),
        (PRODUCT.replace("0.05", "-1"), "own.csv, line 2, milliseconds; got '-1'; expected a time above 0 in ms."),
        (PRODUCT.replace("0.05", "nan"), "own.csv, line 2, milliseconds; got 'nan'; expected a time above 0 in ms."),
        (PRODUCT.replace("h100_sxm", ""), "own.csv, line 2, gpu; got nothing; expected a device, like h100_sxm."),
        (PRODUCT.replace("bfloat16", ""), "own.csv, line 2, gemm_dtype; got nothing; expected a dtype, like bfloat16."),
        (CALL.replace("alltoall", "gather"), "own.csv, line 2, op_name; got 'gather'; expected one of all_reduce, "
         "all_gather, reduce_scatter, alltoall."),
        (CALL.replace(",8,", ",1,"), "own.csv, line 2, num_gpus; got '1'; expected a whole number, 2 or more."),
        ("gemm", "own.csv, line 2, gemm_dtype; got nothing; expected a dtype, like bfloat16."),
    ],
)  # fmt: skip
def test_a_bad_cell_is_named(line: str, said: str) -> None:
    assert faults(HEAD, line)[0] == f"the cell cannot be read in {said}"


def test_every_fault_is_told() -> None:
    found = faults(HEAD, PRODUCT, PRODUCT.replace("0.05", "x"), CALL.replace("0.5", ""))
    assert [each.split(";")[0] for each in found] == [
        "the cell cannot be read in own.csv, line 3, milliseconds",
        "the cell cannot be read in own.csv, line 4, milliseconds",
    ]


def test_a_header_that_lacks_columns() -> None:
    assert faults("table,gpus,milliseconds")[0] == (
        "no column gpu in own.csv, line 1; nearest: gpus. suanli explain --kernels-csv writes them."
    )


def test_no_rows() -> None:
    assert faults(HEAD) == ["the table has no rows in own.csv."]


def test_a_table_of_kernels_is_known_by_its_header() -> None:
    assert k.is_kernels_text(HEAD + "\n" + PRODUCT)
    assert not k.is_kernels_text("id,model,gpu,step_s\n")
    assert not k.is_kernels_text("")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="cannot be opened"):
        k.read_kernel_rows(tmp_path / "none.csv")
