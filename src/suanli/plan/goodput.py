"""`goodput`: how much of a long run is useful: failures, checkpoints, restarts, spares, stragglers, maintenance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from suanli.errors import FaultList, InputError, nearest_names, shown
from suanli.formulas import reliability
from suanli.nouns.goodput import Cause, CurvePoint, Finish, Goodput, Interval, Lever, Loss, Rate
from suanli.plan.simulate import FEWEST_RUNS, MOST_FAILURES, percentiles, runs_within
from suanli.units import HOUR, format_seconds

BLOCKING, ASYNC = "blocking", "async"
MODES = (BLOCKING, ASYNC)
RULES = ("young", "daly", "exact")
SHORTEST_S = 1e-3  # an interval below this is no work at all


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """What interrupts a run and what is done about it; all times in seconds. Raises InputError listing every fault."""

    rate: Rate
    gpus: int | None = None
    detect_s: float = 0.0
    restart_s: float = 0.0
    load_s: float = 0.0
    save_s: float = 0.0
    mode: str = BLOCKING
    stall_s: float | None = None  # async: how long training stands still for a copy
    interval_s: float | None = None  # None: the best
    spares: int | None = None  # nodes; None: a node is always there
    repair_s: float | None = None
    node_mtti_s: float | None = None  # between failures that take a node away
    straggling: float = 0.0  # part by which the slowest rank holds all others
    maintenance_s: float = 0.0
    maintenance_every_s: float | None = None
    causes: tuple[Cause, ...] = field(default=())

    def __post_init__(self) -> None:
        """Check every value; report all faults together."""
        faults = FaultList(InputError)
        if self.mode not in MODES:
            faults.add(code="unknown_checkpoint_mode", message=f"unknown checkpoint mode {shown(self.mode)}",
                       where="--checkpoint-mode", expected="one of " + ", ".join(MODES),
                       nearest=nearest_names(self.mode, MODES))  # fmt: skip
        elif (self.stall_s is None) == (self.mode == ASYNC):
            faults.add(code="contradiction", message="the time training stands still is of asynchronous saving",
                       where="--checkpoint-stall", got="none" if self.stall_s is None else f"{self.stall_s:g} s",
                       expected="--checkpoint-mode async with --checkpoint-stall, or neither")  # fmt: skip
        elif self.stall_s is not None and self.stall_s > self.save_s:
            faults.add(code="contradiction", message="standing still longer than the checkpoint takes",
                       where="--checkpoint-stall", got=f"{self.stall_s:g} s",
                       expected=f"at most --checkpoint-save, {self.save_s:g} s")  # fmt: skip
        if (self.spares is None) != (self.repair_s is None):
            faults.add(code="missing_option", message="spare nodes and the time of a repair go together",
                       where="--spares", expected="both --spares and --repair, or neither")  # fmt: skip
        if not 0 <= self.straggling < 1:
            faults.add(code="bad_stragglers", message="not a part that is lost", where="--stragglers",
                       got=f"{self.straggling:g}", expected="0 or more, below 1")  # fmt: skip
        if self.maintenance_every_s is not None and self.maintenance_s >= self.maintenance_every_s:
            faults.add(code="bad_maintenance", message="maintenance without end", where="--maintenance",
                       got=f"{self.maintenance_s:g} s every {self.maintenance_every_s:g} s",
                       expected="less than the time between two of them")  # fmt: skip
        faults.raise_if_any()

    @property
    def cost_s(self) -> float:
        """C: how long training stands still for one checkpoint."""
        return self.save_s if self.stall_s is None else self.stall_s

    @property
    def lag_s(self) -> float:
        """How much longer it takes until a checkpoint can be restarted from: work of that time is replayed too."""
        return self.save_s - self.cost_s

    @property
    def wait_s(self) -> float:
        """Mean wait for a node where all spares are away, a failure's."""
        if self.spares is None or self.repair_s is None:
            return 0.0
        away = self.repair_s / (self.node_mtti_s or self.rate.mtti_s)
        return reliability.no_spare_left(away, self.spares) * self.repair_s / (self.spares + 1)

    @property
    def mttr_s(self) -> float:
        """R: from an interrupt until work goes on."""
        return self.detect_s + self.restart_s + self.load_s + self.wait_s

    @property
    def up(self) -> float:
        """Part of wall time outside planned maintenance."""
        return 1.0 if self.maintenance_every_s is None else 1 - self.maintenance_s / self.maintenance_every_s


def efficiency(at: Reliability, interval_s: float) -> float:
    """Useful part of the time outside maintenance, stragglers apart, at an interval; exact for exponential gaps."""
    return reliability.exact_efficiency(at.rate.mtti_s, at.cost_s, at.mttr_s + at.lag_s, interval_s)


def best_interval(at: Reliability, rule: str) -> float | None:
    """The interval by `young`, `daly` or `exact` (numerical). None: no checkpoint costs anything, so save always."""
    if at.cost_s == 0:
        return None
    if rule == "young":
        return reliability.young_interval(at.rate.mtti_s, at.cost_s)
    if rule == "daly":
        return reliability.daly_interval(at.rate.mtti_s, at.cost_s)
    return _least(lambda log: -efficiency(at, math.exp(log)), at)


def _least(lost: Callable[[float], float], at: Reliability) -> float:
    """Golden-section search over the logarithm of the interval; the loss has one minimum there."""
    golden = (math.sqrt(5) - 1) / 2
    low = math.log(reliability.young_interval(at.rate.mtti_s, at.cost_s)) - 5
    high = math.log(at.rate.mtti_s + at.cost_s) + 1  # Daly's τ never passes M
    left, right = high - golden * (high - low), low + golden * (high - low)
    values = lost(left), lost(right)
    while high - low > 1e-10:
        if values[0] <= values[1]:
            high, right = right, left
            left = high - golden * (high - low)
            values = lost(left), values[0]
        else:
            low, left = left, right
            right = low + golden * (high - low)
            values = values[1], lost(right)
    return math.exp((low + high) / 2)


def plan_goodput(
    at: Reliability, *, work_s: float | None = None, mfu: float | None = None, runs: int = 1000, seed: int = 0
) -> Goodput:
    """Goodput with its account, the best intervals, levers, and the percentiles of the finish where work is given."""
    intervals = tuple(_interval(at, rule) for rule in RULES)
    chosen = at.interval_s if at.interval_s is not None else best_interval(at, "exact")
    account = wall_account(at, chosen)
    useful = account[0].fraction
    finish = None if work_s is None else _finish(at, chosen, work_s, useful, runs, seed)
    given = () if at.interval_s is None else (Interval(rule="given", interval_s=chosen, lost=_lost(at, chosen)),)
    return Goodput(
        gpus=at.gpus, mtti_s=at.rate.mtti_s, mttr_s=at.mttr_s, rate=at.rate,
        availability=reliability.availability(at.rate.mtti_s, at.mttr_s),
        interval_s=chosen, intervals=(*intervals, *given), goodput=useful,
        loss={entry.entry: entry.fraction for entry in account[1:]}, account=account,
        goodput_interval=_spread(at), first_order=_first_order(at), causes=at.causes, levers=_levers(at, useful),
        finish=finish, curve=_curve(at, chosen), useful_mfu=None if mfu is None else useful * mfu,
    )  # fmt: skip


def _spread(at: Reliability) -> tuple[float, float] | None:
    """Goodput at both ends of the failure rate's interval, the interval between checkpoints chosen for each."""
    if at.rate.low_s is None or at.rate.high_s is None:
        return None
    low, high = (_with(at, rate=replace(at.rate, mtti_s=end)) for end in (at.rate.low_s, at.rate.high_s))
    return low, high


def _with(at: Reliability, **changes: Any) -> float:
    then = replace(at, **changes)
    chosen = then.interval_s if then.interval_s is not None else best_interval(then, "exact")
    return wall_account(then, chosen)[0].fraction


def _interval(at: Reliability, rule: str) -> Interval:
    found = best_interval(at, rule)
    return Interval(rule=rule, interval_s=found, lost=_lost(at, found))


CURVE, FAR = 32, 8.0  # points for a chart; how far from the best, as a factor


def _curve(at: Reliability, chosen: float | None) -> tuple[CurvePoint, ...]:
    """Wall time lost at intervals around the best, evenly in the logarithm, and as far as the one given; nothing where
    a checkpoint costs nothing.
    """
    best = best_interval(at, "exact")
    if best is None or chosen is None:
        return ()
    low, high = min(best / FAR, chosen), max(best * FAR, chosen)
    steps = [low * (high / low) ** (place / CURVE) for place in range(CURVE + 1)]
    return tuple(CurvePoint(interval_s=tau, lost=_lost(at, tau)) for tau in steps)


def _lost(at: Reliability, interval_s: float | None) -> float:
    return 1 - efficiency(at, SHORTEST_S if interval_s is None else interval_s)


def _first_order(at: Reliability) -> dict[str, float]:
    """Parts of useful time at Young's interval: C/τ, τ/2M and R/M."""
    tau, m = best_interval(at, "young"), at.rate.mtti_s
    if tau is None:
        return {"checkpoint": 0.0, "replay": 0.0, "restart": at.mttr_s / m}
    whole = reliability.first_order_loss(m, at.cost_s, tau)
    return {"checkpoint": at.cost_s / tau, "replay": whole - at.cost_s / tau, "restart": at.mttr_s / m}


def wall_account(at: Reliability, interval_s: float | None) -> tuple[Loss, ...]:
    """Wall time as entries that close to 1. Raises InputError where nothing would ever get done."""
    tau = SHORTEST_S if interval_s is None else interval_s
    m, cost, again = at.rate.mtti_s, at.cost_s, at.mttr_s + at.lag_s
    if efficiency(at, tau) < 1e-9:
        raise _never_done(at, tau)
    tries = reliability.interrupts_per_interval(m, cost, tau)
    working = reliability.attempts_s(m, cost, tau)
    restarting = tries * reliability.restarts_s(m, again)
    whole = working + restarting
    part = at.up / whole
    share = (lambda seconds: restarting * seconds / again * part) if again else (lambda _: 0.0)
    slowed = tau * at.straggling
    entries = (
        ("useful", (tau - slowed) * part, "work that stays"),
        ("checkpoint", cost * part, _how_often(cost, interval_s)),
        ("replay", (working - tau - cost) * part + share(at.lag_s), "work lost since the last checkpoint"),
        ("restart", share(at.mttr_s - at.wait_s), f"{format_seconds(at.mttr_s - at.wait_s)} an interrupt"),
        ("spare wait", share(at.wait_s), "all spare nodes away for repair"),
        ("stragglers", slowed * part, "the slowest rank holds all others"),
        ("maintenance", 1 - at.up, "planned"),
    )
    kept = (entry for entry in entries if entry[1] or entry[0] in ("useful", "checkpoint", "replay", "restart"))
    return tuple(Loss(entry=name, fraction=value, why=why) for name, value, why in kept)


def _how_often(cost: float, interval_s: float | None) -> str:
    if interval_s is None:
        return "costs nothing: saved all the time"
    return f"{format_seconds(cost)} every {format_seconds(interval_s)} of work"


def _never_done(at: Reliability, tau: float) -> InputError:
    faults = FaultList(InputError)
    faults.add(code="never_done", message="the job would hardly ever get from one checkpoint to the next",
               where="--mtti", got=f"an interrupt every {format_seconds(at.rate.mtti_s)} on average",
               expected=f"more than restart and interval take together, {format_seconds(at.mttr_s + tau)}",
               hint="Fewer GPUs, quicker restarts or a shorter interval; or check the unit of the rate.")  # fmt: skip
    return InputError(*faults.faults)


# --- what a change would bring ------------------------------------------------------------------------------------


def _levers(at: Reliability, now: float) -> tuple[Lever, ...]:
    half: dict[str, dict[str, Any]] = {
        "half as many failures": {"rate": replace(at.rate, mtti_s=2 * at.rate.mtti_s)},
        "half the time to restart": {"restart_s": at.restart_s / 2, "detect_s": at.detect_s / 2,
                                     "load_s": at.load_s / 2},
        "half the time to save": {"save_s": at.save_s / 2, "stall_s": None if at.stall_s is None else at.stall_s / 2},
        "no stragglers": {"straggling": 0.0},
        "no maintenance": {"maintenance_s": 0.0, "maintenance_every_s": None},
        "the best interval": {"interval_s": None},
    }  # fmt: skip
    found = [_lever(name, at, changes, now) for name, changes in half.items()]
    return tuple(sorted((lever for lever in found if abs(lever.gain) > 1e-12), key=lambda lever: -lever.gain))


def _lever(name: str, at: Reliability, changes: Mapping[str, Any], now: float) -> Lever:
    goodput = _with(at, **changes)
    return Lever(change=name, goodput=goodput, gain=goodput - now)


def _finish(at: Reliability, interval_s: float | None, work_s: float, goodput: float, runs: int, seed: int) -> Finish:
    tau = SHORTEST_S if interval_s is None else interval_s
    if runs_within(work_s / goodput, at.rate.mtti_s) < FEWEST_RUNS:
        faults = FaultList(InputError)
        faults.add(code="bad_days", message="too many failures to simulate", where="--days",
                   got=f"{work_s / goodput / at.rate.mtti_s:,.3g} expected in a run",
                   expected=f"at most {MOST_FAILURES // FEWEST_RUNS:,}")  # fmt: skip
        faults.raise_if_any()
    return percentiles(
        work_s / (1 - at.straggling), tau, mtti_s=at.rate.mtti_s, cost_s=at.cost_s, restart_s=at.mttr_s,
        lag_s=at.lag_s, up=at.up, expected_s=work_s / goodput, work_s=work_s, runs=runs, seed=seed,
    )  # fmt: skip


# --- where a failure rate comes from ------------------------------------------------------------------------------

TAIL = 0.05  # each end of a 90 % interval


def counted_rate(interrupts: int, exposure_gpu_hours: float, gpus: int, source: str) -> Rate:
    """The rate of a job of `gpus` from interrupts counted over GPU-hours, with its exact Poisson interval."""
    job_s = exposure_gpu_hours / gpus * HOUR
    most, least = (reliability.poisson_bound(interrupts, TAIL, upper) for upper in (True, False))
    return Rate(
        mtti_s=job_s / interrupts, low_s=job_s / most, high_s=job_s / least,
        gpu_hours=exposure_gpu_hours / interrupts, source=source, interrupts=interrupts,
    )  # fmt: skip


def given_rate(gpu_hours: float, gpus: int, source: str) -> Rate:
    """The rate of a job of `gpus`, each interrupted once in so many hours."""
    mtti_s = reliability.mtti(gpu_hours * HOUR, gpus)
    return Rate(mtti_s=mtti_s, low_s=None, high_s=None, gpu_hours=gpu_hours, source=source)
