"""Replays of graphs, and launches whose kernels the file lacks."""

from __future__ import annotations

from collections.abc import Callable

from suanli.explain.graphs import graphs, incomplete, replayed
from suanli.nouns.trace import Trace

LAUNCHES = [{"name": "cudaGraphLaunch", "start_ns": 10 * k, "end_ns": 10 * k + 5} for k in range(3)]


def test_kernels_of_one_launch_are_one_group(make: Callable[..., Trace]) -> None:
    work = [
        {"name": name, "start_ns": 100 * k + at, "end_ns": 100 * k + at + length, "launch": k, "graph": 4}
        for k in range(2)
        for name, at, length in (("gemm", 0, 30), ("norm", 40, 10))
    ]
    eager = {"name": "eager", "start_ns": 900, "end_ns": 910}
    trace = make([*work, eager], LAUNCHES[:2])
    (found,) = graphs(trace)
    assert (found.graph, found.launches, found.work, found.total_s) == (4, 2, 4, 80e-9)
    assert found.kernels == ("gemm", "norm")
    assert replayed(trace).tolist() == [True, True, True, True, False]
    assert incomplete(trace) is None


def test_without_a_number_the_launch_tells_a_replay(make: Callable[..., Trace]) -> None:
    work = [{"name": "a", "start_ns": 20, "end_ns": 30, "launch": 0}]
    (found,) = graphs(make(work, [{"name": "hipGraphLaunch", "start_ns": 0, "end_ns": 1}]))
    assert (found.graph, found.launches, found.work) == (None, 1, 1)


def test_launches_without_kernels_are_said_and_not_called_idle_alone(make: Callable[..., Trace]) -> None:
    trace = make([{"name": "a", "start_ns": 20, "end_ns": 30, "launch": 0}], LAUNCHES)
    fault = incomplete(trace)
    assert fault is not None
    assert (fault.code, fault.count) == ("graphs-incomplete", 2)
    assert fault.message == (
        "trace incomplete: 3 graph launches, 1 kernel of graphs; 2 launches have none in the file, "
        "so that what they ran is counted as idle"
    )


def test_no_graphs(make: Callable[..., Trace]) -> None:
    assert graphs(make([{"start_ns": 0, "end_ns": 1}])) == ()
    assert incomplete(make()) is None
