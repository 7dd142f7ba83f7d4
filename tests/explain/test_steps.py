"""How steps are told apart, one way after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from suanli.explain.classify import classify
from suanli.explain.steps import Marks, find_steps, launch_times, no_marks
from suanli.nouns.trace import OpDetail, Trace

Make = Callable[..., Trace]


def steps(trace: Trace) -> Marks:
    return find_steps(trace, classify(trace))


def mark(name: str, start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "start_ns": start, "end_ns": end, "kind": "mark", **more}


def launched(times: list[int], *, late: int = 1000) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Work that runs `late` after its launch, and the launches."""
    host = [{"name": "cudaLaunchKernel", "start_ns": t, "end_ns": t + 1} for t in times]
    return [{"start_ns": t + late, "end_ns": t + late + 5, "launch": k} for k, t in enumerate(times)], host


def test_steps_of_the_profiler_go_first(make: Make) -> None:
    work, host = launched([10, 110, 210])
    marks = [mark(f"ProfilerStep#{k}", 100 * k, 100 * k + 90) for k in range(3)]
    found = steps(make(work, [*host, *marks, *(mark("train_step", 100 * k, 100 * k + 80) for k in range(3))]))
    assert found.names == ("ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2")
    assert found.how == "ProfilerStep marks"


def test_work_belongs_to_the_step_that_launched_it(make: Make) -> None:
    work, host = launched([10, 110, 195])  # runs at 1010, 1110, 1195: long after both steps
    marks = [mark("ProfilerStep#1", 0, 90), mark("ProfilerStep#2", 100, 190)]
    trace = make([*work, {"start_ns": 120, "end_ns": 130}], [*host, *marks])  # the last has no launch in the file
    assert launch_times(trace).tolist() == [120, 10, 110, 195]
    assert steps(trace).of_work(trace, np.arange(4)).tolist() == [1, 0, 1, -1]


def test_a_mark_that_repeats_around_the_work_is_a_step(make: Make) -> None:
    work, host = launched([10, 110, 210, 310])
    marks = [mark("step 17", 0, 90), mark("step 18", 100, 190), mark("step 19", 200, 290), mark("step 20", 300, 390)]
    inner = [mark("forward", 100 * k, 100 * k + 50) for k in range(4)]
    found = steps(make(work, [*host, *marks, *inner]))
    assert found.names == ("step 17", "step 18", "step 19", "step 20")
    assert found.how == "marks named step N°"


def test_marks_that_hold_little_of_the_work_are_no_steps(make: Make) -> None:
    work, host = launched([10, 110, 210, 310])
    marks = [mark("zero_grad", 100 * k + 50, 100 * k + 60) for k in range(4)]
    assert len(steps(make(work, [*host, *marks]))) == 0


def test_marks_of_collectives_are_no_steps(make: Make) -> None:
    work, host = launched([10, 110, 210])
    marks = [mark("nccl:all_reduce", 100 * k, 100 * k + 90) for k in range(3)]
    assert len(steps(make(work, [*host, *marks]))) == 0


def test_of_xlas_own_marks_only_numbered_ones_are_steps(make: Make) -> None:
    work, host = launched([10, 110, 210])
    calls = [mark("PJRT_LoadedExecutable_Execute", 100 * k, 100 * k + 90) for k in range(3)]
    assert len(steps(make(work, [*host, *calls], format="xplane"))) == 0
    trains = [mark(f"train {k}", 100 * k, 100 * k + 90) for k in range(3)]
    assert steps(make(work, [*host, *calls, *trains], format="xplane")).names == ("train 0", "train 1", "train 2")


def test_marks_inside_each_other_are_no_steps(make: Make) -> None:
    work, host = launched([10, 110, 210])
    marks = [mark("block", 0, 400), mark("block", 5, 300), mark("block", 9, 250)]
    assert len(steps(make(work, [*host, *marks]))) == 0


def test_of_processes_that_mark_at_the_same_time_one_stands_for_all(make: Make) -> None:
    work, host = launched([10, 110, 210])
    marks = [mark(f"step {k}", 100 * k, 100 * k + 90) for k in range(3)]
    others = [mark(f"step {k}", 100 * k + 7, 100 * k + 95, thread=1) for k in range(2)]
    found = steps(make(work, [*host, *marks, *others]))
    assert found.start.tolist() == [0, 100, 200]


def test_from_one_optimizer_step_to_the_next(make: Make) -> None:
    work, host = launched([10, 90, 110, 190, 210])
    marks = [mark("Optimizer.step#AdamW.step", 85, 95), mark("Optimizer.step#AdamW.step", 185, 195)]
    trace = make(work, [*host, *marks])
    found = steps(trace)
    assert found.names == ("step 1", "step 2")
    assert found.end.tolist() == [95, 195]
    assert found.of_work(trace, np.arange(5)).tolist() == [0, 0, 1, 1, -1]


def test_a_period_where_nothing_is_marked(make: Make) -> None:
    names = [f"kernel_{k}" for k in range(6)]
    work = [
        {"name": name, "start_ns": 1000 * step + 10 * k, "end_ns": 1000 * step + 10 * k + 8}
        for step in range(4)
        for k, name in enumerate(names)
    ]
    trace = make(work)
    found = steps(trace)
    assert found.how == "a period of 6 kernels on stream 7"
    assert found.start.tolist() == [0, 1000, 2000, 3000]
    assert found.of_work(trace, np.arange(24)).tolist() == [step for step in range(4) for _ in names]


def test_layers_inside_one_graph_launch_are_no_steps(make: Make) -> None:
    host = [{"name": "cudaGraphLaunch", "start_ns": 0, "end_ns": 5}]
    work = [
        {"name": f"kernel_{k}", "start_ns": 100 * layer + 10 * k + 10, "end_ns": 100 * layer + 10 * k + 18, "launch": 0}
        for layer in range(12)
        for k in range(5)
    ]
    assert len(steps(make(work, host))) == 0


def test_runs_of_a_jax_module(make: Make) -> None:
    details = [OpDetail(hlo={"module": "jit_step", "run_id": run}) for run in (7, 8, 9)]
    details.append(OpDetail(hlo={"module": "jit_loss", "run_id": 10}))
    work = [{"start_ns": 100 * k, "end_ns": 100 * k + 50, "detail": k} for k in range(3)]
    found = steps(make([*work, {"start_ns": 310, "end_ns": 315, "detail": 3}], details=tuple(details)))
    assert found.names == ("run 7", "run 8", "run 9")
    assert found.how == "runs of jit_step"
    assert found.on_device


def test_no_steps_and_why(make: Make) -> None:
    assert no_marks("because").how == "because"
    assert steps(make()).how == "no steps: the file has no device work"
    assert steps(make([{"start_ns": 0, "end_ns": 1}])).how == (
        "no steps: no ProfilerStep, no mark that repeats around the work, and kernel names without a period"
    )
