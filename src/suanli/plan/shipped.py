"""The profiles that ship, fitted again from the runs the package carries, beside what ships."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial

from suanli.catalog.profiles import find_profile
from suanli.nouns.calibrated import ShippedFit, ShippedFits, ShippedNumber
from suanli.nouns.profile import Profile, StackProfile
from suanli.plan.observed import Observation
from suanli.plan.predictions import SETS, fit_stack, judge

STACKS = tuple(dict.fromkeys(each.stack for each in SETS))  # those that have runs of their own
_STILL = 1e-9  # a number that moved by less was told by no run


def fit_shipped(names: Sequence[str], own: Sequence[Observation] = ()) -> ShippedFits:
    """Every stack of `names` fitted as what ships was: all its runs, and `own` ones beside them, for the numbers; each
    fold left out, for the interval, which own runs do not enter.
    """
    found = tuple(_fitted(name, [run for run in own if run.stack == name]) for name in names)
    return ShippedFits(stacks=found, largest_difference_fraction=max(e.largest_difference_fraction for e in found))


def _fitted(name: str, own: Sequence[Observation]) -> ShippedFit:
    judged = [judge(each) for each in SETS if each.stack == name]
    fitted, shipped = fit_stack(name, judged, own), find_profile(name)
    rows = [*_numbers(fitted, shipped), *_labels(fitted, shipped)]
    moved = [row for row in rows if ":" in row.name or abs(row.fitted / row.believed - 1) > _STILL]
    return ShippedFit(
        stack=name, rows=fitted.rows, own_rows=len(own), sources=fitted.sources, numbers=tuple(moved),
        kept=tuple(row.name for row in rows if row not in moved), half_width_shipped=shipped.half_width,
        half_width_fitted=fitted.half_width, profile=fitted,
        largest_difference_fraction=max(abs(row.difference_fraction or 0.0) for row in rows),
    )  # fmt: skip


def _numbers(fitted: StackProfile, shipped: StackProfile) -> Iterator[ShippedNumber]:
    for each in fields(Profile):
        believed, ships, found = (
            float(getattr(profile, each.name)) for profile in (fitted.prior, shipped.numbers, fitted.numbers)
        )
        yield number(each.name, believed, ships, found)


def _labels(fitted: StackProfile, shipped: StackProfile) -> Iterator[ShippedNumber]:
    for label, values in fitted.labels.items():
        make = partial(number, believed=1.0)
        for name, found in values.items():
            yield make(f"{label}: {name}", ships=shipped.labels.get(label, {}).get(name), found=found)


def number(name: str, believed: float, ships: float | None, found: float) -> ShippedNumber:
    """One row: as believed, as it ships, as found."""
    return ShippedNumber(
        name=name, believed=believed, shipped=ships, fitted=found,
        difference_fraction=None if ships is None else found / ships - 1,
    )  # fmt: skip
