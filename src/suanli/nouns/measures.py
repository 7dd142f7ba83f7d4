"""What `mfu` and `train` answer: field names are the JSON keys, `metadata` their unit and help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


GIVEN_HOURS = "the GPU-hours are given"  # why a plan has no intervals


@dataclass(frozen=True, kw_only=True)
class Peak:
    """What a utilisation is divided by, and where it comes from."""

    flop_per_s: int | float = _doc("FLOP/s", "dense peak of one device as torch sees it")
    dtype: str = _doc("", "dtype of the peak")
    device: str | None = _doc("", "id in the catalogue; None where the peak was given")
    source: str = _doc("", "row and date, or the option")


@dataclass(frozen=True, kw_only=True)
class Utilisation:
    """One convention's view of a run. None with a reason where the figure cannot be a utilisation."""

    mfu: float | None = _doc("fraction", "model FLOPs utilisation")
    hfu: float | None = _doc("fraction", "hardware FLOPs utilisation")
    flops_per_token: float = _doc("FLOPs", "model FLOPs of one token")
    hardware_flops_per_token: float = _doc("FLOPs", "executed FLOPs of one token, under the recompute policy")
    reason: str | None = _doc("", "why a figure is None", default=None)


@dataclass(frozen=True, kw_only=True)
class Mfu:
    """A measured run against the peak of its machine."""

    mfu: float | None = _doc("fraction", "under the chosen convention")
    hfu: float | None = _doc("fraction", "under the chosen convention and recompute policy")
    convention: str = _doc("", "the chosen one")
    recompute: str = _doc("", "policy, or a printed equation")
    by_convention: Mapping[str, Utilisation] = _doc("", "the same run under the chosen and each common convention")
    peak_flop_per_s: int | float = _doc("FLOP/s", "dense peak of one GPU")
    peak: Peak = _doc("", "where the peak comes from")
    achieved_flop_per_s: float = _doc("FLOP/s", "model FLOPs of one GPU, chosen convention")
    achieved_hardware_flop_per_s: float = _doc("FLOP/s", "executed FLOPs of one GPU, chosen convention")
    tokens_per_second: float = _doc("tokens/s", "all GPUs together")
    tokens_per_second_per_gpu: float = _doc("tokens/s", "one GPU")
    gpus: int = _doc("GPUs", "those the rate is of")
    unit: str = _doc("", "what is counted where `tokens` is said: token, patch, image")
    memory_utilisation: float | None = _doc("fraction", "memory used over memory of the device")
    memory_bytes: int | None = _doc("bytes", "memory of one device")
    reason: str | None = _doc("", "why mfu is None", default=None)


@dataclass(frozen=True, kw_only=True)
class Source:
    """A value that was not given: what it is taken to be, and from where."""

    name: str = _doc("", "of the value")
    value: float | str | None = _doc("", "what it is taken to be")
    why: str = _doc("", "from where")


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How sure a value of a plan is, and what tells it."""

    name: str = _doc("", "mfu, mtti_s or goodput")
    low: float | None = _doc("fraction", "lower end of the 90 % interval, `mtti_s` in seconds; None: taken as exact")
    high: float | None = _doc("fraction", "upper end of it")
    why: str = _doc("", "what it is from")


@dataclass(frozen=True, kw_only=True)
class TrainPlan:
    """A training run in FLOPs, time, money and energy."""

    model: str = _doc("", "name of the model, or its number of parameters")
    tokens: int = _doc("tokens", "tokens trained on")
    params: int = _doc("parameters", "N of the ideal form: given, or the model's active parameters")
    flops: int = _doc("FLOPs", "model FLOPs of the whole run")
    hardware_flops: int = _doc("FLOPs", "executed FLOPs, recomputation included")
    ideal: Mapping[str, int] = _doc("FLOPs", "6·N·tokens and 8·N·tokens")
    mfu: float | None = _doc("fraction", "model FLOPs utilisation while running")
    hfu: float | None = _doc("fraction", "hardware FLOPs utilisation while running")
    peak: Peak | None = _doc("", "what utilisations are of; None without a GPU")
    gpus: int | None = _doc("GPUs", "given, or found for the deadline")
    gpu_hours: float = _doc("GPU-hours", "productive time")
    gpu_days: float = _doc("GPU-days", "productive time")
    goodput: float = _doc("fraction", "useful part of wall time")
    gpu_hours_paid: float = _doc("GPU-hours", "productive time over goodput")
    days: float | None = _doc("days", "wall time on all GPUs, goodput included")
    tokens_per_second_per_gpu: float = _doc("tokens/s", "while running")
    cost_usd: float | None = _doc("USD", "paid GPU-hours times price")
    energy_kwh: float | None = _doc("kWh", "paid GPU-hours times power times PUE")
    co2_kg: float | None = _doc("kg", "energy times carbon intensity")
    assumed: tuple[Source, ...] = _doc("", "what was not given and is taken to be", default=())
    mfu_interval: tuple[float, float] | None = _doc(
        "fraction", "80 % interval of a predicted mfu; None where it is given or taken from other runs", default=None
    )
    layout: str | None = _doc("", "layout whose step was predicted", default=None)
    useful_mfu: float | None = _doc("fraction", "goodput × MFU: of the whole programme's hours", default=None)
    useful_mfu_by_convention: Mapping[str, float] = _doc(
        "fraction", "the same under each common convention", default_factory=dict
    )
    gpu_hours_paid_interval: tuple[float, float] | None = _doc(
        "GPU-hours", "90 % interval of what is paid: of MFU and goodput together", default=None
    )
    days_interval: tuple[float, float] | None = _doc("days", "90 % interval", default=None)
    cost_interval_usd: tuple[float, float] | None = _doc("USD", "90 % interval, the price taken as exact", default=None)
    goodput_interval: tuple[float, float] | None = _doc(
        "fraction", "90 % interval by the failure rate and the luck of the run; None where it was given", default=None
    )
    spreads: tuple[Spread, ...] = _doc("", "what the intervals are made of", default=())
    reasons: Mapping[str, str] = _doc("", "why a figure is None", default_factory=dict)
