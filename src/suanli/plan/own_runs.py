"""A stack's profile fitted further to a user's own step times, and how much the interval shrinks by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from suanli.errors import FaultList, InputError
from suanli.nouns.profile import StackProfile
from suanli.nouns.step import Calibration
from suanli.plan.calibrate import fit, half_width
from suanli.plan.observed import Observation
from suanli.plan.predict import data_of, step_times

Array = Any
FEWEST = 3
_EARLIER = 2  # rows that the interval from before counts for
_NARROWER = 0.5  # one cluster differs less from its stack's numbers than stacks from one another


def calibrate(runs: Sequence[Observation], stack: StackProfile) -> Calibration:
    """The stack with its numbers moved to the runs as far as these can tell; every run predicted from the others; and
    the 80 % half-width of the logarithm before and after, which may grow where the runs contradict one another.

    Raises InputError for fewer than three runs, or runs that are not of one device, dtype and release.
    """
    import numpy as np  # noqa: PLC0415

    _check(runs)
    prior = stack.at(*runs[0].labels[:2])
    data = data_of(runs, stack.traits, prior)
    before = np.log(step_times(data.features, prior) / data.step_s)
    held_out = np.zeros(len(runs))
    for place in range(len(runs)):
        rest = np.arange(len(runs)) != place
        found = fit(data.take(rest), prior, (), _NARROWER).predict(data.take(~rest))
        held_out[place] = np.log(found[0] / data.step_s[place])
    after = _width(held_out, stack.half_width)
    fitted = replace(
        stack, numbers=fit(data, prior, (), _NARROWER).numbers, labels={}, half_width=after,
        rows=stack.rows + len(runs), devices=(runs[0].labels[0],), sources=(*stack.sources, "own runs"),
    )  # fmt: skip
    return Calibration(
        stack=fitted, half_width_before=stack.half_width, half_width_after=after,
        errors_before=tuple(map(float, before)), errors_held_out=tuple(map(float, held_out)),
    )  # fmt: skip


def _check(runs: Sequence[Observation]) -> None:
    faults = FaultList(InputError)
    if len(runs) < FEWEST:
        faults.add(code="too_few_runs", message="too few step times to fit to and to judge by", got=str(len(runs)),
                   expected=f"{FEWEST} or more, best of several layouts")  # fmt: skip
    kinds = sorted({" ".join(run.labels[:2]).strip() for run in runs})
    if len(kinds) > 1:
        faults.add(code="mixed_runs", message="runs of several devices, dtypes or releases", got=", ".join(kinds),
                   expected="one of each: calibrate them one after another")  # fmt: skip
    faults.raise_if_any()


def _width(errors: Array, before: float) -> float:
    """Half-width of the interval: the errors seen, and the interval from before as a few rows more."""
    rows = len(errors)
    return float(((rows * half_width(errors) ** 2 + _EARLIER * before**2) / (rows + _EARLIER)) ** 0.5)
