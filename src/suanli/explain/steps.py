"""Where the steps are: what the profiler or the program marked, else what repeats, else a period of kernel names.

A step is a span of the host; work belongs to the step in which it was launched, and work without a launch in the file
to the one in which it started.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

import numpy as np

from suanli.explain.intervals import Array
from suanli.explain.period import FEWEST, find_period, phase
from suanli.nouns.attribution import WorkClass
from suanli.nouns.trace import HostKind, Trace

_PROFILER = re.compile(r"^ProfilerStep\s*#?\s*(\d+)$")
_OPTIMIZER = re.compile(r"^Optimizer\.step#|optimizer_step|(?i:^(## )?optimizer( step)?( ##)?$)")
_NUMBER, _NUMBERED = re.compile(r"\d+"), "N°"
_XLA = ("xplane", "jax-json")
_NO_STEP = re.compile(r"^(nccl|rccl|gloo|c10d|hccl|ncc_)\b|^Memcpy|^(cu|hip)[A-Z]")
SHORTEST_PERIOD = 5  # kernels: a loop around fewer is no step of a model
LEAST_COVER = 0.5  # of device work that repeating marks must have launched to be steps


@dataclass(frozen=True, eq=False)
class Marks:
    """Steps as spans, in order, that do not overlap."""

    names: tuple[str, ...]
    start: Array  # ns
    end: Array  # ns
    how: str
    on_device: bool = False  # spans of device work, not of the host

    def __len__(self) -> int:
        return len(self.names)

    def of(self, time_ns: Array) -> Array:
        """The step in which each instant lies; -1: in none."""
        place = np.searchsorted(self.start, time_ns, side="right") - 1
        inside = (place >= 0) & (time_ns < np.append(self.end, 0)[place])
        found: Array = np.where(inside, place, -1)
        return found

    def of_work(self, trace: Trace, rows: Array) -> Array:
        """The step of each row of work."""
        return self.of((trace.work.start_ns if self.on_device else launch_times(trace))[rows])


def no_marks(how: str) -> Marks:
    """No steps, and why."""
    return Marks((), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), how)


def launch_times(trace: Trace) -> Array:
    """ns [N]: start of the launch of each piece of work, its own start where the file has no launch."""
    work, host = trace.work, trace.host
    if not len(host):
        own: Array = work.start_ns
        return own
    times: Array = np.where(work.launch >= 0, host.start_ns[work.launch], work.start_ns)
    return times


def find_steps(trace: Trace, work_class: Array) -> Marks:
    """The steps of a trace, by the first way that gives any."""
    if not len(trace.work):
        return no_marks("no steps: the file has no device work")
    ways = (_by_profiler, _by_run, _by_repeats, _by_optimizer)
    found = next((marks for way in ways if (marks := way(trace)) is not None), None)
    if found is None:
        found = _by_period(trace, work_class)
    return found or no_marks(
        "no steps: no ProfilerStep, no mark that repeats around the work, and kernel names without a period"
    )


def _by_profiler(trace: Trace) -> Marks | None:
    """ProfilerStep#N of torch.profiler's schedule."""
    rows = _rows(trace, _PROFILER)
    return _marks(trace, rows, "ProfilerStep marks") if len(rows) else None


def _by_run(trace: Trace) -> Marks | None:
    """JAX: runs of the module that takes most time, where the file numbers them."""
    keys = [(detail.hlo or {}).get("run_id") for detail in trace.details]
    if not any(key is not None for key in keys):
        return None
    modules = [str((detail.hlo or {}).get("module")) for detail in trace.details]
    starts, ends = _spans_of_details(trace)
    spans: dict[tuple[str, str], list[int]] = {}
    for place, key in enumerate(keys):
        if key is not None and ends[place] > starts[place]:
            span = spans.setdefault((modules[place], str(key)), [int(starts[place]), int(ends[place])])
            span[:] = min(span[0], int(starts[place])), max(span[1], int(ends[place]))
    if not spans:
        return None
    time: dict[str, int] = {}
    for (module, _), (first, last) in spans.items():
        time[module] = time.get(module, 0) + last - first
    main = max(time, key=lambda module: time[module])
    spans_of = sorted((first, last, run) for (module, run), (first, last) in spans.items() if module == main)
    if len(spans_of) < 2 or any(after[0] < before[1] for before, after in itertools.pairwise(spans_of)):
        return None
    begin, end = (np.array([each[k] for each in spans_of], dtype=np.int64) for k in (0, 1))
    return Marks(tuple(f"run {run}" for *_, run in spans_of), begin, end, f"runs of {main}", on_device=True)


def _spans_of_details(trace: Trace) -> tuple[Array, Array]:
    """First start and last end of the work of each detail."""
    work, count = trace.work, len(trace.details)
    starts, ends = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    rows = work.detail >= 0
    np.minimum.at(starts, work.detail[rows], work.start_ns[rows])
    np.maximum.at(ends, work.detail[rows], work.end_ns[rows])
    return starts, ends


def _by_repeats(trace: Trace) -> Marks | None:
    """Marks of one name, or that differ by a number, which come three times or more and hold most launches."""
    best: tuple[float, int, Marks] | None = None
    times = launch_times(trace)
    for label, rows in _repeating(trace).items():
        marks = _marks(trace, rows, f"marks named {label}")
        if marks is None or len(marks) < FEWEST:
            continue
        covered = float((marks.of(times) >= 0).mean())
        # of marks that hold as much, the outer ones: fewer and longer
        if covered >= LEAST_COVER and (best is None or (covered, -len(marks)) > best[:2]):
            best = covered, -len(marks), marks
    return best[2] if best else None


def _by_optimizer(trace: Trace) -> Marks | None:
    """From the end of one optimizer step to the end of the next; the first from the first work."""
    rows = _rows(trace, _OPTIMIZER)
    if len(rows) < 2:
        return None
    ends = np.unique(trace.host.end_ns[rows])
    first = min(int(launch_times(trace).min()), int(ends[0]) - 1)
    start = np.concatenate(([first], ends[:-1]))
    names = tuple(f"step {k + 1}" for k in range(len(ends)))
    return Marks(names, start, ends, "from the end of one optimizer step to the next")


def _by_period(trace: Trace, work_class: Array) -> Marks | None:
    """A period in the names of the kernels of the busiest stream of the first device."""
    work = trace.work
    chosen = (work.device == work.device[0]) & (work_class <= WorkClass.COMPUTE)
    if not chosen.any():
        return None
    streams, counts = np.unique(work.stream[chosen], return_counts=True)
    if counts.max() < LEAST_COVER * counts.sum():
        return None
    rows = np.flatnonzero(chosen & (work.stream == streams[counts.argmax()]))
    period = find_period(work.name[rows])
    if period is None or period < SHORTEST_PERIOD:
        return None
    begin = rows[phase(work.start_ns[rows], work.end_ns[rows], period) :: period]
    launch = work.launch[begin]
    if len(np.unique(launch[launch >= 0])) < (launch >= 0).sum():
        return None  # several in one launch of a graph: layers, not steps
    start = np.unique(work.start_ns[begin])
    end = np.append(start[1:], work.end_ns.max() + 1)
    how = f"a period of {period} kernels on stream {int(streams[counts.argmax()])}"
    return Marks(tuple(f"period {k + 1}" for k in range(len(start))), start, end, how, on_device=True)


def _rows(trace: Trace, pattern: re.Pattern[str]) -> Array:
    """Marks of the host whose name fits; torch before 1.10 had them among its operators."""
    places = [place for place, name in enumerate(trace.names) if pattern.search(name)]
    return np.flatnonzero((trace.host.kind != HostKind.RUNTIME) & np.isin(trace.host.name, places))


def _repeating(trace: Trace) -> dict[str, Array]:
    """Marks by name without its numbers, those that come three times or more."""
    host = trace.host
    rows = np.flatnonzero(host.kind == HostKind.MARK)
    labels = {int(p): _NUMBER.sub(_NUMBERED, trace.names[p]) for p in np.unique(host.name[rows])}
    groups: dict[str, list[Array]] = {}
    for place, label in labels.items():
        # XLA traces its own runtime as marks, call by call: there a step has a number
        if not _NO_STEP.search(label) and (_NUMBERED in label or trace.format not in _XLA):
            groups.setdefault(label, []).append(rows[host.name[rows] == place])
    joined = {label: np.concatenate(parts) for label, parts in groups.items()}
    return {label: each for label, each in joined.items() if len(each) >= FEWEST}


def _marks(trace: Trace, rows: Array, how: str) -> Marks | None:
    """Marks in order of time. Of threads that mark at the same time (several processes in one file) the one with most
    marks stands for all; None where marks of one thread overlap.
    """
    host = trace.host
    threads, counts = np.unique(host.thread[rows], return_counts=True)
    for chosen in (rows, rows[host.thread[rows] == threads[counts.argmax()]] if len(threads) else rows):
        ordered = chosen[np.argsort(host.start_ns[chosen], kind="stable")]
        start, end = host.start_ns[ordered], host.end_ns[ordered]
        if not (start[1:] < end[:-1]).any():
            return Marks(tuple(trace.names[place] for place in host.name[ordered]), start, end, how)
    return None
