"""Kernels by name: time owned, FLOPs, the part of their peak."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from suanli.explain.account import ideal_of
from suanli.explain.kernels import kernels, owned_s
from suanli.explain.sweep import Pieces
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.explained import KernelRow
from suanli.nouns.trace import Trace

MATMUL, COMPUTE, COMM, PEER, COPY = (int(each) for each in WorkClass)
PEAKS = {"bf16": 1e12}  # 1000 FLOPs a nanosecond


def found(trace: Trace, classes: list[int], attribution: Attribution | None) -> tuple[KernelRow, ...]:
    work = trace.work
    kinds = np.array(classes, dtype=np.uint8)
    pieces = Pieces(np.arange(len(work)), work.start_ns, work.end_ns, np.zeros(len(work), dtype=np.int64))
    ideal = ideal_of(work, kinds, attribution, PEAKS, None)
    rows = kernels(trace, kinds, pieces, owned_s(pieces, ideal), attribution, PEAKS, 0)
    assert sum(row.owned_s for row in rows) == pytest.approx(owned_s(pieces, ideal).sum())
    return rows


def test_figures_of_a_product(make: Callable[..., Trace], attribute: Callable[..., Attribution]) -> None:
    # 50,000 + 30,000 FLOPs in 200 ns: 400 GFLOP/s of 1 TFLOP/s; the third run is not attributed
    work = [{"name": "gemm", "start_ns": 100 * k, "end_ns": 100 * k + 100} for k in range(3)]
    (row,) = found(make(work), [0, 0, 0], attribute([0, 0, 0], [50_000, 30_000, None], ["bf16", "bf16", None]))
    assert (row.count, row.kind, row.flops, row.dtype) == (3, "matmul", 80_000, "bf16")
    assert row.achieved_flop_per_s == pytest.approx(400e9)
    assert row.peak_fraction == pytest.approx(0.4)
    assert row.total_s == pytest.approx(300e-9)
    assert (row.fraction, row.unlinked) == (1.0, 3)
    assert row.bytes is row.achieved_bytes_per_s is None


def test_a_utilisation_over_100_percent_is_not_given(
    make: Callable[..., Trace], attribute: Callable[..., Attribution]
) -> None:
    work = [{"name": "gemm", "start_ns": 0, "end_ns": 100}]
    (row,) = found(make(work), [0], attribute([0], [200_000], ["bf16"]))
    assert row.peak_fraction is None
    assert row.flops == 200_000


def test_time_owned_is_what_nothing_of_a_higher_class_has(make: Callable[..., Trace]) -> None:
    # a copy 0..100, a kernel 40..60: the copy owns 80 of its 100
    work = [
        {"name": "Memcpy HtoD", "kind": "copy", "start_ns": 0, "end_ns": 100},
        {"name": "add", "start_ns": 40, "end_ns": 60, "stream": 8},
    ]
    first, second = found(make(work), [COPY, COMPUTE], None)
    assert (first.name, round(first.owned_s * 1e9), round(first.total_s * 1e9)) == ("Memcpy HtoD", 80, 100)
    assert (second.name, round(second.owned_s * 1e9), second.fraction) == ("add", 20, pytest.approx(0.2))


def test_products_of_two_streams_share_what_they_own(
    make: Callable[..., Trace], attribute: Callable[..., Attribution]
) -> None:
    work = [
        {"name": "one", "start_ns": 0, "end_ns": 100},
        {"name": "other", "start_ns": 0, "end_ns": 100, "stream": 8},
    ]
    first, second = found(make(work), [0, 0], attribute([0, 0], [1000, 1000], ["bf16", "bf16"]))
    assert first.owned_s == second.owned_s == pytest.approx(50e-9)


def test_one_name_in_two_classes_is_two_rows(make: Callable[..., Trace]) -> None:
    work = [{"name": "x", "start_ns": 10 * k, "end_ns": 10 * k + 5} for k in range(2)]
    assert {row.kind for row in found(make(work), [COMPUTE, COMM], None)} == {"compute", "communication"}


def test_no_work_no_rows(make: Callable[..., Trace]) -> None:
    assert found(make(), [], None) == ()
