"""Warnings, word by word."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from suanli.explain.durations import Clipped
from suanli.explain.findings import warnings_of
from suanli.nouns.trace import Trace, TraceFault

NOTHING = Clipped(np.zeros(0, dtype=np.int64), 0, 0)
LINKED = [{"name": "cudaLaunchKernel", "start_ns": 0, "end_ns": 1}]


def said(trace: Trace, clipped: Clipped = NOTHING, faster: int = 0) -> dict[str, tuple[int, str]]:
    return {fault.code: (fault.count, fault.message) for fault in warnings_of(trace, clipped, faster)}


def test_a_whole_trace_has_none(make: Callable[..., Trace]) -> None:
    assert said(make([{"start_ns": 1, "end_ns": 2, "launch": 0}], LINKED)) == {}


def test_each_warning(make: Callable[..., Trace]) -> None:
    trace = make([{"start_ns": 1, "end_ns": 2, "launch": 0}, {"start_ns": 2, "end_ns": 3}], LINKED)
    found = said(trace, Clipped(trace.work.end_ns, 7, 1_500_000), 3)
    assert found == {
        "impossible-duration": (
            7,
            "7 pieces of work run more than 100 µs into the next on their stream, which cannot be: 1.500 ms were cut "
            "off, up to the next start",
        ),
        "unlinked-work": (
            1,
            "1 of 2 pieces of device work has no launch in the file (launched before it begins, or not recorded): "
            "its time counts, what launched it is unknown",
        ),
        "faster-than-peak": (
            3,
            "3 products would be faster than the peak of their dtype: their FLOPs, their dtype or the device is not "
            "what it seems; they are shown as not attributed",
        ),
    }


def test_large_counts_have_their_thousands_apart(make: Callable[..., Trace]) -> None:
    trace = make([{"start_ns": at, "end_ns": at + 1} for at in range(1, 1235)])
    assert said(trace, NOTHING, 2000)["unlinked-work"][1].startswith("1,234 of 1,234 pieces of device work")
    assert said(trace, NOTHING, 2000)["faster-than-peak"][1].startswith("2,000 products would be faster")


def test_one_is_said_in_the_singular(make: Callable[..., Trace]) -> None:
    trace = make([{"start_ns": 1, "end_ns": 2}])
    found = {code: message for code, (_, message) in said(trace, Clipped(trace.work.end_ns, 1, 1_000_000), 1).items()}
    assert found == {
        "impossible-duration": "1 piece of work runs more than 100 µs into the next on its stream, which cannot be: "
        "1.000 ms were cut off, up to the next start",
        "unlinked-work": "1 of 1 piece of device work has no launch in the file (launched before it begins, or not "
        "recorded): its time counts, what launched it is unknown",
        "faster-than-peak": "1 product would be faster than the peak of its dtype: its FLOPs, its dtype or the device "
        "is not what it seems; it is shown as not attributed",
    }


def test_a_file_without_device_work(make: Callable[..., Trace]) -> None:
    assert said(make()) == {
        "no-device-work": (0, "the file has no kernels, copies or sets of a device: there is no time to account for")
    }


def test_the_files_own_faults_come_first(make: Callable[..., Trace]) -> None:
    own = TraceFault(code="dropped-events", count=9, message="the profiler dropped 9 events")
    found = warnings_of(make(faults=(own,)), NOTHING, 0)
    assert [each.code for each in found] == ["dropped-events", "no-device-work"]
