"""`train`: FLOPs, GPU-hours, days, money, energy and carbon of a training run at a utilisation.

Productive time comes from the utilisation; goodput is a factor of its own on what is waited for and paid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from suanli.count import build_ledger
from suanli.errors import Fault, FaultList, InputError, shown
from suanli.formulas import counting, running
from suanli.measure import conventions_beside, flops_per_token
from suanli.nouns.arch import Arch
from suanli.nouns.convention import Convention
from suanli.nouns.measures import GIVEN_HOURS, Peak, Source, TrainPlan
from suanli.nouns.workload import Workload, option
from suanli.plan.spread import TAKEN_AS_EXACT, Doubt, Sure, sure
from suanli.units import DAY, HOUR

ROUNDING = 1e-9
UTILISATIONS = ("mfu", "hfu", "flop_per_s", "gpu_hours")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What is known of the run beside the model. Exactly one of `mfu`, `hfu`, `flop_per_s` is the utilisation, or
    `gpu_hours` (all that were paid, lost ones too) tells it; of `gpus` and `deadline_s` at most one decides the other.
    """

    tokens: int
    gpus: int | None = None
    deadline_s: float | None = None
    mfu: float | None = None
    hfu: float | None = None
    flop_per_s: float | None = None
    gpu_hours: float | None = None
    goodput: float = 1.0
    price: float | None = None
    power: float | None = None
    pue: float = 1.0
    carbon: float | None = None
    mfu_interval: tuple[float, float] | None = None
    layout: str | None = None
    doubt: Doubt | None = None
    assumed: tuple[Source, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Raise one InputError with every value that cannot be."""
        faults = FaultList(InputError)
        if self.gpus is not None and self.deadline_s is not None:
            faults.add(
                code="contradiction",
                message="either the number of GPUs or the deadline is asked for",
                where="--gpus and --deadline",
                expected="one of them",
            )
        given = [name for name in UTILISATIONS if getattr(self, name) is not None]
        if len(given) > 1:
            names = " and ".join("--tflops-per-gpu" if name == "flop_per_s" else option(name) for name in given)
            faults.add(code="contradiction", message="one utilisation is needed", got=names, expected="one of them")
        for name in ("mfu", "hfu", "goodput"):
            _check_range(faults, name, getattr(self, name), high=1)
        for name in ("tokens", "gpus", "deadline_s", "flop_per_s", "gpu_hours", "power", "price"):
            _check_range(faults, name, getattr(self, name), low_open=name != "price")
        _check_range(faults, "pue", self.pue, low=1, low_open=False)
        _check_range(faults, "carbon", self.carbon, low_open=False)
        faults.raise_if_any()


def _check_range(
    faults: FaultList,
    name: str,
    value: float | None,
    *,
    low: float = 0,
    high: float = math.inf,
    low_open: bool = True,
) -> None:
    if value is None:
        return
    above = value > low if low_open else value >= low
    if above and value <= high and math.isfinite(value):
        return
    names = {"flop_per_s": "tflops_per_gpu", "deadline_s": "deadline"}
    span = f"{'above' if low_open else 'at least'} {low:g}" + (f", at most {high:g}" if math.isfinite(high) else "")
    faults.add(
        code=f"bad_{name}",
        message=f"{names.get(name, name).replace('_', ' ')} is not possible",
        where=option(names.get(name, name)),
        got=shown(value),
        expected=span,
    )


@dataclass(frozen=True)
class RunFlops:
    """FLOPs of a whole run."""

    model: int
    hardware: int


def run_flops(
    arch: Arch | None, workload: Workload, convention: Convention, tokens: int, params: int | None
) -> RunFlops:
    """FLOPs of `tokens`: 6·N·tokens and 8·N·tokens where N is given, else counted under the convention."""
    if params is not None:
        model = counting.ideal_flops(6, params, tokens)
        return RunFlops(model, counting.ideal_flops(8, params, tokens) if workload.recompute == "full" else model)
    assert arch is not None
    ledger = build_ledger(arch, workload, convention)
    units = workload.seq * workload.batch if arch.main_stream == "tokens" else _positions(arch, workload)
    return RunFlops(
        _scaled(ledger.model_flops, tokens, units),
        _scaled(ledger.hardware_flops, tokens, units),
    )


def _positions(arch: Arch, workload: Workload) -> int:
    length = 1 if arch.main_stream == "sample" else arch.stream(arch.main_stream).length or workload.seq
    return length * workload.batch


def _scaled(flops: int, tokens: int, units: int) -> int:
    """FLOPs of `units` positions for `tokens` of them, to the nearest whole operation."""
    return round(Fraction(flops) * tokens / units)


def train(
    arch: Arch | None,
    workload: Workload,
    convention: Convention,
    budget: Budget,
    *,
    peak: Peak | None = None,
    params: int | None = None,
    name: str = "",
) -> TrainPlan:
    """The plan of a run. Raises InputError for values that cannot be, or where no utilisation is known."""
    budget.check()
    n = params if params is not None else arch.params_active if arch else 0
    flops = run_flops(arch, workload, convention, budget.tokens, params)
    hours = _hours(flops, budget, peak)
    _check_peak(flops, hours, peak, "--mfu" if budget.gpu_hours is None else "--gpu-hours")
    seconds = hours * HOUR
    gpus = budget.gpus or _gpus(hours, budget)
    paid = hours / budget.goodput
    mfu = running.utilisation(flops.model / seconds, peak.flop_per_s) if peak else None
    known = _sure(hours, mfu, gpus, budget)
    energy = None if budget.power is None else running.run_energy_kwh(hours, budget.power, budget.pue, budget.goodput)
    return TrainPlan(
        model=name or (arch.name if arch else f"{n:,} parameters"),
        tokens=budget.tokens,
        params=n,
        flops=flops.model,
        hardware_flops=flops.hardware,
        ideal={f"{k}n": counting.ideal_flops(k, n, budget.tokens) for k in (6, 8)},
        mfu=mfu,
        hfu=running.utilisation(flops.hardware / seconds, peak.flop_per_s) if peak else None,
        mfu_interval=budget.mfu_interval,
        layout=budget.layout,
        peak=peak,
        gpus=gpus,
        gpu_hours=hours,
        gpu_days=seconds / DAY,
        goodput=budget.goodput,
        gpu_hours_paid=paid,
        days=running.wall_days(hours, gpus, budget.goodput) if gpus else None,
        tokens_per_second_per_gpu=budget.tokens / seconds,
        cost_usd=None if budget.price is None else running.run_cost(hours, budget.price, budget.goodput),
        energy_kwh=energy,
        co2_kg=None if energy is None or budget.carbon is None else running.run_co2_kg(energy, budget.carbon),
        assumed=budget.assumed,
        useful_mfu=None if mfu is None else mfu * budget.goodput,
        useful_mfu_by_convention=_by_convention(
            arch, workload, convention, budget.tokens / (paid * HOUR), peak, params
        ),
        gpu_hours_paid_interval=known.paid,
        days_interval=_times(known.paid, running.wall_days(1.0, gpus, 1.0) if gpus else None),
        cost_interval_usd=_times(known.paid, budget.price),
        goodput_interval=known.goodput,
        spreads=known.spreads,
        reasons=_reasons(budget, peak, gpus, known),
    )


def _sure(hours: float, mfu: float | None, gpus: int | None, budget: Budget) -> Sure:
    """Intervals of what is paid; none where that is given."""
    if budget.gpu_hours is not None:
        return Sure(paid=None, goodput=None, spreads=(), reason=GIVEN_HOURS)
    doubt = budget.doubt or Doubt(half_width=None, mfu_why=TAKEN_AS_EXACT)
    return sure(hours, mfu, budget.goodput, gpus, doubt)


def _times(ends: tuple[float, float] | None, factor: float | None) -> tuple[float, float] | None:
    """Both ends of an interval in another unit."""
    return None if ends is None or factor is None else (ends[0] * factor, ends[1] * factor)


def _by_convention(
    arch: Arch | None, workload: Workload, convention: Convention, tokens_per_s: float, peak: Peak | None,
    params: int | None,
) -> dict[str, float]:  # fmt: skip
    """Utilisation of all hours paid under each common convention; those above the peak are left out."""
    if arch is None or peak is None or params is not None:
        return {}
    found = {
        each.name: running.utilisation(
            flops_per_token(arch, workload, each, workload.recompute).model * tokens_per_s, peak.flop_per_s
        )
        for each in conventions_beside(arch, convention)
    }
    return {name: value for name, value in found.items() if value <= 1}


def _hours(flops: RunFlops, budget: Budget, peak: Peak | None) -> float:
    """Productive GPU-hours by the utilisation known. Raises InputError where none is, or the rate exceeds the peak."""
    if budget.gpu_hours is not None:
        return budget.gpu_hours * budget.goodput
    if budget.flop_per_s is not None:  # an achieved rate is of what the machine executes
        if peak is not None and budget.flop_per_s > peak.flop_per_s:
            raise _above_peak(budget.flop_per_s, peak)
        return running.gpu_hours(flops.hardware, budget.flop_per_s, 1)
    if peak is None and (budget.mfu is not None or budget.hfu is not None):
        raise InputError(
            Fault(
                code="missing_option",
                message="a utilisation needs the peak it is of",
                where="--gpu",
                expected="a device of the catalogue, or --tflops-per-gpu in place of --mfu",
            )
        )
    if peak is None or (budget.mfu is None and budget.hfu is None):
        raise InputError(
            Fault(
                code="missing_option",
                message="the time of a run needs a utilisation",
                where="--mfu",
                expected="--mfu or --hfu with --gpu, or --tflops-per-gpu",
            )
        )
    if budget.hfu is not None:
        return running.gpu_hours(flops.hardware, peak.flop_per_s, budget.hfu)
    assert budget.mfu is not None
    return running.gpu_hours(flops.model, peak.flop_per_s, budget.mfu)


def _check_peak(flops: RunFlops, hours: float, peak: Peak | None, where: str) -> None:
    """Refuse a utilisation that asks more of the machine than its peak once recomputation is counted."""
    rate = flops.hardware / (hours * HOUR)
    if peak is not None and rate > peak.flop_per_s * (1 + ROUNDING):
        raise InputError(
            Fault(
                code="above_peak",
                message="no machine exceeds its peak",
                where=where,
                got=f"an HFU of {rate / peak.flop_per_s:.1%} with what is recomputed",
                expected="at most 100 %",
            )
        )


def _above_peak(rate: float, peak: Peak) -> InputError:
    return InputError(
        Fault(
            code="above_peak",
            message="no machine exceeds its peak",
            where="--tflops-per-gpu",
            got=f"{rate:,.6g} FLOP/s",
            expected=f"at most {peak.flop_per_s:,.6g} FLOP/s ({peak.source})",
        )
    )


def _gpus(hours: float, budget: Budget) -> int | None:
    """GPUs that meet the deadline, or None where none is asked for."""
    if budget.deadline_s is None:
        return None
    needed = running.gpus_for_deadline(hours, budget.deadline_s / DAY, budget.goodput)
    return max(1, math.ceil(needed - 1e-9))  # a deadline met exactly needs no GPU more


def _reasons(budget: Budget, peak: Peak | None, gpus: int | None, known: Sure) -> dict[str, str]:
    """Why a figure is not given."""
    found = dict(budget.reasons)
    if known.reason is not None:
        found["gpu_hours_paid_interval"] = known.reason
    if peak is None:
        found["mfu"] = found["hfu"] = "no GPU, hence no peak (--gpu)"
    if gpus is None:
        found["days"] = "neither --gpus nor --deadline"
    if budget.price is None:
        found.setdefault("cost_usd", "no price (--price, or a GPU with one in the catalogue)")
    if budget.power is None:
        found.setdefault("energy_kwh", "no power (--power, or a GPU with one in the catalogue)")
        found.setdefault("co2_kg", "no energy")
    elif budget.carbon is None:
        found["co2_kg"] = "no carbon intensity (--carbon, as 0.4kg/kWh)"
    return found
