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
