"""Fitting an engine's numbers to measured times between tokens, held by what is believed before any is seen.

A time is linear in the profile's numbers: Σ number · feature. Each number is `believed · exp(θ)`, one engine's
`… · exp(θ + shift)`; θ and shifts are pulled to 0 by their spreads, errors count as logarithms and beyond a few percent
by their size alone (Huber), as step times of training are fitted (`plan.calibrate`). Data-sheet rates are never beaten:
factors on them end at 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from suanli.nouns.serving_profile import NUMBERS, ServingProfile
from suanli.plan.serving.times import Replica

Array = Any
ROOFS = ("weights", "cache", "prefill")  # their rooflines are at data-sheet rates; NCCL's times can be beaten
NOISE = 0.04  # of a logarithm: beyond it an error counts by its size
_STEPS, _ENOUGH = 40, 1e-6


@dataclass(frozen=True)
class Served:
    """Points side by side: features [point, number], seconds, engine and fold of each."""

    features: Array
    seconds: Array
    engines: tuple[str, ...]
    folds: tuple[str, ...]

    def take(self, rows: Array) -> Served:
        """Those points only; `rows` are truths."""
        import numpy as np  # noqa: PLC0415

        places = np.flatnonzero(rows)
        names = (tuple(each[at] for at in places) for each in (self.engines, self.folds))
        return Served(self.features[places], self.seconds[places], *names)


def features(replica: Replica, isl: float, osl: float, concurrency: float) -> list[float]:
    """What each number of a profile is multiplied by in the time between two tokens, in the order of `NUMBERS`.

    The cache holds the prompt and half of what is generated on average; each prompt's prefill stands between steps.
    """
    parts = replica.decode_parts(float(concurrency), isl + osl / 2)
    prefill = replica.prefill_parts(float(isl), float(isl))
    share = concurrency / osl
    found = {
        "weights": parts.weights + parts.experts, "cache": parts.cache, "passes": parts.passes,
        "collective": parts.collectives, "layer_s": parts.layers, "step_s": 1.0, "sequence_s": parts.sequences,
        "prefill": share * prefill.arithmetic, "prefill_other": share * prefill.other,
    }  # fmt: skip
    return [float(found[name]) for name in NUMBERS]


@dataclass(frozen=True)
class FittedEngines:
    """Numbers of all engines together, and of each."""

    shared: ServingProfile
    engines: dict[str, ServingProfile]

    def profile(self, engine: str) -> ServingProfile:
        """The engine's own numbers; the shared ones where it was not among the points."""
        return self.engines.get(engine, self.shared)

    def predict(self, served: Served) -> Array:
        """Seconds between two tokens, for every point."""
        import numpy as np  # noqa: PLC0415

        rows = [[getattr(self.profile(engine), name) for name in NUMBERS] for engine in served.engines]
        return (served.features * np.array(rows)).sum(axis=1)


def fit_engines(served: Served, believed: ServingProfile) -> FittedEngines:
    """The numbers that points and belief agree on: damped Gauss–Newton on θ."""
    import numpy as np  # noqa: PLC0415

    design, widths, names = _design(served)
    base = np.log([getattr(believed, name) for name in NUMBERS])
    goal = np.log(served.seconds)
    theta, damping = np.zeros(len(widths)), 1e-3

    def predicted(at: Array) -> tuple[Array, Array]:
        numbers = np.exp(base + (design @ at).reshape(len(goal), len(NUMBERS)))
        terms = served.features * numbers
        return np.log(terms.sum(axis=1)), terms / terms.sum(axis=1, keepdims=True)

    def cost(logarithms: Array, at: Array) -> float:
        size = np.abs(logarithms - goal) / NOISE
        return float(np.where(size < 1, size**2 / 2, size - 0.5).sum() + ((at / widths) ** 2).sum() / 2)

    now, shares = predicted(theta)
    for _ in range(_STEPS):
        slopes = np.einsum("pn,pnt->pt", shares, design.reshape(len(goal), len(NUMBERS), len(widths)))
        error = (now - goal) / NOISE
        pull = 1 / np.maximum(np.abs(error), 1.0) / NOISE**2
        normal = (slopes * pull[:, None]).T @ slopes + np.diag(widths**-2.0)
        downhill = -(slopes * pull[:, None]).T @ (now - goal) - theta / widths**2
        tried = theta + np.linalg.solve(normal + damping * np.diag(np.diag(normal)), downhill)
        there, new_shares = predicted(tried)
        gained = cost(now, theta) - cost(there, tried)
        if gained < 0:
            damping *= 5
            continue
        theta, now, shares, damping = tried, there, new_shares, max(damping / 5, 1e-9)
        if gained < _ENOUGH:
            break
    return _fitted(theta, names, believed)


def _design(served: Served) -> tuple[Array, Array, list[tuple[str | None, str]]]:
    """What each θ moves [point · number, θ], its spread, and its engine (None: all) and number."""
    import numpy as np  # noqa: PLC0415

    found: list[tuple[str | None, str, float]] = [(None, name, _spread(name, None)) for name in NUMBERS]
    kinds = sorted(set(served.engines))
    for engine in kinds if len(kinds) > 1 else ():
        found += [(engine, name, _spread(name, engine)) for name in NUMBERS if _spread(name, engine)]
    names = [(kind, name) for kind, name, _ in found]
    design = np.zeros((len(served.seconds), len(NUMBERS), len(names)))
    for place, (kind, name) in enumerate(names):
        rows = [kind in (None, engine) for engine in served.engines]
        design[rows, NUMBERS.index(name), place] = 1.0
    return design.reshape(-1, len(names)), np.array([width for _, _, width in found]), names


def _spread(name: str, engine: str | None) -> float:
    """Spread of a number: of what all share, of an engine, or of an engine under another kind of load (`vllm/chat`)."""
    metadata = next(each.metadata for each in fields(ServingProfile) if each.name == name)
    return float(metadata["spread" if engine is None else "workload" if "/" in engine else "pooled"])


def _fitted(theta: Array, names: Sequence[tuple[str | None, str]], believed: ServingProfile) -> FittedEngines:
    import math  # noqa: PLC0415

    factors: dict[str | None, dict[str, float]] = {}
    for (kind, name), shift in zip(names, theta, strict=True):
        factors.setdefault(kind, {})[name] = math.exp(float(shift))
    shared = believed.scaled(factors.pop(None))
    engines = {str(kind): _physical(shared.scaled(found)) for kind, found in factors.items()}
    return FittedEngines(_physical(shared), engines)


def _physical(profile: ServingProfile) -> ServingProfile:
    """The profile, no factor on a data-sheet rate below 1."""
    return replace(profile, **{name: max(getattr(profile, name), 1.0) for name in ROOFS})
