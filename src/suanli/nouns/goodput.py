"""What `goodput` answers: field names are the JSON keys, `metadata` their unit and help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.units import DAY, HOUR


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What interrupts a job, how often."""

    cause: str = _doc("", "component or reason")
    count: int = _doc("interrupts", "seen in the table's time")
    fraction: float = _doc("fraction", "of all interrupts")


@dataclass(frozen=True, kw_only=True)
class FailureTable:
    """Interrupts published: how many GPUs ran how long and what stopped them, or a mean alone."""

    name: str = _doc("", "name of the preset")
    gpus: int = _doc("GPUs", "in the job")
    days: float | None = _doc("days", "observed; None where only the mean is published", default=None)
    interrupts: int | None = _doc("interrupts", "that were not planned; None where only the mean is", default=None)
    mtti_hours: float | None = _doc("hours", "the mean, where that is what is published", default=None)
    causes: tuple[Cause, ...] = _doc("", "by cause, where they are known", default=())
    source: str = _doc("", "where from")
    notes: tuple[str, ...] = _doc("", "what to know of it", default=())

    @property
    def exposure(self) -> float | None:
        """GPU-hours watched."""
        return None if self.days is None else self.gpus * self.days * DAY / HOUR

    @property
    def gpu_hours_per_interrupt(self) -> float:
        """MTBF of one GPU with its share of everything else, in hours."""
        if self.mtti_hours is not None:
            return self.mtti_hours * self.gpus
        assert self.exposure is not None and self.interrupts
        return self.exposure / self.interrupts


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A failure rate with what it was taken from."""

    mtti_s: float = _doc("s", "mean time to interrupt of the job")
    low_s: float | None = _doc("s", "lower end of the 90 % interval; None where the rate was given, not counted")
    high_s: float | None = _doc("s", "upper end of it")
    gpu_hours: float = _doc("GPU-hours", "of one interrupt")
    source: str = _doc("", "how it was found")
    interrupts: int | None = _doc("interrupts", "counted; None where the rate was given", default=None)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A checkpoint interval and what it costs."""

    rule: str = _doc("", "young, daly, exact or given")
    interval_s: float | None = _doc("s", "work between two checkpoints; None: never")
    lost: float = _doc("fraction", "of wall time: checkpoints, replay, restarts; exact, whatever the rule")


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """What another interval between checkpoints would cost."""

    interval_s: float = _doc("s", "work between two checkpoints")
    lost: float = _doc("fraction", "of wall time")


@dataclass(frozen=True, kw_only=True)
class Loss:
    """One entry of the wall time."""

    entry: str = _doc("", "useful, checkpoint, replay, restart, spare wait, stragglers, maintenance")
    fraction: float = _doc("fraction", "of wall time; all entries close to 1")
    why: str = _doc("", "how it comes about")


@dataclass(frozen=True, kw_only=True)
class Lever:
    """What one change would do."""

    change: str = _doc("", "what is changed, all else equal")
    goodput: float = _doc("fraction", "then")
    gain: float = _doc("fraction", "goodput then less goodput now")


@dataclass(frozen=True, kw_only=True)
class Finish:
    """When the work is done, simulated."""

    work_days: float = _doc("days", "of useful time needed")
    mean_days: float = _doc("days", "expected wall time")
    percentiles: Mapping[str, float] = _doc("days", "wall time not passed in that many of 100 runs")
    runs: int = _doc("runs", "simulated")
    seed: int = _doc("", "of the generator: the same again gives the same")


@dataclass(frozen=True, kw_only=True)
class Goodput:
    """Availability and useful time of a long run."""

    gpus: int | None = _doc("GPUs", "in the job; None where only MTTI is known")
    mtti_s: float = _doc("s", "mean time to interrupt of the job")
    mttr_s: float = _doc("s", "mean time from an interrupt until work goes on")
    rate: Rate = _doc("", "where the failure rate comes from")
    availability: float = _doc("fraction", "MTTI/(MTTI + MTTR)")
    interval_s: float | None = _doc("s", "checkpoint interval used")
    intervals: tuple[Interval, ...] = _doc("", "the best by each rule, side by side")
    goodput: float = _doc("fraction", "useful part of wall time (ETTR)")
    loss: Mapping[str, float] = _doc("fraction", "parts of wall time that are not useful")
    goodput_interval: tuple[float, float] | None = _doc(
        "fraction", "90 % interval from the number of failures seen; None where the rate was given", default=None
    )
    account: tuple[Loss, ...] = _doc("", "useful and lost time; closes to 1")
    first_order: Mapping[str, float] = _doc("fraction", "C/τ, τ/2M and R/M at Young's interval, of useful time")
    useful_mfu: float | None = _doc("fraction", "goodput × MFU: useful model FLOPs over peak, of wall time; with --mfu")
    causes: tuple[Cause, ...] = _doc("", "of the failures, where known")
    levers: tuple[Lever, ...] = _doc("", "what a change would bring, best first")
    finish: Finish | None = _doc("", "percentiles of the wall time; with --days")
    curve: tuple[CurvePoint, ...] = _doc("", "wall time lost over the interval, around the best", default=())


@dataclass(frozen=True, kw_only=True)
class MeasuredGoodput:
    """What a log of events says of a run."""

    gpus: int | None = _doc("GPUs", "in the job, as given")
    wall_s: float = _doc("s", "first start to last end")
    goodput: float = _doc("fraction", "training over wall time")
    loss: Mapping[str, float] = _doc("fraction", "parts of wall time that are not useful, by kind")
    account: tuple[Loss, ...] = _doc("", "useful and lost time, gaps as `unexplained`; closes to 1")
    causes: tuple[CauseTime, ...] = _doc("", "downtime and replay by cause of interrupt, most first")
    interrupts: int = _doc("interrupts", "rows of kind restart")
    rate: Rate | None = _doc("", "fitted failure rate; None where nothing failed")
    mttr_s: float | None = _doc("s", "mean length of a restart; None where nothing failed")
    availability: float | None = _doc("fraction", "MTTI/(MTTI + MTTR); None where nothing failed")
    reasons: Mapping[str, str] = _doc("", "why a figure is None", default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CauseTime:
    """What one cause of interrupts took."""

    cause: str = _doc("", "as written in the log")
    count: int = _doc("interrupts", "of that cause")
    seconds: float = _doc("s", "down because of it")
    replay_s: float = _doc("s", "replayed after its interrupts")
    fraction: float = _doc("fraction", "both, of wall time")
