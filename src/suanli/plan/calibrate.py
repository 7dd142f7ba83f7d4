"""Fitting a stack's few numbers to step times: least squares of logarithms, robust, held by what was believed before.

A number is `believed · exp(θ)`; labels (a device and dtype, a release) may shift some numbers further. θ is pulled to
0 by its spread, so that three runs move what they can tell and leave the rest, and many rows for few numbers are not
followed into their noise. Residuals are weighed as |r| beyond a few percent (Huber), since published rows hold errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from suanli.nouns.profile import Profile, spreads
from suanli.plan.stage_time import Stages
from suanli.plan.step_time import Features, account

Array = Any
NOISE = 0.04  # of the logarithm of a step time: beyond it an error counts by its size, no longer by its square
COVERED = 0.8  # of the interval
_STEPS, _NUDGE, _ENOUGH = 25, 1e-4, 1e-3


@dataclass(frozen=True)
class Data:
    """Features of measured steps, their times, and the labels each stands under."""

    features: Features
    step_s: Array
    labels: tuple[tuple[str, ...], ...]  # one tuple a row: device and dtype, release
    weights: Array

    def take(self, places: Array) -> Data:
        """Those rows only."""
        import numpy as np  # noqa: PLC0415

        rows = np.arange(len(self.step_s))[places]
        labels = tuple(self.labels[row] for row in rows)
        return Data(self.features.take(rows), self.step_s[rows], labels, self.weights[rows])


def join_features(parts: Sequence[Features]) -> Features:
    """Features of several grids, one after another."""
    import numpy as np  # noqa: PLC0415

    apart = [each.apart() for each in parts]
    found: Features = _each(Features, apart, lambda arrays: np.concatenate(arrays, axis=-1))
    return replace(found, place=np.arange(len(found.place)))


def _each(kind: type, parts: Sequence[Any], make: Any) -> Any:
    """A dataclass of arrays, made field by field from several of its kind."""
    found = {}
    for each in fields(kind):
        values = [getattr(part, each.name) for part in parts]
        found[each.name] = _each(Stages, values, make) if isinstance(values[0], Stages) else make(values)
    return kind(**found)


@dataclass(frozen=True)
class Fitted:
    """Numbers as found: factors on what was believed, for all rows and by label."""

    prior: Profile
    factors: Mapping[str, float]
    labels: Mapping[str, Mapping[str, float]]

    @property
    def numbers(self) -> Profile:
        """The stack's numbers."""
        return self.prior.scaled(self.factors)

    def predict(self, data: Data) -> Array:
        """Seconds of a step for every row."""
        import numpy as np  # noqa: PLC0415

        profile = self.numbers
        for place in range(len(data.labels[0])):
            held = [self.labels.get(row[place], {}) for row in data.labels]
            names = sorted({name for each in held for name in each})
            profile = profile.scaled({name: np.array([each.get(name, 1.0) for each in held]) for name in names})
        return sum(account(data.features.apart(), profile).values())


class _Problem:
    """θ, what it means, and how well it does."""

    def __init__(self, data: Data, prior: Profile, label_spreads: Sequence[Mapping[str, float]]) -> None:
        import numpy as np  # noqa: PLC0415

        self.data, self.prior, self.goal = data, prior, np.log(data.step_s)
        self.features = data.features.apart()  # numbers may differ by row
        self.own = list(spreads())
        self.places: list[tuple[str, str, Any]] = []  # label, name, rows
        widths = [spreads()[name] for name in self.own]
        for place, shifted in enumerate(label_spreads):
            found = sorted({row[place] for row in data.labels})
            for label in found if len(found) > 1 else ():
                rows = np.array([row[place] == label for row in data.labels])
                for name, width in shifted.items():
                    self.places.append((label, name, rows))
                    widths.append(width)
        self.widths = np.array(widths)

    def logarithms(self, theta: Array) -> Array:
        """ln of the predicted seconds."""
        import numpy as np  # noqa: PLC0415

        factors: dict[str, Any] = dict(zip(self.own, np.exp(theta[: len(self.own)]), strict=True))
        for (_, names, rows), shift in zip(self.places, theta[len(self.own) :], strict=True):
            for name in names.split():
                factors[name] = factors[name] * np.where(rows, np.exp(shift), 1.0)
        return np.log(sum(account(self.features, self.prior.scaled(factors)).values()))

    def cost(self, logarithms: Array, theta: Array) -> float:
        """Huber's loss of the residuals and the pull of what is believed."""
        import numpy as np  # noqa: PLC0415

        size = np.abs(logarithms - self.goal) / NOISE
        loss = np.where(size < 1, size**2 / 2, size - 0.5)
        return float((self.data.weights * loss).sum() + ((theta / self.widths) ** 2).sum() / 2)

    def fitted(self, theta: Array) -> Fitted:
        """The numbers of θ."""
        import numpy as np  # noqa: PLC0415

        factors = {name: float(np.exp(shift)) for name, shift in zip(self.own, theta, strict=False)}
        labels: dict[str, dict[str, float]] = {}
        for (label, names, _), shift in zip(self.places, theta[len(self.own) :], strict=True):
            for name in names.split():
                labels.setdefault(label, {})[name] = labels.get(label, {}).get(name, 1.0) * float(np.exp(shift))
        return Fitted(self.prior, factors, labels)


def spreads_after(data: Data, fitted: Fitted) -> dict[str, tuple[float, float]]:
    """Number → how far it is believed to lie from what was found (of the logarithm), before the rows were seen and
    after; the same twice where no row depends on it. Of rows without labels; Gauss–Newton's own normal matrix.
    """
    import numpy as np  # noqa: PLC0415

    problem = _Problem(data, fitted.numbers, ())
    zero = np.zeros(len(problem.widths))
    now = problem.logarithms(zero)
    slopes = np.array([(problem.logarithms(nudge) - now) / _NUDGE for nudge in _NUDGE * np.eye(len(zero))])
    error = np.abs(now - problem.goal) / NOISE
    normal = (slopes * (data.weights / np.maximum(error, 1.0) / NOISE**2)) @ slopes.T + np.diag(problem.widths**-2.0)
    after = np.sqrt(np.diag(np.linalg.inv(normal)))
    moved = np.abs(slopes).max(axis=1) > 0
    pairs = zip(problem.own, problem.widths, np.where(moved, after, problem.widths), strict=True)
    return {name: (float(before), float(then)) for name, before, then in pairs}


def fit(data: Data, prior: Profile, label_spreads: Sequence[Mapping[str, float]]) -> Fitted:
    """The numbers that the rows and what was believed agree on: damped Gauss–Newton on θ."""
    import numpy as np  # noqa: PLC0415

    problem = _Problem(data, prior, label_spreads)
    theta, damping = np.zeros(len(problem.widths)), 1e-3
    now = problem.logarithms(theta)
    cost = problem.cost(now, theta)
    moving = np.ones(len(theta), dtype=bool)
    for _ in range(_STEPS):
        slopes = np.zeros((len(theta), len(now)))
        for place in np.flatnonzero(moving):
            nudge = np.zeros(len(theta))
            nudge[place] = _NUDGE
            slopes[place] = (problem.logarithms(theta + nudge) - now) / _NUDGE
        moving = np.abs(slopes).max(axis=1) > 0  # what these rows do not depend on stays as believed
        error = (now - problem.goal) / NOISE
        pull = data.weights / np.maximum(np.abs(error), 1.0) / NOISE**2
        normal = (slopes * pull) @ slopes.T + np.diag(problem.widths**-2.0)
        downhill = -(slopes * pull) @ (now - problem.goal) - theta / problem.widths**2
        gained = 0.0
        while damping < 1e6:
            tried = theta + np.linalg.solve(normal + damping * np.diag(np.diag(normal)), downhill)
            there = problem.logarithms(tried)
            gained = cost - problem.cost(there, tried)
            if gained >= 0:
                break
            damping *= 5
        if damping >= 1e6 or gained < _ENOUGH:
            break
        theta, now, cost, damping = tried, there, cost - gained, max(damping / 5, 1e-6)
    return problem.fitted(theta)


def half_width(errors: Array) -> float:
    """The size that `COVERED` of the errors stay below, counting one that is not yet seen."""
    import numpy as np  # noqa: PLC0415

    ordered = np.sort(np.abs(errors))
    place = min(len(ordered), int(np.ceil(COVERED * (len(ordered) + 1))))
    return float(ordered[place - 1])
