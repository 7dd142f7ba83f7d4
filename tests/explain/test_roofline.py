"""Groups of kernels against the roof of a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from suanli.explain.attribute import attribute
from suanli.explain.roofline import roofline
from suanli.nouns.attribution import WorkClass
from suanli.nouns.roofline import KernelGroup
from suanli.nouns.trace import OpDetail, Trace

Make = Callable[..., Trace]
MATMUL, COMPUTE = int(WorkClass.MATMUL), int(WorkClass.COMPUTE)
H = "c10::BFloat16"
BIG = OpDetail(dims=((1000, 1000), (1000, 1000)), types=(H, H))
THIN = OpDetail(dims=((1, 1000), (1000, 1000)), types=(H, H))
SILU = OpDetail(dims=((1000, 1000),), types=(H,))


def traced(make: Make) -> Trace:
    """Two large products of 10 µs, one thin of 5 µs, an activation of 4 µs, a kernel of nobody of 1 µs."""
    host: list[dict[str, Any]] = []
    for i, (name, detail) in enumerate([("aten::mm", 0), ("aten::mm", 0), ("aten::mm", 1), ("aten::silu", 2)]):
        host.append({"name": name, "kind": "op", "start_ns": 100 * i, "end_ns": 100 * i + 90, "detail": detail})
        host.append({"name": "cudaLaunchKernel", "start_ns": 100 * i + 10, "end_ns": 100 * i + 11})
    lengths = [("gemm", 10_000, 1), ("gemm", 10_000, 3), ("gemm", 5_000, 5), ("silu", 4_000, 7), ("lost", 1_000, -1)]
    work = [{"name": name, "start_ns": 10**6 * i, "end_ns": 10**6 * i + length, "launch": launch}
            for i, (name, length, launch) in enumerate(lengths)]  # fmt: skip
    return make(work, host, details=(BIG, THIN, SILU))


def groups(make: Make, **device: Any) -> tuple[KernelGroup, ...]:
    trace = traced(make)
    found = attribute(trace, np.array([MATMUL, MATMUL, MATMUL, COMPUTE, MATMUL], dtype=np.uint8))
    return roofline(trace, found, **device)


def test_groups_are_kernels_alike_the_longest_first(make: Make) -> None:
    found = groups(make)
    assert [(each.name, each.op, each.count, each.shapes) for each in found] == [
        ("gemm", "aten::mm", 2, BIG.dims),
        ("gemm", "aten::mm", 1, THIN.dims),
        ("silu", "aten::silu", 1, SILU.dims),
        ("lost", None, 1, None),
    ]
    assert [each.seconds for each in found] == pytest.approx([20e-6, 5e-6, 4e-6, 1e-6])
    assert [each.flops for each in found] == [2 * 2e9, 2e6, None, None]
    assert [each.bytes for each in found] == [2 * 3 * 2e6, 2 * (1000 + 1_000_000 + 1000), 4e6, None]
    assert [each.dtype for each in found] == ["bf16", "bf16", None, None]
    assert [each.work_class for each in found] == ["MATMUL", "MATMUL", "COMPUTE", "MATMUL"]


def test_the_lower_roof_counts(make: Make) -> None:
    """1000 TFLOP/s and 1 TB/s meet at 1000 FLOPs a byte: 1000³ has 2e9/6e6 = 333, so both products are under memory."""
    big, thin, silu, lost = groups(make, peaks_flop_per_s={"bf16": 1e15}, memory_bytes_per_s=1e12)
    assert big.intensity == pytest.approx(2e9 / 6e6)
    assert big.achieved_flop_per_s == pytest.approx(4e9 / 20e-6)
    assert (big.bound, big.roof_flop_per_s) == ("memory", pytest.approx(1e12 * 2e9 / 6e6))
    assert big.roof_fraction == pytest.approx(4e9 / 20e-6 / (1e12 * 2e9 / 6e6))
    assert thin.bound == "memory"
    assert (silu.bound, silu.roof_fraction) == ("memory", pytest.approx(4e6 / 4e-6 / 1e12))
    assert (lost.roof_fraction, lost.reason) == (None, "its FLOPs are not known")
    slow, *_ = groups(make, peaks_flop_per_s={"bf16": 3e14}, memory_bytes_per_s=1e12)
    assert (slow.bound, slow.roof_flop_per_s) == ("compute", 3e14)


def test_without_a_device_there_are_rates_and_no_fraction(make: Make) -> None:
    big, _, silu, lost = groups(make)
    assert big.achieved_flop_per_s == pytest.approx(2e14)
    assert silu.achieved_bytes_per_s == pytest.approx(1e12)
    assert [each.reason for each in (big, silu, lost)] == [
        "no device to compare with", "no device to compare with", "its FLOPs are not known",
    ]  # fmt: skip


def test_a_device_without_that_peak(make: Make) -> None:
    big, *_ = groups(make, peaks_flop_per_s={"fp16": 1e15}, memory_bytes_per_s=1e12)
    assert (big.roof_fraction, big.reason) == (None, "no peak of the device for bf16")


def test_nothing(make: Make) -> None:
    trace = make()
    assert roofline(trace, attribute(trace, np.zeros(0, dtype=np.uint8))) == ()


def test_every_second_and_every_flop_is_in_a_group(make: Make) -> None:
    trace = traced(make)
    found = attribute(trace, np.array([MATMUL, MATMUL, MATMUL, COMPUTE, MATMUL], dtype=np.uint8))
    rows = roofline(trace, found)
    assert sum(each.count for each in rows) == len(trace.work)
    assert sum(each.seconds for each in rows) == pytest.approx((trace.work.end_ns - trace.work.start_ns).sum() * 1e-9)
    assert sum(each.flops or 0 for each in rows) == pytest.approx(found.flops.sum())
