"""What `scale` reads and answers: field names are the JSON keys, `metadata` their unit and help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.errors import FaultList, InputError


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A kind of figure that sizes are compared by."""

    name: str
    form: str  # time, throughput, rate
    unit: str
    doc: str


METRICS = {
    metric.name: metric
    for metric in (
        Metric(name="step_time_s", form="time", unit="s", doc="time of one step"),
        Metric(name="minutes", form="time", unit="min", doc="time to train: convergence is in it"),
        Metric(name="tokens_per_s", form="throughput", unit="tokens/s", doc="all GPUs together"),
        Metric(name="samples_per_s", form="throughput", unit="samples/s", doc="all GPUs together"),
        Metric(name="tokens_per_s_per_gpu", form="rate", unit="tokens/s", doc="one GPU"),
        Metric(name="tflops_per_gpu", form="rate", unit="TFLOP/s", doc="one GPU"),
        Metric(name="mfu", form="rate", unit="fraction", doc="model FLOPs utilisation"),
        Metric(name="hfu", form="rate", unit="fraction", doc="hardware FLOPs utilisation"),
    )
}
STRONG, WEAK, MIXED, UNKNOWN = "strong", "weak", "mixed", "unknown"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A measured value and half a unit of its last printed digit."""

    value: float
    half_digit: float = 0.0

    @property
    def ends(self) -> tuple[float, float]:
        """What the value may be before it was rounded."""
        return self.value - self.half_digit, self.value + self.half_digit


@dataclass(frozen=True, kw_only=True)
class Size:
    """One measured size of a cluster."""

    gpus: int
    figures: Mapping[str, Figure]
    global_batch: int | None = None
    words: Mapping[str, str] = field(default_factory=dict)  # software, machine …: what ought to be the same


@dataclass(frozen=True, kw_only=True)
class Series:
    """Sizes of one model on one kind of machine, fewest GPUs first. Raises InputError listing what cannot be."""

    name: str
    sizes: tuple[Size, ...]

    def __post_init__(self) -> None:
        """Check sizes against one another."""
        faults = FaultList(InputError)
        counts = [size.gpus for size in self.sizes]
        if len(set(counts)) < 2:
            faults.add(code="one_size", message="one size alone says nothing of scaling", where=self.name,
                       got=f"{len(self.sizes)} point{'s' if len(self.sizes) != 1 else ''}",
                       expected="two numbers of GPUs, or more")  # fmt: skip
        twice = sorted({count for count in counts if counts.count(count) > 1})
        if twice:
            faults.add(code="duplicate_size", message="a size is given twice", where=self.name,
                       got=", ".join(f"{count:,} GPUs" for count in twice), expected="each number of GPUs once",
                       hint="Keep one row of each, or their mean.")  # fmt: skip
        if not twice and not self.shared:
            faults.add(code="no_common_metric", message="no figure is there for every size", where=self.name,
                       expected="one of " + ", ".join(METRICS) + " in every row")  # fmt: skip
        faults.raise_if_any()

    @property
    def shared(self) -> tuple[str, ...]:
        """Metrics that every size has."""
        return tuple(name for name in METRICS if all(name in size.figures for size in self.sizes))


@dataclass(frozen=True, kw_only=True)
class Form:
    """A linear speed-up ratio by one kind of figure."""

    by: str = _doc("", "figure it is from")
    ratio: float = _doc("fraction", "rate of a GPU at more GPUs over that at fewer")
    low: float = _doc("fraction", "least it may be, by the last printed digits")
    high: float = _doc("fraction", "most it may be")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two sizes compared."""

    from_: int = _doc("GPUs", "fewer")
    to: int = _doc("GPUs", "more")
    ratio: float = _doc("fraction", "linear speed-up ratio, by `by`")
    by: str = _doc("", "figure it is from")
    forms: tuple[Form, ...] = _doc("", "by every figure that both sizes have")
    agree: bool | None = _doc("", "whether the forms are one within their digits; None where there is one form")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A fitted number and its interval."""

    name: str = _doc("", "letter of the law")
    value: float = _doc("", "fitted")
    low: float | None = _doc("", "lower end of the 90 % interval; None where the points do not bound it")
    high: float | None = _doc("", "upper end")


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A law fitted to a series."""

    law: str = _doc("", "power, amdahl, gustafson, usl, or planner: that of `suanli layout`, times a factor")
    parameters: tuple[Parameter, ...] = _doc("", "with intervals")
    error: float = _doc("fraction", "root mean square of log(fitted/measured)")
    held_out: float | None = _doc("fraction", "mean |log error| at sizes kept aside one after another; None: too few")
    peak_gpus: float | None = _doc("GPUs", "past which more make the whole slower; None: the law has none in reach")
    chosen: bool = _doc("", "whether projections use it")


@dataclass(frozen=True, kw_only=True)
class Projected:
    """What a larger size would do."""

    gpus: int = _doc("GPUs", "asked for")
    ratio: float = _doc("fraction", "linear speed-up ratio to the smallest size")
    low: float = _doc("fraction", "lower end of the 90 % interval")
    high: float = _doc("fraction", "upper end")
    speedup: float = _doc("", "whole rate over that of the smallest size")


@dataclass(frozen=True, kw_only=True)
class PlannedSize:
    """What the planner of layouts says of one size."""

    gpus: int = _doc("GPUs", "measured, or projected to")
    global_batch: int = _doc("sequences", "of a step")
    layout: str = _doc("", "the fastest under what is pinned")
    step_time_s: float = _doc("s", "as `suanli layout` has it")
    tokens_per_second_per_gpu: float = _doc("tokens/s", "one GPU")
    mfu: float = _doc("fraction", "model FLOPs utilisation, convention causal")


@dataclass(frozen=True, kw_only=True)
class Planner:
    """The planner's own communication model over the sizes of a series. No sizes where it cannot be used."""

    sizes: tuple[PlannedSize, ...] = _doc("", "measured and projected ones, fewest GPUs first")
    reason: str | None = _doc("", "why it cannot be used; None where it can", default=None)


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """The chosen law at one size."""

    gpus: int = _doc("GPUs", "")
    speedup: float = _doc("", "whole rate over that of the smallest size")


@dataclass(frozen=True, kw_only=True)
class SizeRow:
    """One size as it stands against the smallest."""

    gpus: int = _doc("GPUs", "")
    value: float = _doc("", "figure as measured")
    ratio: float = _doc("fraction", "linear speed-up ratio to the smallest size")
    speedup: float = _doc("", "whole rate over that of the smallest size")
    global_batch: int | None = _doc("sequences", "of a step, where known")


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """A series of sizes: how near to linear, by which law, and what more GPUs would give."""

    series: str = _doc("", "name")
    kind: str = _doc("", "strong, weak, mixed or unknown")
    by: str = _doc("", "figure compared")
    sizes: tuple[SizeRow, ...] = _doc("", "fewest GPUs first")
    pairs: tuple[Pair, ...] = _doc("", "each size with the next, and the first with the last")
    fits: tuple[Fit, ...] = _doc("", "laws tried, the chosen one first")
    fit: Fit | None = _doc("", "the chosen one; None with fewer than three sizes")
    projection: tuple[Projected, ...] = _doc("", "larger sizes asked for")
    warnings: tuple[str, ...] = _doc("", "why forms or sizes are not to be compared", default=())
    advice: tuple[str, ...] = _doc("", "what limits, and what to do", default=())
    curve: tuple[CurvePoint, ...] = _doc(
        "", "the chosen law from the smallest size to the largest asked for", default=()
    )
    planner: Planner | None = _doc("", "what the planner of layouts says; with --model", default=None)
    reasons: Mapping[str, str] = _doc("", "why a figure is None", default_factory=dict)
