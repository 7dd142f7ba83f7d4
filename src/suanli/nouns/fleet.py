"""What `explain` answers for many ranks: where their time went, who waited for whom. Field names are JSON keys.

Times of different ranks are compared only after their clocks were aligned by the collectives they share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.explained import AccountEntry
from suanli.nouns.trace import TraceFault


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class RankRow:
    """One device of one rank. Figures of a step are medians over its steps; without steps, of the whole window."""

    rank: int = _doc("", "of the process")
    device: int = _doc("", "number in its trace")
    name: str | None = _doc("", "of the device; None: not said")
    host: str | None = _doc("", "machine; None: the file name does not tell")
    path: str = _doc("", "of the trace")
    steps: int = _doc("", "found in its trace")
    step_s: float = _doc("s", "a step, or the window where there are none")
    compute_s: float = _doc("s", "of a step: kernels that do not communicate")
    exposed_communication_s: float = _doc("s", "of a step: communication less compute")
    idle_s: float = _doc("s", "of a step: nothing runs")
    window_s: float = _doc("s", "first start to last end of its work")
    waiting_s: float = _doc("s", "of its window: in collectives, before the last rank came")
    waited_for_s: float = _doc("s", "the others' waiting in collectives to which this rank came last, summed over them")
    last: int = _doc("", "matched collectives to which it came last")
    matched: int = _doc("", "its communication kernels that were matched with those of other ranks")
    communication: int = _doc("", "its communication kernels")
    clock: int | None = _doc("", "ranks of the same number have aligned clocks; None: no matched collective")
    clock_offset_s: float | None = _doc("s", "its clock less that of the first rank of its number; None: not aligned")
    clock_residual_s: float | None = _doc("s", "median distance of its ends of collectives from the others', aligned")
    attributed_fraction: float | None = _doc("fraction", "of its matmul time; None: no matmul time")
    account: tuple[AccountEntry, ...] = _doc("s", "of its window")
    step_times_s: tuple[float | None, ...] = _doc("s", "each step of `step_names`; None: it has none of that name")
    step_computes_s: tuple[float | None, ...] = _doc("s", "of each of them, kernels that do not communicate")


@dataclass(frozen=True, kw_only=True)
class FleetCollective:
    """All calls of one collective on one group, over the ranks that are here."""

    collective: str = _doc("", "all-reduce, all-gather …, or as the kernel is called")
    group: str | None = _doc("", "process group or communicator; None: not said")
    group_size: int | None = _doc("ranks", "None: not said")
    ranks: int = _doc("", "of the group that are here")
    calls: int = _doc("", "calls that were matched over at least two ranks")
    total_s: float = _doc("s", "of their kernels, over all ranks, waiting included")
    waiting_s: float = _doc("s", "of that, before the last rank came")
    skew_median_s: float = _doc("s", "first to last arrival, half of the calls have less")
    skew_max_s: float = _doc("s", "first to last arrival, the largest")
    transfer_s: float = _doc("s", "sum over calls of the shortest kernel of any rank: the one that came last")
    last_rank: int = _doc("", "rank that most often came last")
    last_fraction: float = _doc("fraction", "of the calls, to which it did")
    bytes: int | None = _doc("B", "whole tensors of all calls; None: not said for all of them")
    algbw_bytes_per_s: float | None = _doc("B/s", "bytes over transfer_s; None with a reason")
    busbw_bytes_per_s: float | None = _doc("B/s", "what each rank sends over transfer_s; None with a reason")
    link_bytes_per_s: float | None = _doc("B/s", "one direction of the link in a node; None: not known")
    above_link: bool | None = _doc("", "busbw is above it: reduced in the network, or other bytes moved; None: n/a")
    formula: str = _doc("", "of the two rates")
    reasons: Mapping[str, str] = _doc("", "why a rate is None", default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FleetStep:
    """One step over all devices that have it."""

    name: str = _doc("", "as marked, or its number")
    ranks: int = _doc("", "devices that have it")
    median_s: float = _doc("s", "of the device in the middle")
    longest_s: float = _doc("s", "of the slowest device")
    compute_median_s: float = _doc("s", "kernels that do not communicate, of the device in the middle")
    compute_longest_s: float = _doc("s", "of the device that computes longest")
    slowest_rank: int = _doc("", "that computes longest")


@dataclass(frozen=True, kw_only=True)
class FleetKernel:
    """All runs of one kernel that computes, over all devices."""

    name: str = _doc("", "as printed")
    ranks: int = _doc("", "devices that run it")
    count: int = _doc("", "runs, over all of them")
    total_s: float = _doc("s", "of all runs on all devices")
    median_s: float = _doc("s", "of all runs on the device in the middle")
    longest_s: float = _doc("s", "of all runs on the slowest device")
    slowest_rank: int = _doc("", "where they take longest")


@dataclass(frozen=True, kw_only=True)
class Wait:
    """One rank waits for another that comes last to their collectives."""

    waiting: int = _doc("", "rank that was there before")
    waited_for: int = _doc("", "rank that came last")
    seconds: float = _doc("s", "between their arrivals, summed over the calls")
    calls: int = _doc("", "collectives")


@dataclass(frozen=True, kw_only=True)
class Straggler:
    """A rank that takes longer for the same work than the ranks beside it."""

    rank: int = _doc("", "of the process")
    device: int = _doc("", "number in its trace")
    by: str = _doc("", "step: compute of steps; kernel: runs of one kernel")
    what: str = _doc("", "steps, or the kernel")
    seconds: float = _doc("s", "its own: of a step, or of all runs of the kernel")
    median_s: float = _doc("s", "of the ranks beside it")
    mad_s: float = _doc("s", "median distance from that median")
    threshold_s: float = _doc("s", "what a straggler takes at least")
    slower_fraction: float = _doc("fraction", "above the median")
    times: int = _doc("", "steps, or runs")
    of: int = _doc("", "steps looked at, or runs")
    beside: int = _doc("", "ranks it was compared with, itself included")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Ranks at one place of the pipeline."""

    stage: int = _doc("", "place, from 0")
    ranks: tuple[int, ...] = _doc("", "at this place")
    compute_s: float = _doc("s", "of a step, median over its ranks")
    idle_s: float = _doc("s", "of a step, median over its ranks")
    exposed_communication_s: float = _doc("s", "of a step, median over its ranks")
    relative: float | None = _doc("", "its compute over the mean of all stages; None: none computes")


@dataclass(frozen=True, kw_only=True)
class ExpertGroup:
    """Ranks that exchange tokens: how evenly what comes in is spread."""

    group: str | None = _doc("", "process group; None: not said")
    ranks: tuple[int, ...] = _doc("", "that are here")
    calls: int = _doc("", "all-to-alls, dispatches and combines of one rank")
    received_bytes: tuple[int, ...] = _doc("B", "by each of the ranks, over all calls")
    mean_bytes: float = _doc("B", "over the ranks")
    busiest: int = _doc("", "rank that receives most")
    imbalance: float | None = _doc("fraction", "most over mean, less one; None: nothing is received")


@dataclass(frozen=True, kw_only=True)
class LostRank:
    """A file that was not read, or a rank without a file."""

    path: str | None = _doc("", "as given; None: there is no file")
    ranks: str = _doc("", "which, as far as known; empty: not known")
    reason: str = _doc("", "what is wrong")


@dataclass(frozen=True, kw_only=True)
class FleetReport:
    """Where the time of many ranks went."""

    account: tuple[AccountEntry, ...] = _doc("s", "device time of all ranks by what it goes to; adds up to peak_s")
    peak_s: float = _doc("s", "the windows of all devices together")
    attributed_fraction: float | None = _doc("fraction", "of matmul time; None: no matmul time")
    ranks: tuple[RankRow, ...] = _doc("", "each device of each rank, by rank")
    world_size: int | None = _doc("ranks", "of the job; None: not said")
    step_names: tuple[str, ...] = _doc("", "of the steps that any rank has")
    steps: tuple[FleetStep, ...] = _doc("", "each of them over all ranks")
    kernels: tuple[FleetKernel, ...] = _doc("", "that compute, by their time over all ranks, at most 100")
    collectives: tuple[FleetCollective, ...] = _doc("", "by collective and group, the longest waiting first")
    matched_fraction: float | None = _doc(
        "fraction", "of communication kernels, matched over ranks; None: there are none"
    )
    unmatched: Mapping[str, int] = _doc("", "kernels that were not matched, by reason", default_factory=dict)
    waits: tuple[Wait, ...] = _doc("s", "who waits for whom, the longest first, at most 100")
    stragglers: tuple[Straggler, ...] = _doc("", "ranks slower than those beside them, the slowest first")
    straggler_rule: str = _doc("", "when a rank is one")
    stages: tuple[Stage, ...] = _doc("", "of the pipeline")
    experts: tuple[ExpertGroup, ...] = _doc("", "groups that exchange tokens")
    lost: tuple[LostRank, ...] = _doc("", "what was not read")
    findings: tuple[str, ...] = _doc("", "what stands out, each with its evidence")
    warnings: tuple[TraceFault, ...] = _doc("", "what is wrong with the traces, added up over ranks")
    reasons: Mapping[str, str] = _doc("", "why a part is empty or a figure None", default_factory=dict)
