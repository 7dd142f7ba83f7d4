"""How sure a planned run is: MFU, failure rate and luck drawn together, many times, and what they make of its hours."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from suanli.formulas import reliability
from suanli.nouns.measures import Spread
from suanli.plan.goodput import Reliability, best_interval, wall_account
from suanli.plan.simulate import wall_seconds
from suanli.units import HOUR

RUNS = 500
SEED = 0
TAIL = 0.05
NINETY = NormalDist().inv_cdf(1 - TAIL)  # half-width of nine tenths of a normal distribution
MOST_FAILURES = 1000  # expected in a run; with more the luck of the single failure is nothing
TAKEN_AS_EXACT = "as given: taken as exact"
NEVER = 1e-9  # of wall time: a job that does not get on


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """What is not known of a run: `half_width` of the logarithm of MFU at 90 % (None: taken as exact), and the
    failures, where goodput comes from them; in words, what each is from.
    """

    half_width: float | None
    mfu_why: str
    failures: Reliability | None = None
    goodput_why: str = TAKEN_AS_EXACT


@dataclass(frozen=True, kw_only=True)
class Sure:
    """90 % intervals: GPU-hours paid, the goodput alone, and what they are made of. None with a reason among `why`."""

    paid: tuple[float, float] | None
    goodput: tuple[float, float] | None
    spreads: tuple[Spread, ...]
    reason: str | None = None


def goodput_of(at: Reliability) -> float:
    """Useful part of wall time at the interval given, or the best: the figure of the verb `goodput`."""
    return wall_account(at, _interval(at))[0].fraction


def sure(hours: float, mfu: float | None, goodput: float, gpus: int | None, doubt: Doubt) -> Sure:
    """Intervals of a run of `hours` productive GPU-hours."""
    spreads = [_of_mfu(mfu, doubt)]
    if doubt.failures is None or gpus is None:
        spreads.append(Spread(name="goodput", low=None, high=None, why=doubt.goodput_why))
        wide = doubt.half_width
        paid = None if wide is None else (hours / goodput / math.exp(wide), hours / goodput * math.exp(wide))
        return Sure(paid=paid, goodput=None, spreads=tuple(spreads), reason=None if paid else doubt.mfu_why)
    alone = _ends(_walls(hours * HOUR / gpus, 0.0, doubt.failures))
    ends = hours * HOUR / gpus / alone[1], hours * HOUR / gpus / alone[0]
    walls = _ends(_walls(hours * HOUR / gpus, doubt.half_width or 0.0, doubt.failures))
    spreads += _of_failures(doubt.failures, ends)
    if not math.isfinite(walls[1]):
        return Sure(paid=None, goodput=None, spreads=tuple(spreads), reason="one run in twenty would hardly ever end")
    return Sure(paid=(walls[0] * gpus / HOUR, walls[1] * gpus / HOUR), goodput=ends, spreads=tuple(spreads))


def _of_mfu(mfu: float | None, doubt: Doubt) -> Spread:
    if doubt.half_width is None or mfu is None:
        return Spread(name="mfu", low=None, high=None, why=doubt.mfu_why)
    apart = math.exp(doubt.half_width)
    return Spread(name="mfu", low=mfu / apart, high=min(mfu * apart, 1.0), why=doubt.mfu_why)


def _of_failures(at: Reliability, ends: tuple[float, float]) -> list[Spread]:
    rate = at.rate
    counted = TAKEN_AS_EXACT if rate.interrupts is None else (
        f"exact interval of {rate.interrupts:,} interrupts counted (Garwood 1936): this table's rate, not that of "
        "another cluster"
    )  # fmt: skip
    return [
        Spread(name="mtti_s", low=rate.low_s, high=rate.high_s, why=counted),
        Spread(name="goodput", low=ends[0], high=ends[1], why=f"{RUNS} runs simulated, rate and failures drawn"),
    ]


def _ends(walls: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(walls)
    return ordered[math.floor(TAIL * len(ordered))], ordered[math.ceil((1 - TAIL) * len(ordered)) - 1]


def _walls(work_s: float, half_width: float, at: Reliability) -> list[float]:
    """Wall seconds of simulated runs. MFU takes each of so many equally likely values once, which leaves less to chance
    than drawing it.
    """
    draw = random.Random(SEED)
    logs = [NormalDist().inv_cdf((place + 0.5) / RUNS) * half_width / NINETY for place in range(RUNS)]
    draw.shuffle(logs)
    return [_wall(draw, work_s * math.exp(log), at) for log in logs]


def _wall(draw: random.Random, work_s: float, at: Reliability) -> float:
    """One run: a failure rate of those that the count allows, then its failures one by one."""
    counted, interval_s = at.rate.interrupts, _interval(at)
    # what a count tells of its mean, by Jeffreys' prior: a gamma distribution of shape n + ½
    mtti_s = at.rate.mtti_s if counted is None else at.rate.mtti_s * counted / draw.gammavariate(counted + 0.5, 1.0)
    now = replace(at, rate=replace(at.rate, mtti_s=mtti_s), interval_s=interval_s)
    tau = 1.0 if interval_s is None else interval_s
    useful = reliability.exact_efficiency(mtti_s, now.cost_s, now.mttr_s + now.lag_s, tau)
    needed_s = work_s / (1 - at.straggling)
    if useful < NEVER:
        return math.inf
    if needed_s / useful / mtti_s > MOST_FAILURES:
        return needed_s / useful / at.up
    return wall_seconds(draw, needed_s, tau, mtti_s, now.cost_s, now.mttr_s, now.lag_s) / at.up


def _interval(at: Reliability) -> float | None:
    return at.interval_s if at.interval_s is not None else best_interval(at, "exact")
