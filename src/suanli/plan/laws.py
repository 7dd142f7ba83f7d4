"""Laws of scaling fitted to measured sizes: least squares of the logarithm, later sizes weighing more.

Each law has few parameters and a scale, and goes through the last measured size; what it says is how the rate of one
GPU changes from there. The planner's own law has no parameter but its scale, which all sizes set. A power law's slope
leans on what is usual (its prior), so two or three sizes suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from suanli.formulas import scaling
from suanli.nouns.scaling import Fit, Parameter

Point = tuple[int, float]  # GPUs, rate of one
Law = Callable[[float], float]

FADE = 0.5  # weight of a size against the next larger one: what happens at few GPUs says little of many
PRIOR_WEIGHT = 0.5  # of the usual slope, in units of one size one doubling away
BETTER = 0.8  # another law is taken where its held-out error is below this part of the power law's
PLANNER = "planner"
LAWS = ("power", "amdahl", "gustafson", "usl", PLANNER)
FEWEST = {"power": 2, "amdahl": 3, "gustafson": 3, "usl": 4, PLANNER: 1}
Planned = Mapping[int, float]  # rate of one GPU as the planner of layouts has it, for every size asked about
_LOW, _HIGH = -12.0, 5.0  # logarithm of what is lost at the largest size
_ROUNDS = 60


@dataclass(frozen=True)
class Fitted:
    """A law with its parameters, as a function of GPUs."""

    law: str
    parameters: dict[str, float]
    rate: Law
    spread: float

    @property
    def peak_gpus(self) -> float | None:
        """Where the whole rate is largest."""
        coherency = self.parameters.get("coherency", 0.0)
        if coherency <= 0 or self.parameters["contention"] >= 1:
            return None
        return scaling.usl_peak(self.parameters["contention"], coherency)


def fit_law(law: str, points: Sequence[Point], slope: float, planned: Planned | None = None) -> Fitted:
    """One law through the points; `slope` is the usual change per doubling, `planned` the planner's own rates."""
    if law == PLANNER:
        assert planned is not None
        return _scaled(points, planned)
    if law == "power":
        return _power(points, slope)
    gpus = points[-1][0]
    if law == "usl":
        return _usl(points, gpus)
    make = {"amdahl": scaling.amdahl, "gustafson": scaling.gustafson}[law]
    part: Callable[[float], float] = (
        (lambda log: math.exp(log) / gpus) if law == "amdahl" else (lambda log: 1 / (1 + math.exp(-log)))
    )
    best = _least(lambda log: _error(points, lambda n: make(n, part(log)))[1], _LOW, _HIGH)
    serial = part(best)
    return _anchored(law, {"serial": serial}, lambda n: make(n, serial), points)


def _power(points: Sequence[Point], slope: float) -> Fitted:
    weights = _weights(points)
    x = [math.log2(gpus) for gpus, _ in points]
    y = [math.log(rate) for _, rate in points]
    whole = sum(weights)
    x_mean = sum(w * a for w, a in zip(weights, x, strict=True)) / whole
    y_mean = sum(w * b for w, b in zip(weights, y, strict=True)) / whole
    across = sum(w * (a - x_mean) * (b - y_mean) for w, a, b in zip(weights, x, y, strict=True))
    along = sum(w * (a - x_mean) ** 2 for w, a in zip(weights, x, strict=True))
    per_doubling = (across + PRIOR_WEIGHT * slope) / (along + PRIOR_WEIGHT)
    base = points[-1][0]
    return _anchored("power", {"per_doubling": per_doubling},
                     lambda n: scaling.power_law(n, per_doubling, base), points)  # fmt: skip


def _scaled(points: Sequence[Point], planned: Planned) -> Fitted:
    """The planner's rates times one factor."""
    scale, spread = _error(points, lambda n: planned[int(n)])
    factor = math.exp(scale)
    return Fitted(PLANNER, {"factor": factor}, lambda n: factor * planned[int(n)], math.sqrt(spread))


def _usl(points: Sequence[Point], gpus: int) -> Fitted:
    def law(wait: float, agree: float) -> Law:
        return lambda n: scaling.usl(n, math.exp(wait) / gpus, math.exp(agree) / gpus**2)

    def best_wait(agree: float) -> float:
        return _least(lambda wait: _error(points, law(wait, agree))[1], _LOW, _HIGH, 30)

    steps = [_LOW + (_HIGH - _LOW) * step / 30 for step in range(31)]
    start = min(steps, key=lambda agree: _error(points, law(best_wait(agree), agree))[1])
    agree = _least(lambda log: _error(points, law(best_wait(log), log))[1], start - 0.6, start + 0.6, 20)
    wait = best_wait(agree)
    found = {"contention": math.exp(wait) / gpus, "coherency": math.exp(agree) / gpus**2}
    return _anchored("usl", found, law(wait, agree), points)


def _anchored(law: str, parameters: dict[str, float], shape: Law, points: Sequence[Point]) -> Fitted:
    last, rate = points[-1]
    return Fitted(law, parameters, lambda n: rate * shape(n) / shape(last), math.sqrt(_error(points, shape)[1]))


def _weights(points: Sequence[Point]) -> list[float]:
    return [FADE**back for back in range(len(points) - 1, -1, -1)]


def _error(points: Sequence[Point], shape: Law) -> tuple[float, float]:
    """Scale in logarithm, and weighted mean square of what is left."""
    weights = _weights(points)
    left = [math.log(rate) - math.log(shape(gpus)) for gpus, rate in points]
    scale = sum(w * each for w, each in zip(weights, left, strict=True)) / sum(weights)
    return scale, sum(w * (each - scale) ** 2 for w, each in zip(weights, left, strict=True)) / sum(weights)


def _least(value: Callable[[float], float], low: float, high: float, rounds: int = _ROUNDS) -> float:
    """Golden-section search."""
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    values = value(left), value(right)
    for _ in range(rounds):
        if values[0] <= values[1]:
            high, right = right, left
            left = high - golden * (high - low)
            values = value(left), values[0]
        else:
            low, left = left, right
            right = low + golden * (high - low)
            values = values[1], value(right)
    return (low + high) / 2


# --- which law ----------------------------------------------------------------------------------------------------


def held_out(law: str, points: Sequence[Point], slope: float, planned: Planned | None = None) -> float | None:
    """Mean |log error| of up to three last sizes, each fitted on those before it. None where too few are left."""
    errors = [
        abs(math.log(fit_law(law, points[:at], slope, planned).rate(points[at][0]) / points[at][1]))
        for at in range(max(FEWEST[law], len(points) - 3), len(points))
    ]
    return sum(errors) / len(errors) if errors else None


def choose(
    points: Sequence[Point], slope: float, planned: Planned | None = None
) -> tuple[str, dict[str, float | None]]:
    """The law to project with, and the held-out error of each that has enough sizes (the planner's where it has any).

    With three sizes the planner's alone may take the power law's place: the others have nothing held out.
    """
    laws = [law for law in LAWS if law != PLANNER or planned is not None]
    found = {law: held_out(law, points, slope, planned) for law in laws if len(points) >= FEWEST[law]}
    usual = found["power"]
    others = {law: error for law, error in found.items() if law != "power" and error is not None}
    if len(points) < (3 if PLANNER in others else 4) or usual is None or not others:
        return "power", found
    best = min(others, key=lambda law: others[law])
    return (best if others[best] < BETTER * usual else "power"), found


def as_fit(
    fitted: Fitted, points: Sequence[Point], slope: float, error: float | None, *, chosen: bool,
    planned: Planned | None = None,
) -> Fit:  # fmt: skip
    """A law as it is answered, each parameter with the interval that dropping single sizes gives (jackknife)."""
    spread = _jackknife(fitted, points, slope, planned)
    rows = tuple(
        Parameter(name=name, value=value, low=value - spread[name] if spread else None,
                  high=value + spread[name] if spread else None)
        for name, value in fitted.parameters.items()
    )  # fmt: skip
    return Fit(law=fitted.law, parameters=rows, error=fitted.spread, held_out=error, peak_gpus=fitted.peak_gpus,
               chosen=chosen)  # fmt: skip


NINETY = 1.645  # of a normal distribution


def _jackknife(
    fitted: Fitted, points: Sequence[Point], slope: float, planned: Planned | None
) -> dict[str, float] | None:
    """Half widths; None where dropping one leaves too few."""
    n = len(points)
    if n - 1 < FEWEST[fitted.law]:
        return None
    others = [fit_law(fitted.law, [*points[:at], *points[at + 1 :]], slope, planned).parameters for at in range(n)]
    widths = {}
    for name in fitted.parameters:
        mean = sum(each[name] for each in others) / n
        widths[name] = NINETY * math.sqrt((n - 1) / n * sum((each[name] - mean) ** 2 for each in others))
    return widths


# --- how sure -----------------------------------------------------------------------------------------------------


def unit_of_error(points: Sequence[Point], gpus: int, slope: float) -> float:
    """What a projection's log error is measured in: the scatter of the sizes, half the slope, and a floor, growing
    with the square root of the doublings from the last size."""
    power = fit_law("power", points, slope)
    doublings = max(abs(math.log2(gpus / points[-1][0])), 1 / 8)
    return math.hypot(_FLOOR, power.spread, power.parameters["per_doubling"] / 2) * math.sqrt(doublings)


_FLOOR = 0.005  # half a per cent: what a second run of the same differs by
