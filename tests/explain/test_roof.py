"""The roof of a kernel, figure by figure."""

from __future__ import annotations

import pytest

from suanli.explain.roof import ABOVE, CACHED, NOT_MEMORY, Roof, roof_of
from suanli.nouns.attribution import WorkClass

MATMUL, COMPUTE = WorkClass.MATMUL, WorkClass.COMPUTE
PEAKS, MEMORY = {"bf16": 1e15}, 1e12  # they meet at 1000 FLOPs a byte


@pytest.mark.parametrize(
    ("flops", "moved", "bound", "roof", "fraction"),
    [
        (4e12, 1e9, "compute", 1e15, 0.4),  # 4000 FLOPs a byte: the peak; 4e12 in 10 ms is 0.4e15
        (1e12, 5e9, "memory", 2e14, 0.5),  # 200 FLOPs a byte: 200 × 1e12; 1e14 of 2e14
        (1e12, None, "compute", 1e15, 0.1),  # no bytes: the peak alone
    ],
)
def test_a_product_stands_against_the_lower_roof(
    flops: float, moved: float | None, bound: str, roof: float, fraction: float
) -> None:
    found = roof_of(MATMUL, "bf16", 0.01, flops, moved, PEAKS, MEMORY)
    assert (found.bound, found.roof_flop_per_s, found.reason) == (bound, pytest.approx(roof), None)
    assert found.roof_fraction == pytest.approx(fraction)
    assert found.achieved_flop_per_s == pytest.approx(flops / 0.01)


def test_bytes_of_other_runs_make_no_ratio() -> None:
    found = roof_of(MATMUL, "bf16", 0.01, 1e12, 5e9, PEAKS, MEMORY, bytes_s=0.005, alike=False)
    assert (found.intensity, found.bound) == (None, "compute")
    assert found.achieved_bytes_per_s == pytest.approx(1e12)  # 5e9 in 5 ms


def test_other_kernels_stand_against_memory() -> None:
    found = roof_of(COMPUTE, None, 0.01, None, 4e9, PEAKS, MEMORY)
    assert (found.roof_fraction, found.bound, found.roof_flop_per_s) == (pytest.approx(0.4), "memory", None)


@pytest.mark.parametrize(
    ("work_class", "dtype", "flops", "moved", "peaks", "memory", "reason"),
    [
        (MATMUL, "bf16", None, 1e9, PEAKS, MEMORY, "its FLOPs are not known"),
        (MATMUL, "fp8", 1e12, None, PEAKS, MEMORY, "no peak of the device for fp8"),
        (MATMUL, "bf16", 1e12, None, {}, None, "no device to compare with"),
        (MATMUL, "bf16", 2e13, None, PEAKS, MEMORY, ABOVE),  # 2e15 FLOP/s of 1e15
        (MATMUL, "bf16", 1e12, 5e10, PEAKS, MEMORY, CACHED),  # 5e12 B/s of 1e12, below the peak
        (MATMUL, "bf16", 0.0, 1e9, PEAKS, MEMORY, "nothing is multiplied"),
        (COMPUTE, None, None, None, PEAKS, MEMORY, "its bytes are not known"),
        (COMPUTE, None, None, 1e9, PEAKS, None, "no device to compare with"),
        (COMPUTE, None, None, 2e10, PEAKS, MEMORY, CACHED),
        (WorkClass.COPY, None, None, 1e9, PEAKS, MEMORY, NOT_MEMORY),
        (WorkClass.COMMUNICATION, None, None, 1e9, PEAKS, MEMORY, NOT_MEMORY),
    ],
)
def test_without_a_fraction_there_is_a_reason(
    work_class: WorkClass, dtype: str | None, flops: float | None, moved: float | None, peaks: dict[str, float],
    memory: float | None, reason: str,
) -> None:  # fmt: skip
    found = roof_of(work_class, dtype, 0.01, flops, moved, peaks, memory)
    assert (found.roof_fraction, found.reason) == (None, reason)


def test_no_time_has_no_rate() -> None:
    assert roof_of(MATMUL, "bf16", 0.0, 1e12, 1e9, PEAKS, MEMORY) == Roof(
        intensity=1000.0, reason="its FLOPs are not known"
    )
