"""How much of a long run is useful: failures, checkpoints, restarts, repairs.

Failures come at a constant rate (exponential gaps). M is the mean time to interrupt of the whole job, R what a restart
takes before work goes on, C how long training stands still for a checkpoint, τ the work between two checkpoints.
"""

from __future__ import annotations

import math

from suanli.formulas.registry import formula

YOUNG = "Young 1974, doi:10.1145/361147.361115"
DALY = "Daly 2006, doi:10.1016/j.future.2004.11.016"

_LEGEND = {
    "mtti_s": "M: mean time to interrupt of the job [s]",
    "save_s": "C: time training stands still for a checkpoint [s]",
    "restart_s": "R: from an interrupt until work goes on [s]",
    "interval_s": "τ: work between two checkpoints [s]",
    "mtbf_s": "mean time between failures of one unit [s]",
    "units": "n: units that fail, all of them needed",
    "down_s": "mean time to repair (or restart) [s]",
    "lambda_": "λ: mean number expected",
    "spares": "k: spare nodes",
    "repair_s": "time a node is away for repair [s]",
}


@formula(unit="s", expression="MTBF/n", source="series system of exponential parts, MIL-HDBK-338B §5", legend=_LEGEND)
def mtti(mtbf_s: float, units: int) -> float:
    """Mean time to interrupt of a job that needs all its units."""
    return mtbf_s / units


@formula(unit="fraction", expression="M/(M + R)", source="IEC 60050-192: steady-state availability", legend=_LEGEND)
def availability(mtti_s: float, down_s: float) -> float:
    """Part of the time that the job is up."""
    return mtti_s / (mtti_s + down_s)


@formula(unit="s", expression="√(2·C·M)", source=YOUNG, legend=_LEGEND)
def young_interval(mtti_s: float, save_s: float) -> float:
    """Best interval, first order."""
    return math.sqrt(2 * save_s * mtti_s)


@formula(
    unit="s",
    expression="√(2CM)·(1 + ⅓·√(C/2M) + C/18M) − C; M where C ≥ 2M",
    source=f"{DALY}, eq. 37",
    legend=_LEGEND,
)
def daly_interval(mtti_s: float, save_s: float) -> float:
    """Best interval, higher order."""
    if save_s >= 2 * mtti_s:
        return mtti_s
    part = save_s / (2 * mtti_s)
    return math.sqrt(2 * save_s * mtti_s) * (1 + math.sqrt(part) / 3 + part / 9) - save_s


@formula(unit="fraction", expression="C/τ + τ/2M", source=YOUNG, legend=_LEGEND)
def first_order_loss(mtti_s: float, save_s: float, interval_s: float) -> float:
    """Checkpoints and work lost, as parts of useful time, to first order; restarts (R/M) come on top."""
    return save_s / interval_s + interval_s / (2 * mtti_s)


@formula(unit="interrupts", expression="exp((τ + C)/M) − 1", source=f"{DALY}, §3", legend=_LEGEND)
def interrupts_per_interval(mtti_s: float, save_s: float, interval_s: float) -> float:
    """Failures met, on average, before one interval and its checkpoint are through."""
    return math.expm1((interval_s + save_s) / mtti_s)


@formula(unit="s", expression="M·(exp((τ + C)/M) − 1)", source=f"{DALY}, §3", legend=_LEGEND)
def attempts_s(mtti_s: float, save_s: float, interval_s: float) -> float:
    """Time at work on one interval and its checkpoint, attempts that failed included."""
    return mtti_s * math.expm1((interval_s + save_s) / mtti_s)


@formula(unit="s", expression="M·(exp(R/M) − 1)", source=f"{DALY}, §3", legend=_LEGEND)
def restarts_s(mtti_s: float, restart_s: float) -> float:
    """Time until one restart is through, restarts that failed included."""
    return mtti_s * math.expm1(restart_s / mtti_s)


@formula(unit="fraction", expression="τ / [M·exp(R/M)·(exp((τ + C)/M) − 1)]", source=f"{DALY}, eq. 20", legend=_LEGEND)
def exact_efficiency(mtti_s: float, save_s: float, restart_s: float, interval_s: float) -> float:
    """Useful part of wall time; failures may come at any moment, in checkpoints and restarts too."""
    exponent = (restart_s + interval_s + save_s) / mtti_s
    if exponent > 700:  # past what a float holds: nothing ever gets through
        return 0.0
    return interval_s / (mtti_s * math.exp(restart_s / mtti_s) * math.expm1((interval_s + save_s) / mtti_s))


@formula(
    unit="probability",
    expression="P(N > k), N Poisson of mean λ",
    source="M/G/∞: nodes away for repair",
    legend=_LEGEND,
)
def no_spare_left(lambda_: float, spares: int) -> float:
    """Chance that a failure finds every spare node away for repair."""
    return 1 - sum(_poisson(lambda_, count) for count in range(spares + 1))


def _poisson(mean: float, count: int) -> float:
    return math.exp(count * math.log(mean) - mean - math.lgamma(count + 1)) if mean > 0 else float(count == 0)


@formula(
    unit="events", expression="λ with P(N ≥ n | λ) = a, or P(N ≤ n | λ) = a",
    source="Garwood 1936, doi:10.1093/biomet/28.3-4.437: exact interval of a Poisson count",
    legend={"count": "n: events seen", "tail": "a: probability left out at this end", "upper": "which end"},
)  # fmt: skip
def poisson_bound(count: int, tail: float, upper: bool) -> float:
    """One end of the interval for the mean of a Poisson count. Lower end 0 where nothing was seen."""
    if count == 0 and not upper:
        return 0.0
    below = count if upper else count - 1  # P(N ≤ below) falls as the mean grows
    wanted = tail if upper else 1 - tail
    low, high = 0.0, 2.0 * count + 20
    for _ in range(100):
        middle = (low + high) / 2
        if _poisson_sum(middle, below) > wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _poisson_sum(mean: float, most: int) -> float:
    """P(N ≤ most), from the largest term down."""
    if mean <= 0:
        return 1.0
    term = _poisson(mean, most)
    if mean < most:  # the terms above are the small ones
        return 1 - _tail(mean, most + 1)
    total = 0.0
    for count in range(most, -1, -1):
        total += term
        term *= count / mean
        if term < total * 1e-17:
            break
    return total


def _tail(mean: float, first: int) -> float:
    """P(N ≥ first) for a mean below it."""
    term, total, count = _poisson(mean, first), 0.0, first
    while term > total * 1e-17:
        total += term
        count += 1
        term *= mean / count
    return total
