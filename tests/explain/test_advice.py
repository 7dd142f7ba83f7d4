"""Levers, their most, and what says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from suanli.explain.ops.call import NO_SHAPES
from suanli.explain.reasons import BEFORE, GRAPH
from suanli.explain.share import AT_REST, EAGER, SHAPES
from suanli.explain.whole import explain_trace
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.explained import Advice
from suanli.nouns.trace import OpDetail, Trace

Make = Callable[..., Trace]
Attribute = Callable[..., Attribution]
MATMUL, COMPUTE, COMM, PEER, COPY = (int(each) for each in WorkClass)
H100_BF16, H100_FP32 = 989.4e12, 67e12


def levers(trace: Trace, attribution: Attribution | None = None) -> dict[str, Advice]:
    given = None if attribution is None else (lambda _trace, _classes: attribution)
    return {each.lever: each for each in explain_trace(trace, given).advice}


def row(start: int, end: int, name: str = "add", **more: Any) -> dict[str, Any]:
    return {"start_ns": start, "end_ns": end, "name": name, **more}


def test_exposed_communication(make: Make) -> None:
    # 0..1000 all-reduce, 800..1000 compute beside it: 800 exposed of 1000
    found = levers(make([row(0, 1000, "ncclDevKernel_AllReduce_Sum"), row(800, 1000, "add", stream=8)]))
    lever = found["overlap communication with compute"]
    assert lever.seconds == pytest.approx(800e-9)
    assert lever.fraction == pytest.approx(0.8)
    assert lever.evidence == "all-reduce: 1 call, 80% of its time without compute beside it"


def test_the_host(make: Make) -> None:
    host = [row(0, 5, "cudaLaunchKernel"), row(600, 605, "cudaLaunchKernel")]
    lever = levers(make([row(10, 110, launch=0), row(700, 800, launch=1)], host))[
        "fewer launches: CUDA graphs, torch.compile, fused optimizers"
    ]
    assert lever.seconds == pytest.approx(590e-9)
    assert lever.evidence == (
        "1 time the device ran dry before the next launch came; the median piece of work takes 0.1 µs, "
        "0% of the work is replayed from graphs"
    )


def test_synchronisation_and_allocation_are_different_levers(make: Make) -> None:
    work = [row(10, 110, launch=0), row(700, 800, launch=1)]
    host = [row(0, 5, "cudaLaunchKernel"), row(600, 605, "cudaLaunchKernel")]
    found = levers(make(work, [*host, row(50, 500, "cudaStreamSynchronize")]))
    lever = found["no waiting for the device: .item(), .cpu(), prints of the loss, blocking copies"]
    assert lever.seconds == pytest.approx(390e-9)
    assert lever.evidence == "the host was inside cudaStreamSynchronize (1 call)"
    found = levers(make(work, [*host, row(50, 500, "cudaFree")]))
    assert "no allocation in the step: keep the caching allocator on, and memory below its limit" in found


def test_data(make: Make) -> None:
    host = [row(0, 5, "cudaLaunchKernel"), row(600, 605, "cudaLaunchKernel"), row(120, 590, "data_wait", kind="mark")]
    found = levers(make([row(10, 110, launch=0), row(700, 800, launch=1)], host))
    assert found["feed data sooner: more loader workers, prefetching, pinned memory"].seconds == pytest.approx(470e-9)


def test_copies_from_pageable_memory_stand_apart(make: Make) -> None:
    work = [
        row(0, 100, "Memcpy HtoD (Pageable -> Device)", kind="copy"),
        row(100, 130, "Memcpy HtoD (Pinned -> Device)", kind="copy"),
    ]
    found = levers(make(work))
    pinned = found["copy from pinned memory, with non_blocking=True"]
    assert pinned.seconds == pytest.approx(100e-9)
    assert pinned.evidence == "1 copy from or to pageable memory"
    assert found["fewer copies, or on a stream of their own"].seconds == pytest.approx(30e-9)


def test_kernels_that_copy_are_counted_as_copies(make: Make) -> None:
    work = [row(0, 100, "__amd_rocclr_copyBuffer"), row(100, 130, "Memset (Device)", kind="set")]
    assert levers(make(work))["fewer copies, or on a stream of their own"].evidence == "2 copies and sets"


def test_products_in_wide_dtypes(make: Make, attribute: Attribute) -> None:
    # 20 µs of fp32 at half its peak: 10 µs × 67 TFLOP/s; in bf16 at the peak that would take 0.68 µs
    flops = 10e-6 * H100_FP32
    found = levers(make([row(0, 20_000, "ampere_sgemm_128x64_nn")]), attribute([MATMUL], [flops], ["fp32"]))
    assert found["products in bf16"].seconds == pytest.approx(20e-6 - flops / H100_BF16)
    assert found["products in bf16"].evidence == "1 product in fp32, 100% of the time"
    lever = found["larger products, with sizes that fill tiles and waves"]
    assert lever.seconds == pytest.approx(10e-6)
    assert lever.evidence == "ampere_sgemm_128x64_nn reaches 50% of the fp32 peak in 1 run, 100% of the time"


def test_the_last_wave(make: Make, attribute: Attribute) -> None:
    # 133 blocks on 132 multiprocessors: 1 - 133/264 of the time
    trace = make([row(0, 1000, "gemm", detail=0)], details=(OpDetail(kernel={"grid": (133, 1, 1)}),))
    lever = levers(trace)["product sizes that fill the last wave"]
    assert lever.seconds == pytest.approx(1000e-9 * (1 - 133 / 264))
    assert lever.evidence == "in 1 product the last wave of blocks leaves multiprocessors empty, at one block each"


def test_recompute_returns_all_its_kernels(make: Make, attribute: Attribute) -> None:
    attribution = attribute([MATMUL, COMPUTE], [1000.0, None], ["bf16", None], recompute=[0, 1])
    lever = levers(make([row(0, 100, "gemm"), row(100, 150)]), attribution)["recompute less, where memory allows"]
    assert lever.seconds == pytest.approx(150e-9)
    assert lever.evidence == "2 kernels run forward work once more for the backward pass"


@pytest.mark.parametrize(
    ("reasons", "lever", "why"),
    [
        ({NO_SHAPES: 100e-9}, SHAPES, "100%"),
        ({GRAPH: 100e-9}, EAGER, "100%"),
        ({BEFORE: 60e-9, "no formula for aten::x": 40e-9}, AT_REST, "60%"),  # nothing to switch on for the rest
    ],
)
def test_better_figures(make: Make, attribute: Attribute, reasons: dict[str, float], lever: str, why: str) -> None:
    attribution = replace(attribute([MATMUL], [None], [None]), reasons=reasons)
    found = levers(make([row(0, 100, "gemm")]), attribution)[lever.rstrip(".")]
    assert (found.seconds, found.fraction) == (None, None)
    assert found.evidence == f"attributed 0% of matmul time; {why} of it lacks this"


def test_the_switch_that_returns_most_comes_first(make: Make, attribute: Attribute) -> None:
    attribution = replace(attribute([MATMUL], [None], [None]), reasons={GRAPH: 30e-9, NO_SHAPES: 70e-9})
    assert list(levers(make([row(0, 100, "gemm")]), attribution))[-2:] == [SHAPES.rstrip("."), EAGER.rstrip(".")]


def test_nothing_to_switch_on_where_all_is_known(make: Make, attribute: Attribute) -> None:
    found = levers(make([row(0, 100, "gemm")]), attribute([MATMUL], [1.0], ["bf16"]))
    assert [each for each in found.values() if each.seconds is None] == []


def test_the_most_comes_first_and_trifles_are_left_out(make: Make) -> None:
    work = [row(0, 1000, "ncclDevKernel_AllReduce"), row(1000, 1400), row(1400, 1403, "Memset (Device)", kind="set")]
    found = explain_trace(make(work)).advice
    assert [each.lever[:8] for each in found] == ["overlap ", "fuse ker"]
    assert list(found) == sorted(found, key=lambda each: -(each.seconds or 0))


def test_an_empty_trace_has_no_advice(make: Make) -> None:
    assert explain_trace(make()).advice == ()


def test_work_that_was_launched_and_could_not_start(make: Make) -> None:
    host = [row(0, 5, "cudaLaunchKernel"), row(20, 25, "cudaLaunchKernel")]
    lever = levers(make([row(10, 110, launch=0), row(700, 800, "late", launch=1)], host))[
        "let launched work start: events between streams, other ranks, order in the graph"
    ]
    assert lever.seconds == pytest.approx(590e-9)
    assert lever.evidence == "the longest wait, 0.6 µs, is before late"
