"""Monte-Carlo of a run with failures: when is it done?

One run is simulated failure by failure and not checkpoint by checkpoint: between two failures the work that stays is a
whole number of intervals, which is arithmetic.
"""

from __future__ import annotations

import math
import random

from suanli.nouns.goodput import Finish
from suanli.units import DAY

PERCENTILES = (5, 25, 50, 75, 90, 95, 99)
FEWEST_RUNS = 50
MOST_FAILURES = 20_000_000  # of all runs together: about half a minute


def runs_within(expected_s: float, mtti_s: float) -> int:
    """How many runs of that length can be simulated in reasonable time."""
    return int(MOST_FAILURES * mtti_s / max(expected_s, mtti_s))


def percentiles(
    needed_s: float, interval_s: float, *, mtti_s: float, cost_s: float, restart_s: float, lag_s: float, up: float,
    expected_s: float, work_s: float, runs: int, seed: int,
) -> Finish:  # fmt: skip
    """Wall days of `runs` simulated runs that need `needed_s` of running; fewer runs where each has very many failures.

    An asynchronous checkpoint can be restarted from `lag_s` after its interval; `up` is the part outside maintenance.
    """
    runs = max(FEWEST_RUNS, min(runs, runs_within(expected_s, mtti_s)))
    draw = random.Random(seed)
    walls = (wall_seconds(draw, needed_s, interval_s, mtti_s, cost_s, restart_s, lag_s) for _ in range(runs))
    days = sorted(wall / up / DAY for wall in walls)
    return Finish(
        work_days=work_s / DAY,
        mean_days=expected_s / DAY,
        percentiles={f"p{each}": days[min(runs - 1, math.ceil(each / 100 * runs) - 1)] for each in PERCENTILES},
        runs=runs,
        seed=seed,
    )


def wall_seconds(
    draw: random.Random, needed_s: float, interval_s: float, mtti_s: float, cost_s: float, restart_s: float,
    lag_s: float,
) -> float:  # fmt: skip
    """Wall seconds of one run of `needed_s`, failures at a constant rate; maintenance apart."""
    wall, done, step = 0.0, 0.0, interval_s + cost_s
    while True:
        gap = draw.expovariate(1 / mtti_s)
        left = needed_s - done
        saves = max(math.ceil(left / interval_s) - 1, 0)  # none after the last piece of work
        if gap >= left + saves * cost_s:
            return wall + left + saves * cost_s
        done += min(max(math.floor((gap - lag_s) / step), 0), saves) * interval_s
        wall += gap + _restart(draw, restart_s, mtti_s)


def _restart(draw: random.Random, restart_s: float, mtti_s: float) -> float:
    """Seconds until a restart is through: a failure during it begins it anew."""
    spent = 0.0
    while restart_s and (gap := draw.expovariate(1 / mtti_s)) < restart_s:
        spent += gap
    return spent + restart_s
