"""Graph replays: from the capture, by name and grid, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from suanli.explain.attribute import attribute
from suanli.explain.link import parents
from suanli.explain.replay import capture_operators, graph_launched
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.trace import OpDetail, Trace

Make = Callable[..., Trace]
MATMUL = int(WorkClass.MATMUL)
H = "c10::BFloat16"
MM = OpDetail(dims=((64, 32), (32, 8)), types=(H, H))
WIDE = OpDetail(dims=((64, 320), (320, 8)), types=(H, H))
GRID = OpDetail(kernel={"grid": (4, 1, 1), "block": (128, 1, 1)})
OTHER = OpDetail(kernel={"grid": (8, 1, 1), "block": (128, 1, 1)})
FLOPS = 2 * 64 * 32 * 8


def host(*ops: int) -> list[dict[str, Any]]:
    """Products outside a graph by their details, each with one launch; then the launch of a graph."""
    rows: list[dict[str, Any]] = []
    for i, detail in enumerate(ops):
        rows.append({"name": "aten::mm", "kind": "op", "start_ns": 100 * i, "end_ns": 100 * i + 90, "detail": detail})
        rows.append({"name": "cudaLaunchKernel", "start_ns": 100 * i + 10, "end_ns": 100 * i + 11})
    return [*rows, {"name": "cudaGraphLaunch", "start_ns": 5000, "end_ns": 5001}]


def kernel(launch: int, start: int, detail: int, name: str = "gemm", **more: Any) -> dict[str, Any]:
    return {"name": name, "start_ns": start, "end_ns": start + 10, "launch": launch, "detail": detail, **more}


def run(trace: Trace) -> Attribution:
    return attribute(trace, np.full(len(trace.work), MATMUL, dtype=np.uint8))


def test_an_equal_kernel_outside_the_graph_tells_and_is_flagged(make: Make) -> None:
    work = [kernel(1, 200, 2), kernel(2, 6000, 2), kernel(2, 6100, 3), kernel(2, 6200, 2, "other"), kernel(2, 6300, -1)]
    found = run(make(work, host(0), details=(MM, WIDE, GRID, OTHER)))
    assert found.flops.tolist() == [FLOPS, FLOPS, 0, 0, 0]  # another grid, another name, no grid: nothing claimed
    names = [found.formulas[at] if at >= 0 else None for at in found.formula]
    assert names == ["linear_flops", "linear_flops, matched by kernel name and grid", None, None, None]
    assert [found.dtypes[at] for at in found.dtype[:2]] == ["bf16", "bf16"]
    assert list(found.reasons) == ["graph replay: one launch for all kernels, and no operator"]


def test_equal_kernels_that_did_different_work_tell_nothing(make: Make) -> None:
    work = [kernel(1, 200, 2), kernel(3, 300, 2), kernel(4, 6000, 2)]
    found = run(make(work, host(0, 1), details=(MM, WIDE, GRID)))
    assert found.flops.tolist() == [FLOPS, 10 * FLOPS, 0]


def test_what_no_graph_launched_is_not_matched(make: Make) -> None:
    work = [kernel(1, 200, 2), kernel(-1, 6000, 2)]
    found = run(make(work, host(0), details=(MM, WIDE, GRID)))
    assert found.flops.tolist() == [FLOPS, 0]
    assert list(found.reasons) == ["not linked: launched before the window, or the launch was dropped"]


def captured(launches: int) -> list[dict[str, Any]]:
    """A capture of so many products, 64·32·8 and then ten times that, and the launch of its graph."""
    rows = [{"name": "cudaStreamBeginCapture", "start_ns": 0, "end_ns": 1}]
    for i in range(launches):
        rows.append({"name": "aten::mm", "kind": "op", "start_ns": 100 * i + 10, "end_ns": 100 * i + 90, "detail": i})
        rows.append({"name": "cudaLaunchKernel", "start_ns": 100 * i + 20, "end_ns": 100 * i + 21})
    rows.append({"name": "cudaStreamEndCapture", "start_ns": 900, "end_ns": 901})
    return [*rows, {"name": "cudaGraphLaunch", "start_ns": 5000, "end_ns": 5001}]


def test_the_capture_tells_by_the_order_of_the_nodes(make: Make) -> None:
    rows = captured(2)
    work = [kernel(6, 6000, -1, correlation=7, graph=1, graph_node=9),
            kernel(6, 6100, -1, correlation=7, graph=1, graph_node=8)]  # fmt: skip
    found = run(make(work, rows, details=(MM, WIDE)))
    assert found.flops.tolist() == [10 * FLOPS, FLOPS]  # node 8 was captured first
    assert [found.formulas[at] for at in found.formula] == ["linear_flops"] * 2


def test_each_replay_counts_for_itself(make: Make) -> None:
    rows = [*captured(2), {"name": "cudaGraphLaunch", "start_ns": 7000, "end_ns": 7001}]
    work = [kernel(6 + i // 2, 8000 + 100 * i, -1, correlation=7 + i // 2) for i in range(4)]
    assert run(make(work, rows, details=(MM, WIDE))).flops.sum() == 2 * 11 * FLOPS


def test_a_capture_of_another_size_tells_nothing(make: Make) -> None:
    trace = make([kernel(6, 6000, -1, correlation=7)], captured(2), details=(MM, WIDE))
    assert (capture_operators(trace, parents(trace.host)) == -1).all()


def test_a_graph_is_known_by_its_launch_or_its_number(make: Make) -> None:
    work = [kernel(2, 10, -1), kernel(1, 20, -1), kernel(-1, 30, -1, graph=3), kernel(-1, 40, -1)]
    assert graph_launched(make(work, host(0), details=(MM,))).tolist() == [True, False, True, False]
    assert graph_launched(make([kernel(-1, 10, -1)])).tolist() == [False]
