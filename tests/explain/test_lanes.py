"""Steps on the clock of a device, and idle time in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from suanli.explain.classify import classify
from suanli.explain.idle import BETWEEN, DATA, HOST, waits
from suanli.explain.lanes import Lane, lane_of, launched_before_the_last
from suanli.explain.steps import find_steps
from suanli.nouns.trace import Trace

Make = Callable[..., Trace]


def lane(trace: Trace) -> Lane:
    return lane_of(trace, 0, np.arange(len(trace.work)), find_steps(trace, classify(trace)), waits(trace))


def two_steps(make: Make, *more: dict[str, Any], host: tuple[dict[str, Any], ...] = ()) -> Trace:
    """Two steps of 1000 ns of the host; kernels 500..600, 700..800 of the first and 1500..1600 of the second."""
    marks = [
        {"name": f"ProfilerStep#{k}", "kind": "mark", "start_ns": 1000 * k, "end_ns": 1000 * k + 990} for k in range(2)
    ]
    launches = [{"name": "cudaLaunchKernel", "start_ns": t, "end_ns": t + 5} for t in (400, 690, 1400)]
    work = [{"start_ns": t, "end_ns": t + 100, "launch": k} for k, t in enumerate((500, 700, 1500))]
    return make([*work, *more], [*launches, *marks, *host])


def test_a_step_goes_from_its_first_work_to_the_next_steps(make: Make) -> None:
    found = lane(two_steps(make))
    assert found.border.tolist() == [500, 1500, 1600]
    assert found.lengths_ns.tolist() == [1000, 100]
    assert found.launched.tolist() == [2, 1]
    assert found.window_ns == 1100


def test_idle_time_of_each_step(make: Make) -> None:
    found = lane(two_steps(make)).step_idle_s()
    # 600..700: launched at 690, after the device ran dry; 800..1500 is before the second step's first work
    assert found[HOST].tolist() == [100e-9, 0]
    assert found[BETWEEN].tolist() == [700e-9, 0]


def test_waiting_for_data_between_steps_is_waiting_for_data(make: Make) -> None:
    loader = {"name": "enumerate(DataLoader)#x", "kind": "mark", "start_ns": 850, "end_ns": 1250}
    found = lane(two_steps(make, host=(loader,))).step_idle_s()
    assert found[DATA].tolist() == [400e-9, 0]
    assert found[BETWEEN].tolist() == [300e-9, 0]


def test_work_without_a_launch_does_not_pull_the_border_forward(make: Make) -> None:
    # starts at 1100, in the second step's time, though the first may have launched it
    found = lane(two_steps(make, {"start_ns": 1100, "end_ns": 1200}))
    assert found.border.tolist() == [500, 1500, 1600]


def test_work_that_crosses_a_border_is_cut_there(make: Make) -> None:
    found = lane(two_steps(make, {"start_ns": 750, "end_ns": 1550, "stream": 9, "launch": 1}))
    crossing = found.parts.row == np.flatnonzero(found.pieces.end == 1550)[0]
    assert found.parts.start[crossing].tolist() == [750, 1500]
    assert found.parts.period[crossing].tolist() == [0, 1]


def test_without_steps_there_are_no_borders(make: Make) -> None:
    found = lane(make([{"start_ns": 0, "end_ns": 5}]))
    assert len(found.steps) == len(found.border) == 0
    assert found.step_idle_s()[HOST].tolist() == []


def test_only_what_was_launched_before_the_last_step(make: Make) -> None:
    trace = two_steps(make)
    marks = find_steps(trace, classify(trace))
    assert launched_before_the_last(trace, np.arange(3), marks).row.tolist() == [0, 1]
