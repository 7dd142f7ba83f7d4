"""A stack's profile fitted further to own runs, and the profiles that ship fitted again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.profile import StackProfile


def _field(unit: str, doc: str, default: Any = ...) -> Any:
    metadata = {"unit": unit, "doc": doc}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class NumberFit:
    """One number of a profile, before and after."""

    name: str = _field("", "of the profile")
    unit: str = _field("", "of its values; empty: a factor or a share")
    meaning: str = _field("", "what it is")
    before: float = _field("", "believed before the runs were seen: the prior")
    after: float = _field("", "as fitted")
    spread_before: float = _field("", "of the logarithm, of what is believed")
    spread_after: float = _field("", "of the logarithm, with the runs")
    told: bool = _field("", "whether any run depends on it")


@dataclass(frozen=True, kw_only=True)
class RunFit:
    """One own run. Errors are predicted over measured less 1."""

    id: str = _field("", "name of the run")
    layout: str = _field("", "how it was laid over GPUs; the fastest that fits where the file leaves it open")
    gpus: int = _field("", "GPUs")
    global_batch: int = _field("sequences", "of a step")
    step_s: float = _field("s", "measured")
    before_s: float = _field("s", "predicted by the stack as it was")
    held_out_s: float = _field("s", "predicted by what the other runs give")
    error_before_fraction: float = _field("fraction", "of the stack as it was")
    error_held_out_fraction: float = _field("fraction", "of what the other runs give")
    memory_bytes: int = _field("bytes", "of the fullest rank, predicted")
    fits: bool | None = _field("", "whether that fits the device; None where its memory is not known")


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """A stack calibrated to own runs."""

    name: str = _field("", "of the calibrated stack")
    base: str = _field("", "stack that it was calibrated from")
    device: str = _field("", "device and dtype of the runs")
    numbers: tuple[NumberFit, ...] = _field("", "of the profile, those that the runs tell first")
    runs: tuple[RunFit, ...] = _field("", "in the file's order")
    half_width_before: float = _field("", "of the 80 % interval of the logarithm, as shipped")
    half_width_after: float = _field("", "the same from every run predicted by the others")
    narrower_fraction: float = _field("fraction", "by how much the interval shrank; below 0: it grew")
    mean_error_before_fraction: float = _field("fraction", "mean size of the runs' errors as shipped")
    mean_error_held_out_fraction: float = _field("fraction", "the same, each run predicted by the others")
    extrapolates: tuple[str, ...] = _field("", "where predictions with it go beyond the runs")
    warnings: tuple[str, ...] = _field("", "runs that do not fit, or contradict one another", ())
    profile: StackProfile = field(metadata={"doc": "the stack as it is now", "hidden": True})


@dataclass(frozen=True, kw_only=True)
class KernelClass:
    """Measured kernels that are alike, beside the curves of their device."""

    what: str = _field("", "product or attention with its dtype, or a collective")
    size: str = _field("", "which sizes")
    rows: int = _field("", "different sizes")
    runs: int = _field("", "kernels")
    seconds: float = _field("s", "of all runs, measured")
    curve_s: float = _field("s", "of all runs, by the curves")
    ratio: float = _field("", "measured over curve, by time")
    spread: float = _field("", "of the logarithm among sizes, by time")
    rate: float | None = _field("", "reached, by time: FLOP/s of products and attention, B/s on the bus of collectives")
    peak_fraction: float | None = _field("fraction", "of the dense peak; None for collectives")
    fitted: bool = _field("", "whether a number of the stack is fitted to them")


@dataclass(frozen=True, kw_only=True)
class CalibratedKernels:
    """A stack calibrated to kernels that traces measured."""

    name: str = _field("", "of the calibrated stack")
    base: str = _field("", "stack that it was calibrated from")
    device: str = _field("", "device and dtype of the kernels")
    numbers: tuple[NumberFit, ...] = _field("", "of the profile, those that the kernels tell first")
    classes: tuple[KernelClass, ...] = _field("", "kernels beside the curves, products first")
    left_out: dict[str, int] = _field("", "why rows are not among them: reason, rows")
    half_width: float = _field("", "of the 80 % interval of the logarithm of a step time, as before: no step was seen")
    warnings: tuple[str, ...] = _field("", "what to know of them", ())
    profile: StackProfile = field(metadata={"doc": "the stack as it is now", "hidden": True})


@dataclass(frozen=True, kw_only=True)
class ShippedNumber:
    """One number of a shipped profile, as it ships and as it is found again."""

    name: str = _field("", "of the profile; `label: name` where a device, release or family shifts it")
    believed: float = _field("", "before any run is seen; 1 for what shifts it")
    shipped: float | None = _field("", "in the package; None where it is not there")
    fitted: float = _field("", "found now")
    difference_fraction: float | None = _field("fraction", "fitted over shipped less 1")


@dataclass(frozen=True, kw_only=True)
class ShippedFit:
    """A shipped profile fitted again."""

    stack: str = _field("", "its name")
    rows: int = _field("", "runs fitted to")
    own_rows: int = _field("", "of them runs of --rows")
    sources: tuple[str, ...] = _field("", "where the runs are from")
    numbers: tuple[ShippedNumber, ...] = _field("", "those that the runs move, then those of labels")
    kept: tuple[str, ...] = _field("", "numbers that no run tells: as believed")
    half_width_shipped: float = _field("", "of the 80 % interval of the logarithm, in the package")
    half_width_fitted: float = _field("", "the same, found now")
    largest_difference_fraction: float = _field("fraction", "among the numbers that ship")
    profile: StackProfile = field(metadata={"doc": "as found now", "hidden": True})


@dataclass(frozen=True, kw_only=True)
class ShippedFits:
    """Shipped profiles fitted again."""

    stacks: tuple[ShippedFit, ...] = _field("", "one for each stack that has runs of its own")
    largest_difference_fraction: float = _field("fraction", "among all of them")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where fitted numbers come from, as their file says."""

    command: str
    date: str
    data: str = ""
    data_sha256: str = ""
