"""Collectives by kind and group: bytes, rates, what of them is exposed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from suanli.explain.classify import classify
from suanli.explain.communication import collective_of, collectives, element_bytes, tensor_bytes
from suanli.explain.sweep import Pieces
from suanli.nouns.explained import CollectiveRow
from suanli.nouns.trace import CollectiveCall, Trace


def rows_of(trace: Trace) -> tuple[CollectiveRow, ...]:
    work = trace.work
    pieces = Pieces(np.arange(len(work)), work.start_ns, work.end_ns, np.zeros(len(work), dtype=np.int64))
    return collectives(trace, classify(trace), pieces, 0)


def call(name: str, **more: Any) -> CollectiveCall:
    return CollectiveCall(**{"name": name, "group": "1", "group_size": 8, "dtype": "BFloat16", **more})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("allreduce", "all-reduce"), ("_allgather_base", "all-gather"), ("_reduce_scatter_base", "reduce-scatter"),
        ("all_to_allv", "all-to-all"), ("alltoall_base", "all-to-all"), ("broadcast", "broadcast"),
        ("send", "send and receive"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all-reduce"),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_float(ncclDevComm*)", "reduce-scatter"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "send and receive"),
        ("void deep_ep::intranode::dispatch<8, 768>(int4*)", "dispatch"),
        ("void deep_ep::intranode::combine<8, 768>(int4*)", "combine"),
        ("void vllm::cross_device_reduce_2stage<float, 8>(int)", "all-reduce"),
        ("collective-permute.3", "send and receive"), ("ncclDevKernel_Generic(x)", "ncclDevKernel_Generic(x)"),
    ],
)  # fmt: skip
def test_one_spelling(name: str, expected: str) -> None:
    assert collective_of(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("BFloat16", 2), ("Float", 4), ("c10::Half", 2), ("Long", 8), ("Float8_e4m3fn", 1), ("", None)],
)
def test_bytes_of_elements(name: str, expected: int | None) -> None:
    assert element_bytes(name) == expected
    assert element_bytes(None) is None


@pytest.mark.parametrize(
    ("made", "collective", "expected"),
    [
        (call("allreduce", in_elements=100, out_elements=100), "all-reduce", 200),  # 100 × 2 bytes
        (call("_allgather_base", in_elements=100, out_elements=800), "all-gather", 1600),  # what comes out
        (call("_reduce_scatter_base", in_elements=800, out_elements=100), "reduce-scatter", 1600),  # what goes in
        (call("send", in_elements=50, dtype="Float"), "send and receive", 200),
        (call("allreduce", message_bytes=4096), "all-reduce", 4096),  # NCCL's own payload
        (call("allreduce"), "all-reduce", None),
        (call("allreduce", in_elements=4, dtype="Quaternion"), "all-reduce", None),
    ],
)
def test_bytes_of_the_whole_tensor(made: CollectiveCall, collective: str, expected: int | None) -> None:
    assert tensor_bytes(made, collective) == expected


def test_rates_as_nccl_tests_has_them(make: Callable[..., Trace]) -> None:
    # 8 MB in 1 ms and in 3 ms: algbw = 16 MB / 4 ms = 4 GB/s; busbw = 4 × 2 × 7/8 = 7 GB/s
    trace = make(
        [
            {"start_ns": 0, "end_ns": 1_000_000, "name": "ncclDevKernel_AllReduce", "collective": 0},
            {"start_ns": 2_000_000, "end_ns": 5_000_000, "name": "ncclDevKernel_AllReduce", "collective": 0},
        ],
        collectives=(call("allreduce", in_elements=4_000_000),),
    )
    (row,) = rows_of(trace)
    assert (row.count, row.bytes, row.group, row.group_size) == (2, 16_000_000, "1", 8)
    assert row.algbw_bytes_per_s == pytest.approx(4e9)
    assert row.busbw_bytes_per_s == pytest.approx(7e9)
    assert row.formula == "algbw = S/t, S in; busbw = algbw·2(n−1)/n"


def test_a_message_goes_over_the_link_once(make: Callable[..., Trace]) -> None:
    work = [{"start_ns": 0, "end_ns": 1000, "name": "ncclDevKernel_SendRecv", "collective": 0}]
    (row,) = rows_of(make(work, collectives=(call("send", message_bytes=2000),)))
    assert row.algbw_bytes_per_s == row.busbw_bytes_per_s == pytest.approx(2e9)  # 2000 B / 1 µs


def test_exposed_and_overlapped_add_up_over_collectives(make: Callable[..., Trace]) -> None:
    # all-reduce 0..100, all-gather 50..150, compute 80..120, a copy over all of it, which hides nothing
    trace = make(
        [
            {"start_ns": 0, "end_ns": 100, "name": "ncclDevKernel_AllReduce_Sum"},
            {"start_ns": 0, "end_ns": 150, "name": "Memcpy HtoD", "kind": "copy", "stream": 1},
            {"start_ns": 50, "end_ns": 150, "name": "ncclDevKernel_AllGather", "stream": 2},
            {"start_ns": 80, "end_ns": 120, "name": "add", "stream": 3},
        ]
    )
    first, second = rows_of(trace)
    assert (first.collective, second.collective) == ("all-reduce", "all-gather")
    # the all-reduce has 0..100, the all-gather what is left, 100..150; exposed 0..80 and 120..150
    ns = [[round(s * 1e9) for s in (r.total_s, r.union_s, r.overlapped_s, r.exposed_s)] for r in (first, second)]
    assert ns == [[100, 100, 20, 80], [100, 50, 20, 30]]


def test_groups_stand_apart_and_are_named_as_in_the_file(make: Callable[..., Trace]) -> None:
    calls = (
        call("allreduce", group="0", group_label="default_pg", group_size=None, ranks=(0, 1, 2, 3)),
        call("allreduce", group="5", group_size=None),
        call("allreduce", group="7", group_size=None),
    )
    work = [{"start_ns": 10 * k, "end_ns": 10 * k + 5, "name": "nccl", "collective": k} for k in range(3)]
    found = {row.group: row.group_size for row in rows_of(make(work, collectives=calls, groups={"5": (0, 8)}))}
    assert found == {"0 (default_pg)": 4, "5": 2, "7": None}


def test_what_is_not_said_is_none_with_the_reason(make: Callable[..., Trace]) -> None:
    work = [{"start_ns": 0, "end_ns": 10, "name": "ncclDevKernel_AllReduce"}]
    (row,) = rows_of(make(work))
    assert row.bytes is row.algbw_bytes_per_s is row.busbw_bytes_per_s is None
    assert row.reasons["algbw_bytes_per_s"] == "the file does not say the size of every call"
    calls = (call("allreduce", in_elements=8, group_size=None),)
    (row,) = rows_of(make([{**work[0], "collective": 0}], collectives=calls))
    assert row.algbw_bytes_per_s == pytest.approx(1.6e9)  # 16 B / 10 ns
    assert row.reasons == {"busbw_bytes_per_s": "the file does not say the size of the group"}


def test_no_communication_no_rows(make: Callable[..., Trace]) -> None:
    assert rows_of(make([{"start_ns": 0, "end_ns": 1}])) == ()


def test_a_rate_above_the_link_is_flagged(make: Callable[..., Trace]) -> None:
    # nccl-tests #312: reduction in the switch can pass the link; 1 MB in 1 µs is 1 TB/s, 1.75 TB/s of bus bandwidth
    work = [{"start_ns": 0, "end_ns": 1000, "name": "nccl", "collective": 0}]
    trace = make(work, collectives=(call("allreduce", in_elements=500_000),))
    pieces = Pieces(np.arange(1), trace.work.start_ns, trace.work.end_ns, np.zeros(1, dtype=np.int64))
    rows = [collectives(trace, classify(trace), pieces, 0, link)[0].above_link for link in (900e9, 4e12, None)]
    assert rows == [True, False, None]
