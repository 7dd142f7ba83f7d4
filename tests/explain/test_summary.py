"""One trace as a summary: its columns row by row, and what is said beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from suanli.explain.summary import host_of, summary_of
from suanli.nouns.summary import COLUMNS, SCHEMA, WORDS, RankSummary
from suanli.nouns.trace import CollectiveCall, Trace, TraceDevice
from suanli.version import VERSION

Make = Callable[..., Trace]
REDUCE = {"name": "allreduce", "group": "0", "group_label": "dp", "dtype": "BFloat16", "in_elements": 8}
GEMM, NCCL = "sm90_xmma_gemm_bf16", "ncclDevKernel_AllReduce"


def calls(*said: dict[str, Any]) -> tuple[CollectiveCall, ...]:
    return tuple(CollectiveCall(**each) for each in said)


def row(at: int, name: str = NCCL, collective: int = -1, **more: Any) -> dict[str, Any]:
    return {"start_ns": at, "end_ns": at + 10, "name": name, "collective": collective, **more}


def column(summary: RankSummary, name: str) -> list[Any]:
    return summary.texts(name) if name in WORDS else summary.columns[name].tolist()


def test_rows(make: Make) -> None:
    trace = make(
        [row(0, GEMM), row(20, collective=0), row(40, "Memcpy HtoD", kind="copy", device=1)],
        collectives=calls({**REDUCE, "ranks": (0, 2), "group_size": 2, "out_elements": 8, "sequence": 5}),
        rank=3, world_size=8,
    )  # fmt: skip
    found = summary_of(trace)
    expected = {
        "device": [0, 0, 1], "start_ns": [0, 20, 40], "duration_ns": [10, 10, 10],
        "name": [GEMM, NCCL, "Memcpy HtoD"], "work_class": ["matmul", "communication", "copy"],
        "collective": [None, "all-reduce", None], "call": [None, "allreduce", None], "group": [None, "0", None],
        "group_label": [None, "dp", None], "members": [None, "0,2", None], "group_size": [-1, 2, -1],
        "sequence": [-1, 5, -1], "nth": [-1, 0, -1], "bytes": [-1, 16, -1], "in_bytes": [-1, 16, -1],
        "out_bytes": [-1, 16, -1], "peer": [-1, -1, -1],
    }  # fmt: skip
    assert {name: column(found, name) for name in expected} == expected
    assert np.isnan(found.columns["flops"]).all()  # nothing says what the product was
    assert list(found.columns) == list(COLUMNS)


def test_what_is_said_beside(make: Make) -> None:
    trace = make([row(0, GEMM)], rank=3, world_size=8, path="x/node7_12.345.pt.trace.json")
    about = summary_of(trace, digest="d", size_bytes=10, mtime_ns=20).about
    assert (about.schema, about.version, about.rank, about.world_size) == (SCHEMA, VERSION, 3, 8)
    assert (about.host, about.digest, about.size_bytes, about.mtime_ns) == ("node7", "d", 10, 20)
    assert about.links == {0: 900e9}  # H100 SXM: NVLink 900 GB/s, both directions
    assert about.devices[0].catalogue == "h100-sxm" and about.devices[0].work == 1


def test_a_named_gpu_stands_above_the_file(make: Make) -> None:
    from suanli.catalog.devices import find_device

    about = summary_of(make([row(0, GEMM)]), find_device("a100-80gb-sxm")).about
    assert (about.gpu, about.devices[0].catalogue, about.links[0]) == ("a100-80gb-sxm", "a100-80gb-sxm", 600e9)


@pytest.mark.parametrize(
    ("rows", "said", "nth"),
    [
        # without numbers: the order within group and name
        ([row(0, collective=0), row(20, collective=0), row(40, collective=1)], [REDUCE, {**REDUCE, "group": "1"}],
         [0, 1, 0]),
        # with numbers: the order within one number
        ([row(0, collective=0), row(20, collective=1), row(40, collective=1)],
         [{**REDUCE, "sequence": 1}, {**REDUCE, "sequence": 2}], [0, 0, 1]),
        # sends to different peers each count for themselves; their numbers do not matter
        ([row(0, collective=0), row(20, collective=1), row(40, collective=2)],
         [{"name": "send", "group": "p", "peer": 1, "sequence": 1},
          {"name": "send", "group": "p", "peer": 2, "sequence": 2},
          {"name": "send", "group": "p", "peer": 1, "sequence": 3}], [0, 0, 1]),
        # another device counts for itself
        ([row(0, collective=0), row(20, collective=0, device=1)], [REDUCE], [0, 0]),
        # kernels that nothing is said of: by the name of the kernel
        ([row(0), row(20), row(40, "ncclDevKernel_AllGather")], [], [0, 1, 0]),
    ],
)  # fmt: skip
def test_the_nth_call(make: Make, rows: list[dict[str, Any]], said: list[dict[str, Any]], nth: list[int]) -> None:
    devices = tuple(TraceDevice(id=place, name="NVIDIA H100 80GB HBM3") for place in (0, 1))
    assert summary_of(make(rows, collectives=calls(*said), devices=devices)).columns["nth"].tolist() == nth


def test_the_nth_call_of_a_step(make: Make) -> None:
    marks = [
        {"start_ns": 100 * k, "end_ns": 100 * k + 90, "name": f"ProfilerStep#{k}", "kind": "mark"} for k in range(2)
    ]
    found = summary_of(make([row(10), row(30), row(110), row(130)], marks))
    assert column(found, "step") == ["ProfilerStep#0"] * 2 + ["ProfilerStep#1"] * 2
    assert found.columns["nth"].tolist() == [0, 1, 0, 1]
    assert [(each.name, each.device) for each in found.about.steps] == [("ProfilerStep#0", 0), ("ProfilerStep#1", 0)]
    # from the first start of a step's work to that of the next; 20 of 100 ns communicate, none computes
    first = found.about.steps[0]
    assert (first.seconds, first.communication_s, first.compute_s) == pytest.approx((100e-9, 20e-9, 0))


def test_impossible_durations_are_cut(make: Make) -> None:
    rows = [{"start_ns": 0, "end_ns": 10**9, "name": GEMM}, {"start_ns": 1000, "end_ns": 2000, "name": GEMM}]
    found = summary_of(make(rows))
    assert found.columns["duration_ns"].tolist() == [1000, 1000]
    assert [each.code for each in found.about.warnings][:1] == ["impossible-duration"]


def test_a_trace_without_work(make: Make) -> None:
    found = summary_of(make([]))
    assert len(found) == 0 and found.about.devices == ()
    assert found.about.warnings[0].code == "no-device-work"


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("a/gpu-node-03_4711.1699999999.pt.trace.json.gz", "gpu-node-03"),
        ("worker_a_1.2.pt.trace.json", "worker_a"),
        ("rank0.json", None),
        ("trace.pt.trace.json", None),
    ],
)
def test_the_host_that_a_name_tells(path: str, host: str | None) -> None:
    assert host_of(path) == host
