"""Utilisation, time, money and energy of a run."""

from __future__ import annotations

from suanli.formulas.registry import formula
from suanli.units import DAY, HOUR, KILO

_BOOKS = "definition"


@formula(
    unit="FLOP/s",
    expression="F_token·r/n",
    source=_BOOKS,
    legend={
        "flops_per_token": "F_token: FLOPs of one token",
        "tokens_per_s": "r: tokens/s of all GPUs together",
    },
)
def achieved_flop_per_s(flops_per_token: float, tokens_per_s: float, gpus: int) -> float:
    """Achieved rate of one GPU."""
    return flops_per_token * tokens_per_s / gpus


@formula(
    unit="tokens/s",
    expression="B·s/t",
    source=_BOOKS,
    legend={"batch": "B: global batch [sequences]", "seconds": "t: time of one step [s]"},
)
def tokens_per_s(batch: int, seq: int, seconds: float) -> float:
    """Tokens a second of all GPUs together."""
    return batch * seq / seconds


@formula(unit="fraction", expression="X/P", source="arXiv:2204.02311 appendix B: model FLOPs over dense peak")
def utilisation(flop_per_s: float, peak_flop_per_s: float) -> float:
    """MFU for model FLOPs, HFU for hardware FLOPs."""
    return flop_per_s / peak_flop_per_s


@formula(
    unit="GPU-hours",
    expression="F/(P·MFU)/3600",
    source="arXiv:2104.04473 eq. 4: T·P·K/(n·X), with X = P·MFU",
)
def gpu_hours(flops: float, peak_flop_per_s: float, mfu: float) -> float:
    """GPU time to compute F at a utilisation, in hours."""
    return flops / (peak_flop_per_s * mfu) / HOUR


@formula(
    unit="days",
    expression="GPU-hours/(n·g)/24",
    source=_BOOKS,
    legend={"hours": "GPU-hours at the utilisation, productive time only"},
)
def wall_days(hours: float, gpus: int, goodput: float) -> float:
    """Calendar days on n GPUs of whose time the part g is useful."""
    return hours * HOUR / DAY / (gpus * goodput)


@formula(
    unit="GPUs",
    expression="GPU-hours/(24·days·g)",
    source=_BOOKS,
    legend={"hours": "GPU-hours, productive time only", "days": "days until the deadline"},
)
def gpus_for_deadline(hours: float, days: float, goodput: float) -> float:
    """GPUs (not rounded) that finish by a deadline."""
    return hours * HOUR / DAY / (days * goodput)


@formula(
    unit="USD",
    expression="GPU-hours·price/g",
    source=_BOOKS,
    legend={"hours": "GPU-hours, productive time only", "price": "price of a GPU-hour [USD]"},
)
def run_cost(hours: float, price: float, goodput: float) -> float:
    """Money for the GPU-hours, lost ones paid too."""
    return hours * price / goodput


@formula(
    unit="kWh",
    expression="GPU-hours·W·PUE/1000/g",
    source="arXiv:2104.10350 §2",
    legend={
        "hours": "GPU-hours",
        "watts": "W: power of a GPU with its share of the host",
        "pue": "PUE: facility over IT power",
    },
)
def run_energy_kwh(hours: float, watts: float, pue: float, goodput: float) -> float:
    """Energy drawn from the grid."""
    return hours * watts * pue / KILO / goodput


@formula(
    unit="kg",
    expression="kWh·intensity",
    source="arXiv:2104.10350 §2",
    legend={"energy_kwh": "energy [kWh]", "intensity": "carbon intensity of the grid [kg/kWh]"},
)
def run_co2_kg(energy_kwh: float, intensity: float) -> float:
    """CO₂ of the energy."""
    return energy_kwh * intensity
