"""What `explain` answers: where the time of a trace went, as entries that close. Field names are the JSON keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.roofline import KernelGroup, Share, UsefulCheck
from suanli.nouns.trace import TraceFault


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True)
class AccountEntry:
    """One part of the time of a device; every instant is in one part."""

    entry: str = _doc("", "what the time goes to")
    seconds: float = _doc("s", "of the device, in no other entry")
    fraction: float | None = _doc("fraction", "of the account's time; None where that is 0")


@dataclass(frozen=True, kw_only=True)
class Account:
    """Entries that add up to `peak_s`: the time in which a device at its peak would have done the most."""

    peak_s: float = _doc("s", "the whole time: all of it at the peak would be 100 %")
    entries: tuple[AccountEntry, ...] = _doc("s", "where it goes, from idle to useful FLOPs; adds up to peak_s")
    reasons: Mapping[str, str] = _doc("", "why a part is not split further", default_factory=dict)

    def seconds(self, entry: str) -> float:
        """One entry; 0 where the account has none of that name."""
        return next((each.seconds for each in self.entries if each.entry == entry), 0.0)

    @property
    def idle_s(self) -> float:
        """All entries of idle time together."""
        return sum(each.seconds for each in self.entries if each.entry.startswith("idle"))


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Unions of what ran on one device within one window: what other tools show, by one definition.

    The window goes from the first start to the last end of device work. compute: kernels that do not communicate;
    exposed communication: communication less compute, copies not subtracted; idle: nothing runs.
    """

    window_s: float = _doc("s", "first start to last end of device work")
    busy_s: float = _doc("s", "at least one kernel, copy or set runs")
    idle_s: float = _doc("s", "none runs")
    idle_fraction: float | None = _doc("fraction", "of the window; None where it is empty")
    compute_s: float = _doc("s", "union of kernels that do not communicate")
    matmul_s: float = _doc("s", "union of products, convolutions and attention")
    communication_s: float = _doc("s", "union of communication")
    exposed_communication_s: float = _doc("s", "communication less compute; copies do not hide it")
    overlapped_fraction: float | None = _doc("fraction", "of communication beside compute; None: no communication")
    copies_s: float = _doc("s", "union of copies and sets")
    exposed_copies_s: float = _doc("s", "copies with neither kernels nor communication beside them")


@dataclass(frozen=True, kw_only=True)
class DeviceAccount:
    """One device over the whole window."""

    device: int = _doc("", "number in the file")
    name: str | None = _doc("", "as the driver reports it; None: not said")
    catalogue: str | None = _doc("", "short id in the catalogue; None with a reason")
    start_ns: int = _doc("ns", "first start of its work, on the clock of the file")
    end_ns: int = _doc("ns", "last end of its work")
    usage: Usage = _doc("s", "unions, as other tools count them")
    account: Account = _doc("s", "one owner an instant")
    matmul_s: float = _doc("s", "owned by products, convolutions and attention")
    attributed_s: float = _doc("s", "of that, by work whose FLOPs are known")
    attributed_fraction: float | None = _doc("fraction", "of matmul time; None: no matmul time")
    work: int = _doc("", "kernels, copies and sets")
    unlinked: int = _doc("", "of these, without a launch in the file; their time counts all the same")
    flops: float | None = _doc(
        "FLOPs", "of its products, recomputation left out; None: none is attributed", default=None
    )
    recompute_flops: float | None = _doc(
        "FLOPs", "of forward work done once more; None: none is attributed", default=None
    )
    peaks_flop_per_s: Mapping[str, float] = _doc("FLOP/s", "dense, by dtype, of one device", default_factory=dict)
    memory_bytes_per_s: float | None = _doc("B/s", "peak rate of its memory; None: not known", default=None)
    reasons: Mapping[str, str] = _doc("", "why a figure is None", default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step on one device: from the first start of its work to that of the next step."""

    name: str = _doc("", "as marked, or its number")
    device: int = _doc("", "number in the file")
    start_ns: int = _doc("ns", "first start of its work")
    end_ns: int = _doc("ns", "first start of the next step's work; of the last, the last end of its own")
    seconds: float = _doc("s", "between the two")
    work: int = _doc("", "kernels, copies and sets launched in it")
    account: Account = _doc("s", "one owner an instant")
    usage: Usage = _doc("s", "unions of what runs in its time")
    flops: float | None = _doc(
        "FLOPs", "of products in its time, recomputation left out; None: none known", default=None
    )
    recompute_flops: float | None = _doc("FLOPs", "of forward work done once more; None: none known", default=None)


@dataclass(frozen=True, kw_only=True)
class CollectiveRow:
    """All calls of one collective on one group of one device."""

    device: int = _doc("", "number in the file")
    collective: str = _doc("", "all-reduce, all-gather …, or as the kernel is called")
    group: str | None = _doc("", "process group or communicator; None: not said")
    group_size: int | None = _doc("ranks", "None: not said")
    count: int = _doc("", "calls, as device kernels")
    total_s: float = _doc("s", "of their kernels, waiting for other ranks included")
    union_s: float = _doc("s", "instants in which they ran and no earlier communication did")
    overlapped_s: float = _doc("s", "of these, beside compute")
    exposed_s: float = _doc("s", "of these, without compute")
    bytes: int | None = _doc("B", "whole tensors of all calls; None: not said for all of them")
    algbw_bytes_per_s: float | None = _doc("B/s", "bytes over total_s; None with a reason")
    busbw_bytes_per_s: float | None = _doc("B/s", "what each rank sends over total_s; None with a reason")
    above_link: bool | None = _doc(
        "",
        "busbw is above one direction of the link in a node: reduced in the network, or other bytes moved; None: n/a",
    )
    formula: str = _doc("", "of the two rates")
    reasons: Mapping[str, str] = _doc("", "why a rate is None", default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class KernelRow:
    """All runs of one kernel on one device."""

    device: int = _doc("", "number in the file")
    name: str = _doc("", "as printed")
    kind: str = _doc("", "matmul, compute, communication, peer copy or copy")
    count: int = _doc("", "runs")
    total_s: float = _doc("s", "sum of its durations")
    owned_s: float = _doc("s", "of the account: instants that nothing of a higher class has")
    fraction: float | None = _doc("fraction", "owned_s of the device's window")
    flops: float | None = _doc("FLOPs", "of the runs that are attributed; None: of none")
    achieved_flop_per_s: float | None = _doc("FLOP/s", "flops over the time of these runs")
    peak_fraction: float | None = _doc("fraction", "of the dense peak of their dtype; None: not known")
    roof_fraction: float | None = _doc("fraction", "of what the device allows at its FLOPs a byte; None: not known")
    bound: str | None = _doc("", "compute or memory: which roof is the lower; None: not known")
    bytes: float | None = _doc("B", "least moved by the runs where it is known; None: of none")
    achieved_bytes_per_s: float | None = _doc("B/s", "bytes over the time of these runs")
    dtype: str | None = _doc("", "of the inputs of a product; None: not known, or several")
    unlinked: int = _doc("", "runs without a launch in the file")


@dataclass(frozen=True, kw_only=True)
class GraphReplay:
    """Replays of graphs on one device: one launch for many kernels."""

    device: int = _doc("", "number in the file")
    graph: int | None = _doc("", "number of the graph; None: not said")
    launches: int = _doc("", "calls that launched it, as far as the file has them")
    work: int = _doc("", "kernels, copies and sets it ran")
    total_s: float = _doc("s", "sum of their durations")
    kernels: tuple[str, ...] = _doc("", "its kernels by time, the longest first, at most ten")


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One lever, with the most it could return."""

    lever: str = _doc("", "what to change")
    seconds: float | None = _doc("s", "the most the account says it returns; None: none of it, but better figures")
    fraction: float | None = _doc("fraction", "of the account's time")
    evidence: str = _doc("", "what in the trace says so")


@dataclass(frozen=True, kw_only=True)
class TraceRank:
    """One file of a run."""

    rank: int | None = _doc("", "None: not said")
    path: str = _doc("", "as given")
    world_size: int | None = _doc("ranks", "of the run; None: not said")
    devices: int = _doc("", "in the file")
    seconds: float = _doc("s", "windows of its devices")
    idle_fraction: float | None = _doc("fraction", "of these; None: no device work")


@dataclass(frozen=True, kw_only=True)
class ModelUse:
    """What a model needs for the steps of a trace, and how well they used the device."""

    model: str = _doc("", "as given")
    phase: str = _doc("", "train where the trace has a backward pass, else forward")
    seq: int = _doc("tokens", "positions of a sequence")
    batch: int = _doc("sequences", "of one step, on all the devices that share it")
    gpus: int = _doc("GPUs", "that share it")
    convention: str = _doc("", "of the FLOPs")
    step_flops: float = _doc("FLOPs", "of one step, all devices together")
    steps: int = _doc("", "counted, one on each device")
    basis: str = _doc("", "what was taken as a step")
    step_s: float = _doc("s", "the mean of them")
    check: UsefulCheck = _doc("", "the model's FLOPs against those of the kernels")
    dtype: str | None = _doc("", "whose peak MFU stands against: that of most FLOPs; None with a reason")
    peak_flop_per_s: float | None = _doc("FLOP/s", "dense, of one device; None with a reason")
    mfu: float | None = _doc("fraction", "by the model's FLOPs; None with a reason")
    mfu_attributed: float | None = _doc("fraction", "by the kernels' FLOPs, recomputation left out; None with a reason")
    hfu_attributed: float | None = _doc("fraction", "the same with recomputation; None with a reason")
    reasons: Mapping[str, str] = _doc("", "why a figure is None", default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StripSpan:
    """What a stream ran from one instant to another: one piece of work, or several where they are dense."""

    stream: int | None = _doc("", "stream, queue or line; None: several of little work together")
    kind: str = _doc("", "matmul, compute, communication or copies: what most of it is")
    start_s: float = _doc("s", "from the start of the strip")
    end_s: float = _doc("s", "from the start of the strip")
    busy_s: float = _doc("s", "of that, with work")
    work: int = _doc("", "kernels, copies and sets")
    name: str = _doc("", "of the longest of them, as printed")


@dataclass(frozen=True, kw_only=True)
class Strip:
    """One step of one device to be drawn: lanes of streams over time, merged where they are dense."""

    device: int = _doc("", "number in the file")
    name: str = _doc("", "of the step; empty: no steps were found, a part of the window")
    start_ns: int = _doc("ns", "on the clock of the file")
    end_ns: int = _doc("ns", "on the clock of the file")
    work: int = _doc("", "kernels, copies and sets in it")
    spans: tuple[StripSpan, ...] = _doc("", "by stream, then time")


@dataclass(frozen=True, kw_only=True)
class Explained:
    """Where the time of one trace went."""

    path: str = _doc("", "as given")
    format: str = _doc("", "of the file")
    rank: int | None = _doc("", "None: not said")
    account: tuple[AccountEntry, ...] = _doc("s", "device time of all devices by what it goes to; adds up to peak_s")
    peak_s: float = _doc("s", "the windows of all devices together")
    attributed_fraction: float | None = _doc("fraction", "of matmul time; None: no matmul time")
    devices: tuple[DeviceAccount, ...] = _doc("", "each device over its whole window")
    steps: tuple[Step, ...] = _doc("", "each step on each device")
    steps_found: str = _doc("", "how steps were told apart, or why not")
    whole_steps: tuple[Usage, ...] = _doc(
        "s", "a device each: what was launched from the first step's start to the end of the last but one", default=()
    )
    kernels: tuple[KernelRow, ...] = _doc("", "kernels by time owned")
    collectives: tuple[CollectiveRow, ...] = _doc("", "communication by collective and group")
    roofline: tuple[KernelGroup, ...] = _doc("", "work by kernel, operator and shapes under the roof", default=())
    graphs: tuple[GraphReplay, ...] = _doc("", "graph replays")
    advice: tuple[Advice, ...] = _doc("", "levers by what they could return at most")
    warnings: tuple[TraceFault, ...] = _doc("", "what is wrong with the file, or missing")
    reasons: Mapping[str, str] = _doc("", "why a figure is None", default_factory=dict)
    share: Share | None = _doc(
        "", "why matmul time has no FLOPs, and what to switch on; None: not attributed", default=None
    )
    ranks: tuple[TraceRank, ...] = _doc("", "the rank of each file", default=())
    model: ModelUse | None = _doc("", "what the model needs against the trace; None: no model given", default=None)
    against: TraceDifference | None = _doc("", "less what a layout predicts; None: none given", default=None)
    compared: TraceDifference | None = _doc("", "less another trace; None: none given", default=None)
    strip: Strip | None = field(
        default=None,
        metadata={"unit": "", "doc": "the step in the middle, to be drawn; not in the JSON", "hidden": True},
    )


@dataclass(frozen=True, kw_only=True)
class TraceDifference:
    """Two accounts entry by entry; the differences add up to that of the totals."""

    basis: str = _doc("", "mean step, or the whole window")
    first_s: float = _doc("s", "of the first")
    second_s: float = _doc("s", "of the second")
    difference_s: float = _doc("s", "second less first")
    rows: tuple[Any, ...] = _doc("s", "by entry, largest difference first")
    kernels: tuple[Any, ...] = _doc("s", "by kernel, seconds owned on the same basis, largest difference first")
