"""Levers by the most the account says they could return, each with what in the trace says so.

The most is the whole entry that a lever is against: nothing here predicts how much of it a change would bring.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from suanli.explain import account as a
from suanli.explain import idle
from suanli.explain.device import DeviceFacts
from suanli.explain.graphs import replayed
from suanli.explain.intervals import Array
from suanli.explain.lanes import Lane
from suanli.explain.share import cured_s
from suanli.explain.short_names import short
from suanli.explain.waves import lost_s
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.explained import Advice, Explained, KernelRow
from suanli.nouns.trace import HostKind, Trace
from suanli.units import GIGA, MICRO, counted

LEAST_FRACTION = 0.005  # of the account's time: what returns less is not said
_ALLOCATES = re.compile(r"(?i)(Malloc|Free)")
_RUNS, _COPIES = "{count} {runs|run}", "{count} {copies and sets|copy or set}"
_DRY = "{count} {times|time} the device ran dry before the next launch came"
_LAST_WAVE = "the last wave of blocks leaves multiprocessors empty, at one block each"
_NARROW, _WIDE = "bf16", ("fp32", "tf32", "fp64")


@dataclass(frozen=True, eq=False)
class Clues:
    """What advice looks at beside the account."""

    trace: Trace
    work_class: Array
    attribution: Attribution | None
    lanes: Sequence[Lane]
    owned: Mapping[int, Array]  # seconds of the account that each piece of a device owns
    facts: Mapping[int, DeviceFacts]

    def owned_s(self, chosen: Array) -> float:
        """Seconds of the account that the chosen rows of work own."""
        return float(sum(self.owned[x.device][chosen[x.pieces.row]].sum() for x in self.lanes))


def advise(found: Explained, clues: Clues) -> tuple[Advice, ...]:
    """The levers that return half a percent or more, the most first; those that only better the figures last."""
    ways: tuple[Callable[[Explained, Clues], Iterator[Advice]], ...] = (
        _communication, _host, _waiting, _sync, _data, _copies, _other_kernels, _products, _dtype, _waves, _recompute,
        _record,
    )  # fmt: skip
    levers = [lever for way in ways for lever in way(found, clues)] if found.peak_s else []
    kept = [each for each in levers if each.fraction is None or each.fraction >= LEAST_FRACTION]
    return tuple(sorted(kept, key=lambda each: (each.seconds is None, -(each.seconds or 0.0))))


def _lever(found: Explained, lever: str, seconds: float, evidence: str) -> Iterator[Advice]:
    if seconds > 0:
        yield Advice(lever=lever, seconds=seconds, fraction=seconds / found.peak_s, evidence=evidence)


def _entry(found: Explained, name: str) -> float:
    return next((each.seconds for each in found.account if each.entry == name), 0.0)


def _percent(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "none"


def _communication(found: Explained, _: Clues) -> Iterator[Advice]:
    if found.collectives:
        top = max(found.collectives, key=lambda row: row.exposed_s)
        where = f" on {top.group}" if top.group else ""
        share = _percent(top.exposed_s, top.union_s)
        calls = counted(top.count, f"{{count}} {{calls|call}}, {share} of {{their|its}} time without compute beside it")
        evidence = f"{top.collective}{where}: {calls}"
        yield from _lever(found, "overlap communication with compute", _entry(found, a.COMMUNICATION), evidence)


def _host(found: Explained, clues: Clues) -> Iterator[Advice]:
    late = sum(int((lane.idle_ns[idle.HOST] > 0).sum()) for lane in clues.lanes)
    length = clues.trace.work.end_ns - clues.trace.work.start_ns
    typical = float(np.median(length)) if len(length) else 0.0
    graph = _percent(float(replayed(clues.trace).sum()), float(len(length)))
    evidence = (
        f"{counted(late, _DRY)}; the median piece of work takes "
        f"{typical / (MICRO * GIGA):.1f} µs, {graph} of the work is replayed from graphs"
    )
    seconds = _entry(found, idle.HOST)
    yield from _lever(found, "fewer launches: CUDA graphs, torch.compile, fused optimizers", seconds, evidence)


def _waiting(found: Explained, clues: Clues) -> Iterator[Advice]:
    """Work that was launched in time and could not start."""
    longest, name = 0, ""
    for lane in clues.lanes:
        waited = lane.idle_ns[idle.QUEUED]
        if len(waited) and waited.max() > longest:
            longest = int(waited.max())
            name = clues.trace.names[int(clues.trace.work.name[lane.gaps.row[int(waited.argmax())]])]
    evidence = f"the longest wait, {longest / (MICRO * GIGA):.1f} µs, is before {short(name)}"
    lever = "let launched work start: events between streams, other ranks, order in the graph"
    yield from _lever(found, lever, _entry(found, idle.QUEUED), evidence)


def _sync(found: Explained, clues: Clues) -> Iterator[Advice]:
    calls = _waiting_calls(clues.trace)
    said = ", ".join(f"{name} ({counted(count, '{count} {calls|call}')})" for name, count in calls)
    lever = "no waiting for the device: .item(), .cpu(), prints of the loss, blocking copies"
    if calls and _ALLOCATES.search(calls[0][0]):
        lever = "no allocation in the step: keep the caching allocator on, and memory below its limit"
    yield from _lever(found, lever, _entry(found, idle.SYNC), f"the host was inside {said}")


def _waiting_calls(trace: Trace) -> list[tuple[str, int]]:
    """The three calls that wait for the device longest, with how many there are."""
    host, names = trace.host, trace.names
    rows = np.flatnonzero(idle.named(trace, idle.SYNCHRONISES) & (host.kind == HostKind.RUNTIME))
    lasted = host.end_ns[rows] - host.start_ns[rows]
    times = np.bincount(host.name[rows], weights=lasted, minlength=len(names))
    counts = np.bincount(host.name[rows], minlength=len(names))
    places = [k for k in np.argsort(-times, kind="stable") if counts[k]]
    return [(names[k], int(counts[k])) for k in places[:3]]


def _data(found: Explained, _: Clues) -> Iterator[Advice]:
    lever = "feed data sooner: more loader workers, prefetching, pinned memory"
    evidence = "the device was idle while the host fetched a batch"
    yield from _lever(found, lever, _entry(found, idle.DATA), evidence)


def _copies(found: Explained, clues: Clues) -> Iterator[Advice]:
    trace, work = clues.trace, clues.trace.work
    pageable = np.array(["pageable" in name.lower() and "memcpy" in name.lower() for name in trace.names], dtype=bool)
    chosen = pageable[work.name] if len(work) else np.zeros(0, dtype=bool)
    slow = clues.owned_s(chosen)
    evidence = counted(int(chosen.sum()), "{count} {copies|copy} from or to pageable memory")
    yield from _lever(found, "copy from pinned memory, with non_blocking=True", slow, evidence)
    rest = _entry(found, a.COPIES) - slow
    count = int(((clues.work_class == WorkClass.COPY) & ~chosen).sum())  # some copy by a kernel
    yield from _lever(found, "fewer copies, or on a stream of their own", rest, counted(count, _COPIES))


def _top(found: Explained, kind: str) -> KernelRow | None:
    return max((row for row in found.kernels if row.kind == kind), key=lambda row: row.owned_s, default=None)


def _other_kernels(found: Explained, _: Clues) -> Iterator[Advice]:
    if (top := _top(found, "compute")) is not None:
        share = _percent(top.owned_s, found.peak_s)
        evidence = f"most time: {short(top.name)}, {counted(top.count, _RUNS)}, {share} of the time"
        lever = "fuse kernels that are not products: torch.compile, fused norms, losses and optimizers"
        yield from _lever(found, lever, _entry(found, a.OTHER), evidence)


def _products(found: Explained, _: Clues) -> Iterator[Advice]:
    rows = [row for row in found.kernels if row.kind == "matmul" and row.peak_fraction is not None]
    if rows:
        top = max(rows, key=lambda row: row.owned_s * (1 - (row.peak_fraction or 0.0)))
        evidence = (
            f"{short(top.name)} reaches {top.peak_fraction or 0.0:.0%} of the {top.dtype} peak in "
            f"{counted(top.count, _RUNS)}, {_percent(top.owned_s, found.peak_s)} of the time"
        )
        yield from _lever(
            found, "larger products, with sizes that fill tiles and waves", _entry(found, a.INEFFICIENCY), evidence
        )


def _dtype(found: Explained, clues: Clues) -> Iterator[Advice]:
    """What products in wide dtypes take, less what their FLOPs take at the peak of bf16."""
    saved, owned, count, dtypes = 0.0, 0.0, 0, set()
    for row in found.kernels:
        peak = clues.facts[row.device].peaks_flop_per_s.get(_NARROW)
        if row.kind == "matmul" and row.dtype in _WIDE and row.flops and peak:
            saved += max(row.owned_s - row.flops / peak, 0.0)
            owned, count = owned + row.owned_s, count + row.count
            dtypes.add(row.dtype)
    products = counted(count, "{count} {products|product}")
    evidence = f"{products} in {' and '.join(sorted(dtypes))}, {_percent(owned, found.peak_s)} of the time"
    yield from _lever(found, "products in bf16", saved, evidence)


def _waves(found: Explained, clues: Clues) -> Iterator[Advice]:
    seconds, products = lost_s(clues.trace, clues.work_class, clues.lanes, clues.owned, clues.facts)
    evidence = f"in {counted(products, '{count} {products|product}')} {_LAST_WAVE}"
    yield from _lever(found, "product sizes that fill the last wave", seconds, evidence)


def _recompute(found: Explained, clues: Clues) -> Iterator[Advice]:
    if clues.attribution is not None and clues.attribution.recompute.any():
        rows = clues.attribution.recompute
        evidence = counted(
            int(rows.sum()), "{count} {kernels run|kernel runs} forward work once more for the backward pass"
        )
        yield from _lever(found, "recompute less, where memory allows", clues.owned_s(rows), evidence)


def _record(found: Explained, _: Clues) -> Iterator[Advice]:
    """What to switch on in the profiler: worth no time, but better figures."""
    known, share = found.attributed_fraction, found.share
    if known is None or share is None:
        return
    for advice in sorted(share.advice, key=lambda each: -cured_s(share, each)):
        why = _percent(cured_s(share, advice), share.matmul_s)
        evidence = f"attributed {known:.0%} of matmul time; {why} of it lacks this"
        yield Advice(lever=advice.rstrip("."), seconds=None, fraction=None, evidence=evidence)
