"""Kernels measured from a trace: which, how long, and what was left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_trace import OUT, TOKENS, WIDTH, as_text, training_trace

from suanli.explain import measured as m
from suanli.explain.attribute import attribute
from suanli.explain.classify import classify
from suanli.explain.measured import measured_kernels
from suanli.nouns.trace import CollectiveCall, OpDetail, Trace
from suanli.nouns.trace_times import MeasuredKernels
from suanli.readers.traces import read_trace

Make = Callable[..., Trace]
H = "c10::BFloat16"


def measured(trace: Trace) -> MeasuredKernels:
    return measured_kernels(trace, attribute(trace, classify(trace)))


def test_the_made_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(as_text(training_trace()), encoding="utf-8")
    found = measured(read_trace(path))
    assert [(row.gpu, row.dtype, row.m, row.n, row.k, row.runs) for row in found.products] == [
        ("h100-sxm", "bf16", TOKENS, OUT, WIDTH, 3),
        ("h100-sxm", "bf16", OUT, WIDTH, TOKENS, 3),
    ]
    assert [row.seconds for row in found.products] == pytest.approx([1150e-6, 1100e-6])
    (call,) = found.collectives
    assert (call.kind, call.ranks, call.bytes, call.runs) == ("all_reduce", 8, 2 * WIDTH * OUT, 3)
    assert call.seconds == pytest.approx(520e-6)
    assert found.left_out == {}


def products(make: Make, lengths: list[int], op: str = "aten::mm", **more: Any) -> Trace:
    """A call of one product for each length, ns."""
    host: list[dict[str, Any]] = []
    work = []
    for k, length in enumerate(lengths):
        at = 1000 * k
        host.append({"name": op, "kind": "op", "start_ns": at, "end_ns": at + 90, "detail": 0})
        host.append({"name": "cudaLaunchKernel", "start_ns": at + 10, "end_ns": at + 11})
        work.append({"name": "gemm", "start_ns": at + 20, "end_ns": at + 20 + length, "launch": 2 * k + 1, **more})
    detail = OpDetail(dims=((128, 64), (64, 256)), types=(H, H))
    return make(work, host, details=(detail,))


def test_of_equal_calls_the_median(make: Make) -> None:
    (row,) = measured(products(make, [100, 900, 200])).products
    assert (row.m, row.n, row.k, row.runs) == (128, 256, 64, 3)
    assert row.seconds == pytest.approx(200e-9)


def test_the_parts_of_a_split_product_are_one_call(make: Make) -> None:
    trace = products(make, [100])
    host = [{"name": "aten::mm", "kind": "op", "start_ns": 0, "end_ns": 90, "detail": 0},
            {"name": "cudaLaunchKernel", "start_ns": 10, "end_ns": 11},
            {"name": "cudaLaunchKernel", "start_ns": 12, "end_ns": 13}]  # fmt: skip
    work = [{"name": "gemm", "start_ns": 20, "end_ns": 120, "launch": 1},
            {"name": "splitKreduce_kernel", "start_ns": 120, "end_ns": 150, "launch": 2}]  # fmt: skip
    (row,) = measured(make(work, host, details=trace.details)).products
    assert row.seconds == pytest.approx(130e-9)


def test_what_is_left_out_is_counted(make: Make) -> None:
    assert measured(products(make, [100, 100], graph=4)).left_out == {m.REPLAYED: 2}
    lost = make([{"name": "gemm", "start_ns": 0, "end_ns": 10}])
    assert measured(lost).left_out == {m.NOT_KNOWN: 1}
    attention = products(make, [100], op="aten::_scaled_dot_product_flash_attention")
    assert sum(measured(attention).left_out.values()) == 1


FLASH = "aten::_scaled_dot_product_flash_attention"


def attended(make: Make, *calls: tuple[str, tuple[Any, ...], tuple[str, ...], list[int]]) -> MeasuredKernels:
    """Calls of fused attention: operator, shapes, values, and the length of each kernel, ns."""
    host: list[dict[str, Any]] = []
    work, details = [], []
    for k, (op, dims, values, lengths) in enumerate(calls):
        at = 10_000 * k
        host.append({"name": op, "kind": "op", "start_ns": at, "end_ns": at + 90, "detail": k})
        details.append(OpDetail(dims=dims, types=tuple(H if each else "Scalar" for each in dims), concrete=values))
        launch = len(host)
        host.append({"name": "cudaLaunchKernel", "start_ns": at + 10, "end_ns": at + 11})
        start = at + 20
        for name, length in zip(("flash_fwd_kernel", "flash_fwd_splitkv_kernel"), lengths, strict=False):
            work.append({"name": name, "start_ns": start, "end_ns": start + length, "launch": launch})
            start += length
    return measured(make(work, host, details=tuple(details)))


HEADS, GROUPED, TIME_FIRST = (2, 8, 512, 64), (2, 4, 512, 64), (2, 512, 8, 64)


@pytest.mark.parametrize(
    ("op", "dims", "values", "expected"),
    [
        (FLASH, (HEADS, HEADS, HEADS, (), ()), ("", "", "", "0.", "True"), (2, 8, 8, 512, 512, 64, 64, True, False)),
        (FLASH, (HEADS, HEADS, HEADS, (), ()), ("", "", "", "0.", "False"), (2, 8, 8, 512, 512, 64, 64, False, False)),
        (FLASH, (HEADS, GROUPED, GROUPED, (), ()), ("", "", "", "0.", "True"),
         (2, 8, 4, 512, 512, 64, 64, True, False)),
        (FLASH, (HEADS, (2, 8, 900, 64), (2, 8, 900, 32), (), ()), ("", "", "", "0.", "False"),
         (2, 8, 8, 512, 900, 64, 32, False, False)),
        ("flash_attn::_flash_attn_forward", (TIME_FIRST, (2, 900, 4, 64), (2, 900, 4, 64), (), (), ()),
         ("", "", "", "", "", "True"), (2, 8, 4, 512, 900, 64, 64, True, False)),
        (f"{FLASH}_backward", (HEADS, HEADS, HEADS, HEADS, *[()] * 8), (*[""] * 11, "True"),
         (2, 8, 8, 512, 512, 64, 64, True, True)),
    ],
)  # fmt: skip
def test_attention(make: Make, op: str, dims: Any, values: Any, expected: tuple[Any, ...]) -> None:
    """Of equal calls the median; a second kernel of the same call is part of its time."""
    found = attended(make, *((op, dims, values, [length, 100]) for length in (1_000, 5_000, 2_000)))
    assert (found.products, found.left_out) == ((), {})
    (row,) = found.attentions
    assert (row.batch, row.heads, row.kv_heads, row.queries, row.keys, row.qk_dim, row.v_dim) == expected[:7]
    assert (row.causal, row.backward, row.dtype, row.runs) == (*expected[7:], "bf16", 3)
    assert row.seconds == pytest.approx(2_100e-9)


@pytest.mark.parametrize(
    ("op", "dims", "values"),
    [
        (FLASH, (HEADS, HEADS, HEADS, (), ()), ("", "", "", "0.", "")),  # whether causal is not recorded
        (FLASH, (HEADS, (2, 8, 900, 64), (2, 8, 900, 64), (), ()), ("", "", "", "0.", "True")),  # keys never seen
        ("flash_attn::_flash_attn_forward", (TIME_FIRST, (2, 9, 8, 64), (2, 9, 8, 64), (), (), ()),
         ("", "", "", "", "", "True")),  # more queries than keys
        ("flash_attn::_flash_attn_varlen_forward", (TIME_FIRST, TIME_FIRST, TIME_FIRST), ("", "", "")),
    ],
)  # fmt: skip
def test_attention_that_no_curve_is_for_is_left_out(make: Make, op: str, dims: Any, values: Any) -> None:
    found = attended(make, (op, dims, values, [1_000]))
    assert (found.attentions, sum(found.left_out.values())) == ((), 1)


@pytest.mark.shared
def test_attention_of_a_public_trace(shared: Path) -> None:
    """SD 3.5 on an MI300X: 152 calls over 4,429 positions, 38 heads of 64, no mask."""
    row = measured(read_trace(shared / "traces" / "files" / "tl_mi300_xdit_sd35.json.gz")).attentions[0]
    assert (row.gpu, row.dtype, row.batch, row.heads, row.queries, row.keys) == ("mi300x", "bf16", 2, 38, 4429, 4429)
    assert (row.qk_dim, row.causal, row.backward, row.runs) == (64, False, False, 152)
    assert row.seconds == pytest.approx(1.35964e-3)


def collective(make: Make, *calls: CollectiveCall) -> MeasuredKernels:
    work = [{"name": "ncclDevKernel", "start_ns": 100 * k, "end_ns": 100 * k + 10 + k, "collective": k, "stream": 9}
            for k in range(len(calls))]  # fmt: skip
    return measured(make(work, collectives=calls))


def test_of_equal_collectives_the_shortest(make: Make) -> None:
    call = CollectiveCall(name="_allgather_base", group_size=4, dtype="BFloat16", in_elements=8, out_elements=32)
    (row,) = collective(make, call, call).collectives
    assert (row.kind, row.bytes, row.ranks, row.runs) == ("all_gather", 64, 4, 2)
    assert row.seconds == pytest.approx(10e-9)


def test_collectives_without_a_size_are_left_out(make: Make) -> None:
    said = CollectiveCall(name="allreduce", group_size=4)
    other = CollectiveCall(name="broadcast", group_size=4, dtype="Float", in_elements=8)
    found = collective(make, said, other)
    assert found.collectives == ()
    assert found.left_out == {m.NO_SIZE: 1, m.OTHER_KIND: 1}
