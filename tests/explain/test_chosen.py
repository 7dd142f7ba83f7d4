"""A part of a trace: devices, steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.explain.account import closes
from suanli.explain.chosen import devices_of, most_steps, only_devices, only_steps
from suanli.explain.whole import explain_trace
from suanli.nouns.trace import Trace

Make = Callable[..., Trace]


def stepped(make: Make, devices: tuple[int, ...] = (0,)) -> Trace:
    """Three steps of 100 ns; a kernel of 40, 50 and 60 ns in each, on every device."""
    host: list[dict[str, Any]] = []
    for k in range(3):
        host.append({"name": f"ProfilerStep#{k}", "kind": "mark", "start_ns": 100 * k, "end_ns": 100 * k + 95})
        host.append({"name": "cudaLaunchKernel", "start_ns": 100 * k + 1, "end_ns": 100 * k + 2})
    work = [
        {"name": "add", "start_ns": 100 * k + 10, "end_ns": 100 * k + 50 + 10 * k, "launch": 2 * k + 1, "device": each}
        for each in devices
        for k in range(3)
    ]
    return make(work, host)


def test_devices_alone(make: Make) -> None:
    trace = stepped(make, (0, 3))
    assert devices_of(trace) == (0, 3)
    one = only_devices(trace, [3])
    assert devices_of(one) == (3,)
    assert (len(one.work), len(one.host)) == (3, len(trace.host))
    assert [each.device for each in explain_trace(one).devices] == [3]


def test_the_account_of_steps_is_theirs_together(make: Make) -> None:
    whole = explain_trace(stepped(make))
    assert most_steps(whole) == 3
    # steps are 100, 100 and 60 ns: from the first start to that of the next step, the last to its own end
    found = only_steps(whole, [2, 3])
    assert [step.name for step in found.steps] == ["ProfilerStep#1", "ProfilerStep#2"]
    assert found.peak_s == pytest.approx(160e-9)
    assert closes(found.account, found.peak_s)
    assert sum(each.seconds for each in found.account if each.entry.startswith("idle")) == pytest.approx(50e-9)
    assert found.kernels == whole.kernels


def test_places_count_on_each_device(make: Make) -> None:
    whole = explain_trace(stepped(make, (0, 1)))
    assert [(step.device, step.name) for step in only_steps(whole, [1]).steps] == [
        (0, "ProfilerStep#0"),
        (1, "ProfilerStep#0"),
    ]
    assert most_steps(whole) == 3


def test_all_steps_of_a_trace_without_any_are_none(make: Make) -> None:
    found = explain_trace(make([{"start_ns": 0, "end_ns": 10}]))
    assert most_steps(found) == 0
    assert only_steps(found, [1]).peak_s == 0
