"""The utilisation of runs like this one: the median of the published runs nearest in size on the same GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from statistics import median

from suanli.catalog.devices import find_device
from suanli.catalog.runs import measured_rate_per_gpu, published_runs
from suanli.errors import AmbiguousNameError, Fault, InputError, UnknownNameError
from suanli.measure import flops_per_token
from suanli.nouns.convention import Convention
from suanli.nouns.hardware import Device
from suanli.nouns.run import PublishedRun
from suanli.nouns.workload import Workload
from suanli.recount import arch_of, letters_of
from suanli.units import GIGA, TERA, format_count, format_percent

PERCENT = 0.01
NEAREST = 9  # runs the median is taken of; an odd number, so that it is one of them
SIXTEEN_BIT = ("bf16", "fp16")
GPUS_WEIGHT = 0.25
FAR = 3  # a run is of a like size within this factor
_PRECISIONS = {"bf16": ("bf16", "fp16"), "fp16": ("fp16", "bf16"), "fp8": ("fp8",)}


@dataclass(frozen=True)
class Typical:
    """A median utilisation, its spread, and the runs it comes from."""

    mfu: float
    low: float
    high: float
    runs: tuple[str, ...]
    sentence: str


def typical_mfu(params: int, device: Device, dtype: str, convention: Convention, gpus: int | None = None) -> Typical:
    """Median MFU under the convention. Raises InputError where no run on that GPU and dtype is published.

    Runs are near by the ratio of their sizes and, where `gpus` is given, a little by the ratio of their GPU counts.
    """
    found = comparable_runs(device, dtype, convention)
    if not found:
        raise InputError(
            Fault(
                code="no_published_run",
                message=f"no {dtype} training run on {device.short_id} is published with a rate and a shape",
                where="--mfu",
                expected="--mfu, --hfu or --tflops-per-gpu",
                hint="The utilisation is taken from published runs on the same GPU only, never from another.",
            )
        )
    near = nearest(found, params, gpus, NEAREST)
    values = sorted(mfu for _, mfu, _ in near)
    middle = median(values)
    sentence = _sentence(near, values, device, params)
    return Typical(middle, values[0], values[-1], tuple(run.id for *_, run in near), sentence)


Row = tuple[float, float, PublishedRun]  # parameters, MFU, the run


def comparable_runs(device: Device, dtype: str, convention: Convention) -> list[Row]:
    """Pre-training runs on that GPU in that dtype whose MFU under the convention is known."""
    return [
        (size, mfu, run)
        for run in published_runs()
        if _comparable(run, device, dtype)
        and (size := (run.params_active_b or run.params_total_b or 0) * GIGA)
        and (mfu := _mfu(run, convention, device, dtype)) is not None
    ]


def nearest(rows: Iterable[Row], params: float, gpus: int | None, count: int) -> list[Row]:
    """The `count` runs most like one of so many parameters on so many GPUs."""
    return sorted(rows, key=lambda row: (_distance(row[0], row[2].gpu_count, params, gpus), row[2].id))[:count]


def _distance(size: float, count: int | None, params: float, gpus: int | None) -> float:
    """How unlike two runs are: ratios of parameters and, weighing a quarter, of GPUs, both as logarithms."""
    scale = abs(math.log(count / gpus)) if count and gpus else 0.0
    return abs(math.log(size / params)) + GPUS_WEIGHT * scale


def _sentence(near: list[tuple[float, float, PublishedRun]], values: list[float], device: Device, params: int) -> str:
    sizes = sorted((run.params_active_b or run.params_total_b or 0) * GIGA for *_, run in near)
    counts = sorted(run.gpu_count or 1 for *_, run in near)
    names = ", ".join(dict.fromkeys(run.model for *_, run in near))
    family = device.family.upper()
    if len(near) == 1:
        return (
            f"the only published run on {family}: {names}, {format_count(sizes[0])} on {counts[0]:,} ({near[0][2].id})"
        )
    return (
        f"median of {len(near)} published runs nearest in size and GPUs on {family} "
        f"({format_count(sizes[0])} to {format_count(sizes[-1])} on {counts[0]:,} to {counts[-1]:,}: {names}; "
        f"{format_percent(values[0], 1)} to {format_percent(values[-1], 1)}; "
        f"{', '.join(run.id for *_, run in near)}){_far(sizes, params)}"
    )


def _far(sizes: list[float], params: int) -> str:
    """A warning where no run is of a like size."""
    closest = min(sizes, key=lambda size: abs(math.log(size / params)))
    if 1 / FAR <= closest / params <= FAR:
        return ""
    return f"; none is near in size: the nearest has {format_count(closest)}, so take it with care"


def _comparable(run: PublishedRun, device: Device, dtype: str) -> bool:
    """A pre-training run on the same kind of GPU in the same kind of dtype."""
    if not run.task.startswith("pretrain"):
        return False
    words = (run.precision or "").lower()
    right = any(name in words for name in _PRECISIONS.get(dtype, (dtype,)))
    return right and ("fp8" in words) == (dtype == "fp8") and device.short_id in _devices_meant(run.gpu)


@cache
def _devices_meant(text: str) -> frozenset[str]:
    """Short ids a published run's GPU name may mean."""
    try:
        return frozenset((find_device(text).short_id,))
    except AmbiguousNameError as problem:
        return frozenset(problem.faults[0].nearest)
    except UnknownNameError:
        return frozenset()


@cache
def _mfu(run: PublishedRun, convention: Convention, device: Device, dtype: str) -> float | None:
    """MFU of a published run against the peak of the dtype asked for: under the convention where its rate and shape
    are printed, else as printed (16 bit only: other printed figures are over one peak or another); None else."""
    rate, letters = measured_rate_per_gpu(run), letters_of(run)
    if not run.peak_tflops_bf16:
        return None
    if rate is None or letters is None:
        sure = run.mfu_pct and not run.flag and dtype in SIXTEEN_BIT
        return run.mfu_pct * PERCENT if sure and run.mfu_pct else None
    workload = Workload(phase="train", seq=letters.seq)
    per = flops_per_token(arch_of(letters), workload, convention, "none")
    sixteen = next(name for name in SIXTEEN_BIT if name in device.peaks_flop_per_s)  # V100 has no bf16
    faster = device.peak_flop_per_s(dtype) / device.peak_flop_per_s(sixteen)  # times the run's own: forms differ
    return per.model * rate / (run.peak_tflops_bf16 * TERA * faster)
