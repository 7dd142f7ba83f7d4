"""Gaps and what the host was doing in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from suanli.explain import idle
from suanli.explain.idle import BETWEEN, DATA, DATA_WAITS, HOST, PARTS, QUEUED, SYNC, SYNCHRONISES, UNKNOWN
from suanli.explain.sweep import Pieces
from suanli.nouns.trace import Trace

GAP = [{"start_ns": 0, "end_ns": 100, "launch": 0}, {"start_ns": 200, "end_ns": 300, "launch": 1}]  # idle 100..200


def split(trace: Trace, borders: tuple[int, ...] = ()) -> dict[str, int]:
    """Nanoseconds of all gaps by part, those of no time left out."""
    work = trace.work
    pieces = Pieces(np.arange(len(work)), work.start_ns, work.end_ns, np.zeros(len(work), dtype=np.int64))
    at = np.array(borders, dtype=np.int64)
    found = idle.split_ns(idle.gaps_of(pieces, work, trace.host, at), idle.waits(trace), at)
    assert set(found) == set(PARTS)
    return {part: int(ns.sum()) for part, ns in found.items() if ns.sum()}


def launch(start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"start_ns": start, "end_ns": end, "name": "cudaLaunchKernel", **more}


def test_a_launch_after_the_device_ran_dry_is_the_hosts(make: Callable[..., Trace]) -> None:
    assert split(make(GAP, [launch(0, 5), launch(150, 155)])) == {HOST: 100}


def test_a_launch_before_the_device_ran_dry_is_not(make: Callable[..., Trace]) -> None:
    assert split(make(GAP, [launch(0, 5), launch(90, 95)])) == {QUEUED: 100}


def test_time_inside_a_synchronising_call_on_the_launching_thread(make: Callable[..., Trace]) -> None:
    # idle 100..200; the host waits 50..130, launches at 150: 30 synchronisation, 70 host
    host = [launch(0, 5), launch(150, 155), {"start_ns": 50, "end_ns": 130, "name": "cudaStreamSynchronize"}]
    assert split(make(GAP, host)) == {SYNC: 30, HOST: 70}


def test_another_threads_waiting_says_nothing(make: Callable[..., Trace]) -> None:
    host = [
        launch(0, 5),
        launch(150, 155),
        {"start_ns": 50, "end_ns": 130, "name": "cudaStreamSynchronize", "thread": 1},
    ]
    assert split(make(GAP, host)) == {HOST: 100}


def test_a_wait_for_data_goes_before_the_synchronisation_inside_it(make: Callable[..., Trace]) -> None:
    # the loader runs 90..140, a synchronising copy inside it 110..120: 40 data, 60 host
    host = [
        launch(0, 5),
        launch(150, 155),
        {"start_ns": 90, "end_ns": 140, "kind": "mark", "name": "enumerate(DataLoader)#_SingleProcess.__next__"},
        {"start_ns": 110, "end_ns": 120, "name": "cudaMemcpy"},
    ]
    assert split(make(GAP, host)) == {DATA: 40, HOST: 60}


def test_waiting_after_the_launch_is_not_why_the_device_is_idle(make: Callable[..., Trace]) -> None:
    host = [launch(0, 5), launch(110, 115), {"start_ns": 120, "end_ns": 250, "name": "cudaDeviceSynchronize"}]
    assert split(make(GAP, host)) == {HOST: 100}


def test_without_a_launch_in_the_file_the_cause_is_not_known(make: Callable[..., Trace]) -> None:
    rows = [{**row, "launch": -1} for row in GAP]
    assert split(make(rows)) == {UNKNOWN: 100}


def test_a_gap_before_a_steps_first_work_is_between_steps(make: Callable[..., Trace]) -> None:
    host = [launch(0, 5), launch(150, 155), {"start_ns": 50, "end_ns": 130, "name": "cudaStreamSynchronize"}]
    assert split(make(GAP, host), borders=(0, 200)) == {SYNC: 30, BETWEEN: 70}


def test_of_work_that_starts_together_the_first_launched_counts(make: Callable[..., Trace]) -> None:
    rows = [*GAP, {"start_ns": 200, "end_ns": 220, "stream": 9, "launch": 2}]
    assert split(make(rows, [launch(0, 5), launch(150, 155), launch(60, 65)])) == {QUEUED: 100}


def test_overlapping_work_leaves_one_gap(make: Callable[..., Trace]) -> None:
    rows = [*GAP, {"start_ns": 50, "end_ns": 160, "stream": 9, "launch": 0}]
    assert split(make(rows, [launch(0, 5), launch(165, 170)])) == {HOST: 40}


@pytest.mark.parametrize(
    "name",
    [
        "cudaDeviceSynchronize", "cudaStreamSynchronize_v3020", "hipStreamSynchronize", "cudaEventSynchronize",
        "zeEventHostSynchronize", "urQueueFinish", "cudaMemcpy_v3020", "hipMemcpyWithStream", "synchronizeStream",
        "cuCtxSynchronize", "PjRtBuffer::BlockUntilReady", "cudaFree",
    ],
)  # fmt: skip
def test_calls_that_wait(name: str) -> None:
    assert SYNCHRONISES.search(name)


@pytest.mark.parametrize(
    "name", ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemcpyPeerAsync", "cudaStreamWaitEvent", "cudaMallocAsync"]
)
def test_calls_that_do_not_wait(name: str) -> None:
    assert not SYNCHRONISES.search(name)


@pytest.mark.parametrize(
    "name",
    [
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "## wait_for_batch ##", "## load_batch ##",
        "[pl][profile]run_training_epoch.train_dataloader_next", "data_wait", "batch-generator", "get_batch",
        "IteratorGetNext",
    ],
)  # fmt: skip
def test_marks_of_waiting_for_data(name: str) -> None:
    assert DATA_WAITS.search(name)


@pytest.mark.parametrize("name", ["ProfilerStep#3", "forward", "Optimizer.step#AdamW.step", "nccl:all_reduce"])
def test_marks_that_are_not_about_data(name: str) -> None:
    assert not DATA_WAITS.search(name)
