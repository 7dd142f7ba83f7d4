"""A trace explained: classes, steps, the account of every device and step, communication, kernels, advice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from suanli.explain.account import UNATTRIBUTED, Ideal, account_of, entries_s, ideal_of, total_account
from suanli.explain.advice import Clues, advise
from suanli.explain.classify import classify, containers
from suanli.explain.communication import collectives
from suanli.explain.device import DeviceFacts, facts_of
from suanli.explain.durations import Clipped, clip
from suanli.explain.findings import warnings_of
from suanli.explain.graphs import graphs
from suanli.explain.idle import waits
from suanli.explain.intervals import Array
from suanli.explain.kernels import kernels, owned_s
from suanli.explain.lanes import Lane, lane_of, launched_before_the_last
from suanli.explain.roofline import roofline
from suanli.explain.share import share
from suanli.explain.steps import Marks, find_steps
from suanli.explain.strip import strip_of
from suanli.explain.sweep import Pieces, owned_ns
from suanli.explain.usage import seconds, usages
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.explained import DeviceAccount, Explained, Step, Strip, TraceRank, Usage
from suanli.nouns.hardware import Device
from suanli.nouns.roofline import KernelGroup
from suanli.nouns.trace import Trace, TraceDevice, WorkKind
from suanli.units import MILLI

Attribute = Callable[[Trace, Array], Attribution]  # of a trace and the class of each row


@dataclass(frozen=True, eq=False)
class _Ready:
    """Everything about a trace that all its devices share."""

    trace: Trace
    work_class: Array
    attribution: Attribution | None
    marks: Marks
    kernel: Array
    clipped: Clipped


def explain_trace(trace: Trace, attribute: Attribute | None = None, gpu: Device | None = None) -> Explained:
    """Where the time of a trace went. `attribute` gives FLOPs to the work of a trace whose impossible durations are cut
    and whose classes are found; without it no matmul time is split. `gpu` stands above the names in the file.
    A trace without device work gives an answer without devices, with the warning.
    """
    clipped = clip(trace.work)
    trace = replace(trace, work=replace(trace.work, end_ns=clipped.end_ns))
    work_class = classify(trace)
    attribution = attribute(trace, work_class) if attribute is not None else None
    work_class = work_class if attribution is None else attribution.work_class
    kernel, marks = trace.work.kind == WorkKind.KERNEL, find_steps(trace, work_class)
    ready = _Ready(trace, work_class, attribution, marks, kernel, clipped)
    lanes = _lanes(ready)
    facts = {lane.device: facts_of(_described(trace, lane.device), gpu) for lane in lanes}
    return _explained(ready, lanes, facts)


def _lanes(ready: _Ready) -> list[Lane]:
    trace, work = ready.trace, ready.trace.work
    kept, waiting = ~containers(trace), waits(trace)
    rows = [(int(d), np.flatnonzero((work.device == d) & kept)) for d in np.unique(work.device)]
    return [lane_of(trace, device, each, ready.marks, waiting) for device, each in rows if len(each)]


def _described(trace: Trace, device: int) -> TraceDevice:
    """The device as the file describes it; where one description is all there is, it is for every device."""
    found = next((each for each in trace.devices if each.id == device), TraceDevice(id=device))
    names = {each.name for each in trace.devices if each.name}
    return replace(found, name=names.pop()) if not found.name and len(names) == 1 else found


def _explained(ready: _Ready, lanes: list[Lane], facts: dict[int, DeviceFacts]) -> Explained:
    trace = ready.trace
    ideals = {lane.device: _ideal(ready, facts[lane.device]) for lane in lanes}
    owned = {lane.device: owned_s(lane.pieces, ideals[lane.device]) for lane in lanes}
    devices = tuple(_device(ready, lane, ideals[lane.device], facts[lane.device]) for lane in lanes)
    entries, peak_s = total_account(tuple(each.account for each in devices))
    matmul_s = sum(each.matmul_s for each in devices)
    found = Explained(
        path=trace.path,
        format=trace.format,
        rank=trace.rank,
        account=entries,
        peak_s=peak_s,
        attributed_fraction=sum(each.attributed_s for each in devices) / matmul_s if matmul_s else None,
        devices=devices,
        steps=tuple(step for lane in lanes for step in _steps(ready, lane, ideals[lane.device])),
        steps_found=ready.marks.how,
        whole_steps=tuple(usage for lane in lanes for usage in _whole_steps(ready, lane)),
        kernels=tuple(row for lane in lanes for row in kernels(
            trace, ready.work_class, lane.pieces, owned[lane.device], ready.attribution,
            facts[lane.device].peaks_flop_per_s, lane.device, facts[lane.device].memory_bytes_per_s,
        )),
        roofline=tuple(row for lane in lanes for row in _roofline(ready, lane, facts[lane.device])),
        collectives=tuple(
            row for lane in lanes for row in collectives(
                trace, ready.work_class, lane.pieces, lane.device, facts[lane.device].link_bytes_per_s
            )
        ),
        graphs=graphs(trace),
        advice=(),
        warnings=warnings_of(trace, ready.clipped, sum(each.faster for each in ideals.values())),
        reasons={} if matmul_s else {"attributed_fraction": "the trace has no matmul time"},
        share=None if ready.attribution is None else share(trace, ready.attribution),
        ranks=(_rank(trace, devices),),
        strip=_strip(ready, lanes[0]) if lanes else None,
    )  # fmt: skip
    # the levers come last: they look at the answer
    clues = Clues(trace, ready.work_class, ready.attribution, lanes, owned, facts)
    return replace(found, advice=advise(found, clues))


def _strip(ready: _Ready, lane: Lane) -> Strip | None:
    """A step of the first device."""
    names = tuple(ready.marks.names[int(place)] for place in lane.steps)
    return strip_of(ready.trace, ready.work_class, lane, names)


def _rank(trace: Trace, devices: tuple[DeviceAccount, ...]) -> TraceRank:
    whole = sum(each.account.peak_s for each in devices)
    idle = sum(each.account.idle_s for each in devices)
    return TraceRank(
        rank=trace.rank, path=trace.path, world_size=trace.world_size, devices=len(devices), seconds=whole,
        idle_fraction=idle / whole if whole else None,
    )  # fmt: skip


def _roofline(ready: _Ready, lane: Lane, facts: DeviceFacts) -> tuple[KernelGroup, ...]:
    if ready.attribution is None:
        return ()
    return roofline(
        ready.trace, ready.attribution, peaks_flop_per_s=facts.peaks_flop_per_s,
        memory_bytes_per_s=facts.memory_bytes_per_s, rows=lane.pieces.row, device=lane.device,
    )  # fmt: skip


def _flops(ready: _Ready, pieces: Pieces, periods: int) -> tuple[list[float | None], list[float | None]]:
    """FLOPs of the products of each period without recomputation, and of recomputation; None where none is known.

    A row that crosses a border has in each period the part of its FLOPs that it has of its time.
    """
    found = ready.attribution
    if found is None:
        return [None] * periods, [None] * periods
    work, rows = ready.trace.work, pieces.row
    portion = (pieces.end - pieces.start) / np.maximum(work.end_ns - work.start_ns, 1)[rows]
    known, again = found.flops_known[rows], found.recompute[rows]
    flops = found.flops[rows] * portion * known
    some = pieces.total(known.astype(np.int64), periods) > 0
    parts = (pieces.total(flops * chosen, periods) for chosen in (~again, again))
    first, second = ([float(n) if k else None for n, k in zip(part, some, strict=True)] for part in parts)
    return first, second


def _ideal(ready: _Ready, facts: DeviceFacts) -> Ideal:
    return ideal_of(ready.trace.work, ready.work_class, ready.attribution, facts.peaks_flop_per_s, facts.reason)


def _device(ready: _Ready, lane: Lane, ideal: Ideal, facts: DeviceFacts) -> DeviceAccount:
    work, rows = ready.trace.work, lane.pieces.row
    length = work.end_ns - work.start_ns
    entries = {name: each[0] for name, each in entries_s(lane.pieces, ideal, length, 1).items()} | lane.idle_s()
    matmul_s, attributed_s = _attributed(ready, lane)
    reasons = {} if facts.device else {"catalogue": facts.reason or "the peak is the one the file states"}
    (flops,), (again,) = _flops(ready, lane.pieces, 1)
    if not matmul_s:
        reasons["attributed_fraction"] = "no matmul time"
    usage = _usages(ready, lane, np.array([lane.window_ns]))[0]
    if usage.overlapped_fraction is None:
        reasons["overlapped_fraction"] = "no communication"
    return DeviceAccount(
        device=lane.device,
        name=_described(ready.trace, lane.device).name or None,
        catalogue=facts.device.short_id if facts.device else None,
        start_ns=int(lane.pieces.start.min()),
        end_ns=int(lane.pieces.end.max()),
        usage=usage,
        account=account_of(entries, seconds(lane.window_ns), _reasons(ready, ideal)),
        matmul_s=matmul_s,
        attributed_s=attributed_s,
        attributed_fraction=attributed_s / matmul_s if matmul_s else None,
        work=len(rows),
        unlinked=int((work.launch[rows] < 0).sum()),
        flops=flops,
        recompute_flops=again,
        peaks_flop_per_s=dict(facts.peaks_flop_per_s),
        memory_bytes_per_s=facts.memory_bytes_per_s,
        reasons=reasons,
    )


def _reasons(ready: _Ready, ideal: Ideal) -> dict[str, str]:
    """Why an entry is not split further; of what is not attributed the attribution's own reasons, longest first."""
    said = ready.attribution.reasons if ready.attribution is not None else {}
    longest = sorted(said.items(), key=lambda each: -each[1])
    why = "; ".join(f"{reason} ({spent / MILLI:.3f} ms)" for reason, spent in longest)
    default = {UNATTRIBUTED: why or "no formula, no shapes or no launch in the file for these kernels"}
    return default | dict(ideal.reasons)


def _attributed(ready: _Ready, lane: Lane) -> tuple[float, float]:
    """Seconds owned by matmul work, and by matmul work whose FLOPs are known."""
    rows = lane.pieces.row
    matmul = ready.work_class[rows] == WorkClass.MATMUL
    known = matmul & ready.attribution.flops_known[rows] if ready.attribution is not None else np.zeros_like(matmul)
    owned = owned_ns(lane.pieces.start, lane.pieces.end, np.where(known, 0, np.where(matmul, 1, -1)))
    return seconds(int(owned.sum())), seconds(int(owned[known].sum()))


def _usages(ready: _Ready, lane: Lane, windows_ns: Array, *, steps: bool = False) -> list[Usage]:
    pieces = lane.parts if steps else lane.pieces
    return usages(pieces, ready.work_class[pieces.row], ready.kernel[pieces.row], windows_ns)


def _steps(ready: _Ready, lane: Lane, ideal: Ideal) -> list[Step]:
    if not len(lane.steps):
        return []
    work, count = ready.trace.work, len(lane.steps)
    entries = entries_s(lane.parts, ideal, work.end_ns - work.start_ns, count) | lane.step_idle_s()
    lengths = lane.lengths_ns
    used = _usages(ready, lane, lengths, steps=True)
    flops, again = _flops(ready, lane.parts, count)
    return [
        Step(
            name=ready.marks.names[int(lane.steps[k])],
            device=lane.device,
            start_ns=int(lane.border[k]),
            end_ns=int(lane.border[k + 1]),
            seconds=seconds(int(lengths[k])),
            work=int(lane.launched[k]),
            account=account_of(
                {e: each[k] for e, each in entries.items()}, seconds(int(lengths[k])), _reasons(ready, ideal)
            ),
            usage=used[k],
            flops=flops[k],
            recompute_flops=again[k],
        )
        for k in range(count)
    ]


def _whole_steps(ready: _Ready, lane: Lane) -> list[Usage]:
    """What was launched from the first step's start to the end of the last but one, over a window of its own."""
    marks = ready.marks
    if len(marks) < 2:
        return []
    pieces = launched_before_the_last(ready.trace, lane.pieces.row, marks)
    if not len(pieces.row):
        return []
    window = np.array([pieces.end.max() - pieces.start.min()])
    return usages(pieces, ready.work_class[pieces.row], ready.kernel[pieces.row], window)
