"""Bugs that others reported of their tools, as rows: what goes in, and what is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.explain import account as a
from suanli.explain.idle import QUEUED
from suanli.explain.whole import explain_trace
from suanli.nouns.explained import DeviceAccount
from suanli.nouns.trace import CollectiveCall, Trace

Make = Callable[..., Trace]
NS = 1e-9


def device(trace: Trace) -> DeviceAccount:
    (found,) = explain_trace(trace).devices
    return found


def row(start: int, end: int, name: str = "add", **more: Any) -> dict[str, Any]:
    return {"start_ns": start, "end_ns": end, "name": name, **more}


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",  # HTA #122, #208, #247, #109
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "rcclDevKernel_Generic(ncclDevKernelArgs)",
        "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)",  # DeepSeek's own trace: no communication elsewhere
        "_ZN7deep_ep9intranode7combineI13__nv_bfloat16Li8EEEvPT_",
        "void deep_ep::intranode::notify_dispatch<8>(int const*)",
        "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "nvshmemi_transfer_barrier_kernel",
        "one_shot_all_reduce_kernel",
        "two_shot_all_reduce_kernel",
        "void c10d::symmetric_memory::multimem_one_shot_all_reduce_kernel<c10::BFloat16>(int)",
    ],
)
def test_communication_is_never_compute_and_never_nan(make: Make, name: str) -> None:
    found = device(make([row(0, 100, name), row(50, 100, stream=8)])).usage
    assert (found.communication_s, found.exposed_communication_s) == pytest.approx((100 * NS, 50 * NS))
    assert found.overlapped_fraction == pytest.approx(0.5)


def test_without_communication_there_is_no_share_of_it(make: Make) -> None:
    found = explain_trace(make([row(0, 100)]))  # HTA: NaN
    assert found.devices[0].usage.overlapped_fraction is None
    assert found.devices[0].reasons["overlapped_fraction"] == "no communication"
    assert found.collectives == ()
    (some,) = explain_trace(make([row(0, 100), row(0, 50, "ncclDevKernel_A", stream=8)])).devices
    assert "overlapped_fraction" not in some.reasons


def test_the_arguments_of_a_collective_go_before_its_name(make: Make) -> None:
    # HTA #360: a new name of the kernel, and no communication is found
    trace = make([row(0, 100, "brand_new_kernel", collective=0)], collectives=(CollectiveCall(name="allreduce"),))
    assert device(trace).usage.communication_s == pytest.approx(100 * NS)


def test_communication_counts_once_where_two_of_it_run(make: Make) -> None:
    # nsys-ai #246, #247, #252: exposed communication counted twice, or lost
    work = [row(0, 100, "ncclDevKernel_A"), row(50, 150, "ncclDevKernel_B", stream=8), row(0, 30, stream=9)]
    found = explain_trace(make(work))
    assert found.devices[0].usage.exposed_communication_s == pytest.approx(120 * NS)
    assert sum(each.exposed_s for each in found.collectives) == pytest.approx(120 * NS)


def test_unlinked_kernels_count(make: Make) -> None:
    # TraceLens #106, #108: 59 % idle where it is 3.7 %
    host = [row(0, 5, "cudaLaunchKernel")]
    found = device(make([row(10, 20, launch=0), row(20, 110)], host))
    assert found.usage.idle_s == 0
    assert found.unlinked == 1


def test_impossible_durations_do_not_fill_the_trace(make: Make) -> None:
    # TraceLens #669, Hyperloom #1116: 7 of 55,423 events held 62 % of the time
    work = [row(10_000 * k, 10_000 * k + 9_000) for k in range(200)]
    work[50] = row(500_000, 500_000 + 10**9)
    found = explain_trace(make(work))
    assert found.peak_s == pytest.approx(1_999_000 * NS)
    assert [each.code for each in found.warnings] == ["impossible-duration", "unlinked-work"]


def test_graphs_without_kernels_are_said(make: Make) -> None:
    # TraceLens #728, Hyperloom #1047: 26 % and 99 % idle under HIP graphs
    host = [row(1000 * k, 1000 * k + 5, "hipGraphLaunch") for k in range(3)]
    found = explain_trace(make([row(10, 20, launch=0), row(2500, 2600, launch=2)], host))
    assert [each.message[:48] for each in found.warnings] == ["trace incomplete: 3 graph launches, 2 kernels of"]


def test_kernels_of_graphs_stay_in_the_summary(make: Make) -> None:
    # TraceLens #827, Hyperloom #946, HTA #290
    host = [row(0, 5, "cudaGraphLaunch")]
    found = explain_trace(make([row(10, 20, "gemm", launch=0), row(25, 30, "norm", launch=0)], host))
    assert {each.name for each in found.kernels} == {"gemm", "norm"}
    assert (found.graphs[0].launches, found.graphs[0].work, found.graphs[0].kernels) == (1, 2, ("gemm", "norm"))
    # what of the graph waits for the graph is not the host's fault
    assert found.devices[0].account.seconds(QUEUED) == pytest.approx(5 * NS)


def test_kernels_that_overlap_on_a_stream_are_kept(make: Make) -> None:
    # perfetto #4280, #6284: programmatic launches overlap, and kernels vanish
    found = explain_trace(make([row(0, 5000, "one"), row(3000, 9000, "two")]))
    assert {each.name: each.count for each in found.kernels} == {"one": 1, "two": 1}
    assert found.devices[0].usage.busy_s == pytest.approx(9000 * NS)


def test_copies_are_copies(make: Make) -> None:
    # HTA tests ^hip as communication before memory, so that hipMemcpy becomes communication
    found = device(make([row(0, 100, "hipMemcpyAsync")]))
    assert found.account.seconds(a.COPIES) == pytest.approx(100 * NS)
    assert found.usage.communication_s == 0
