"""A stack's profile fitted further to a user's own step times, and how much the interval shrinks by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from math import exp
from typing import Any

from suanli.catalog.devices import find_device
from suanli.catalog.stacks import find_stack
from suanli.errors import FaultList, InputError
from suanli.nouns.calibrated import Calibrated, NumberFit, RunFit
from suanli.nouns.profile import Profile, StackProfile
from suanli.nouns.workload import Workload
from suanli.plan.calibrate import Data, Fitted, fit, half_width, spreads_after
from suanli.plan.memory import memory_estimate
from suanli.plan.observed import Observation
from suanli.plan.predict import data_of, settled, step_times
from suanli.units import format_bytes

Array = Any
FEWEST = 3
MOST_FOLDS = 40  # of so many runs each is predicted by all the others; of more, each by those of other groups
_EARLIER = 2  # rows that the interval from before counts for
_FAR = 1.25  # a run further off than this with everything fitted to it does not agree with the others
_TOLD = 0.99  # a number is told by the runs where they narrow its spread by a hundredth
_SAME = 1.1  # runs alike in every column are told where their times differ by more


def calibrate(runs: Sequence[Observation], stack: StackProfile, name: str = "") -> Calibrated:
    """The stack with its numbers moved to the runs as far as these can tell; every run predicted from the others; and
    the 80 % half-width of the logarithm before and after, which may grow where the runs contradict one another.

    Raises InputError for fewer than three runs, or runs that are not of one device, dtype and release.
    """
    import numpy as np  # noqa: PLC0415

    _check(runs)
    prior = stack.at(*runs[0].labels[:2])
    runs = [settled(run, stack.traits, prior) for run in runs]
    data = data_of(runs, stack.traits, prior)
    before = step_times(data.features, prior)
    held_out = _held_out(data, prior)
    routed = any(run.routed for run in runs)
    width = stack.routed_half_width if routed else stack.half_width
    after = _width(np.log(held_out / data.step_s), width)
    found = fit(data, prior, ())
    numbers = _numbers(data, prior, found)
    profile = replace(
        stack, name=name or f"{stack.shipped}-own", base=stack.shipped, numbers=found.numbers, labels={},
        rows=stack.rows + len(runs), routed_rows=stack.routed_rows + sum(run.routed for run in runs),
        devices=(runs[0].labels[0],), sources=(*stack.sources, "own runs"),
        untold=tuple(each.name for each in numbers if not each.told),
        half_width=stack.half_width if routed else after,
        routed_half_width=after if routed else stack.routed_half_width,
    )  # fmt: skip
    rows = tuple(_row(run, *each) for run, *each in zip(runs, before, held_out, strict=True))
    return Calibrated(
        name=profile.name, base=stack.name, device=runs[0].labels[0].strip(), numbers=numbers, runs=rows,
        half_width_before=width, half_width_after=after, narrower_fraction=1 - after / width,
        mean_error_before_fraction=_mean([row.error_before_fraction for row in rows]),
        mean_error_held_out_fraction=_mean([row.error_held_out_fraction for row in rows]),
        extrapolates=tuple(_beyond(runs, profile)),
        warnings=(*_too_large(runs, rows), *_twins(runs), *_far_off(runs, data, found), *_grown(width, after)),
        profile=profile,
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


def _held_out(data: Data, prior: Profile) -> Array:
    """Seconds of each run by what the runs of the other folds give."""
    import numpy as np  # noqa: PLC0415

    found = np.zeros(len(data.step_s))
    fold = np.arange(len(found)) % min(len(found), MOST_FOLDS)
    for place in range(int(fold.max()) + 1):
        rest = fold != place
        found[~rest] = fit(data.take(rest), prior, ()).predict(data.take(~rest))
    return found


def _width(errors: Array, before: float) -> float:
    """Half-width of the interval: the errors seen, and the interval from before as a few rows more."""
    rows = len(errors)
    return float(((rows * half_width(errors) ** 2 + _EARLIER * before**2) / (rows + _EARLIER)) ** 0.5)


def _numbers(data: Data, prior: Profile, found: Fitted) -> tuple[NumberFit, ...]:
    """The profile's numbers, those that a run depends on first."""
    spreads = spreads_after(data, found)
    meta = {each.name: each.metadata for each in fields(Profile)}
    rows = [
        NumberFit(
            name=name, unit=meta[name]["unit"], meaning=meta[name]["doc"], before=float(getattr(prior, name)),
            after=float(getattr(found.numbers, name)), spread_before=before, spread_after=after,
            told=after < _TOLD * before,
        )
        for name, (before, after) in spreads.items()
    ]  # fmt: skip
    return tuple(sorted(rows, key=lambda row: not row.told))


def _row(run: Observation, before_s: float, held_out_s: float) -> RunFit:
    layout, device = run.layouts[0], find_device(run.device)
    workload = Workload(phase="train", seq=run.seq, dtype=run.dtype)
    held = memory_estimate(
        run.arch, workload, layout, find_stack(run.stack), global_batch=run.global_batch,
        capacity=device.memory_bytes_per_torch_device,
    )  # fmt: skip
    return RunFit(
        id=run.id, layout=layout.short, gpus=run.gpus, global_batch=run.global_batch, step_s=run.step_s,
        before_s=float(before_s), held_out_s=float(held_out_s), error_before_fraction=float(before_s / run.step_s - 1),
        error_held_out_fraction=float(held_out_s / run.step_s - 1), memory_bytes=held.total, fits=held.fits,
    )  # fmt: skip


def _mean(errors: Sequence[float]) -> float:
    return sum(map(abs, errors)) / len(errors)


# --- what to know of the runs -------------------------------------------------------------------------------------


def _beyond(runs: Sequence[Observation], profile: StackProfile) -> Iterator[str]:
    """What a layout may have that no run had."""
    layouts = [run.layouts[0] for run in runs]
    yield f"other devices and dtypes than {runs[0].labels[0].strip()}"
    lacking = [word for word, has in (
        ("pp above 1", any(each.pp > 1 for each in layouts)), ("tp above 1", any(each.tp > 1 for each in layouts)),
        ("cp above 1", any(each.cp > 1 for each in layouts)), ("ZeRO 3", any(each.zero == 3 for each in layouts)),
        ("recompute", any(each.recompute != "none" for each in layouts)),
        ("routed experts", any(run.routed for run in runs)),
    ) if not has]  # fmt: skip
    if lacking:
        yield "layouts and models with " + ", ".join(lacking) + ": no run had them"
    yield f"more than {max(each.gpus for each in layouts):,} GPUs"
    if profile.untold:
        yield f"as in {profile.base}, told by no run: " + ", ".join(profile.untold)


def _too_large(runs: Sequence[Observation], rows: Sequence[RunFit]) -> Iterator[str]:
    for run, row in zip(runs, rows, strict=True):
        if row.fits is False:
            memory = find_device(run.device).memory_bytes_per_torch_device or 0
            yield (
                f"{run.id} does not fit by this stack's memory: {format_bytes(row.memory_bytes)} of "
                f"{format_bytes(memory)} on the fullest rank; is its layout as written?"
            )


def _twins(runs: Sequence[Observation]) -> Iterator[str]:
    """Runs that no column tells apart, and whose times differ."""
    alike: dict[Any, list[Observation]] = {}
    for run in runs:
        key = (id(run.arch), run.seq, run.global_batch, run.layouts, run.device, run.dtype, id(run.fabric))
        alike.setdefault(key, []).append(run)
    for held in alike.values():
        one, other = (pick(held, key=lambda run: run.step_s) for pick in (min, max))
        if other.step_s > _SAME * one.step_s:
            yield f"{one.id} and {other.id} are alike in every column and take {one.step_s:g} s and {other.step_s:g} s"


def _far_off(runs: Sequence[Observation], data: Data, found: Fitted) -> Iterator[str]:
    for run, seconds in zip(runs, found.predict(data), strict=True):
        ratio = float(seconds / run.step_s)
        if not 1 / _FAR < ratio < _FAR:
            yield (
                f"{run.id} contradicts the others: {seconds:.4g} s with all runs fitted, {run.step_s:g} s measured "
                f"({ratio - 1:+.0%})"
            )


def _grown(before: float, after: float) -> Iterator[str]:
    if after > before:
        yield (
            f"the interval grew: the runs are less alike than those the stack was fitted to ({exp(before) - 1:.1%} "
            f"above before, {exp(after) - 1:.1%} now)"
        )
