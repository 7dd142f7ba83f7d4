"""Two traces side by side: the accounts of their mean steps, or of their whole windows, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suanli.explain.account import ENTRIES
from suanli.nouns.explained import Explained, TraceDifference
from suanli.nouns.plans import DifferenceRow

MEAN_STEP, WINDOW = "mean step", "whole window"
_MOST_KERNELS = 20


@dataclass(frozen=True)
class Basis:
    """An account to set beside another: of one step, or of the whole."""

    name: str
    seconds: float
    entries: Mapping[str, float]
    kernels: Mapping[str, float]


def basis_of(found: Explained, *, steps: bool) -> Basis:
    """The account of the mean step of all devices, or of the whole window of the mean device."""
    devices = max(len(found.devices), 1)
    if steps:
        count = len(found.steps)
        entries = {e: sum(step.account.seconds(e) for step in found.steps) / count for e in ENTRIES}
        whole, name = sum(step.seconds for step in found.steps) / count, MEAN_STEP
        # kernels are known over the whole window: a step has the share of the window that it is
        scale = whole / (found.peak_s / devices) / devices if found.peak_s else 0.0
    else:
        entries = {each.entry: each.seconds / devices for each in found.account}
        whole, name, scale = found.peak_s / devices, WINDOW, 1 / devices
    kernels: dict[str, float] = {}
    for row in found.kernels:
        kernels[row.name] = kernels.get(row.name, 0.0) + row.owned_s * scale
    return Basis(name, whole, entries, kernels)


def compare_traces(first: Explained, second: Explained) -> TraceDifference:
    """Second less first, by steps where both have steps. The differences add up to that of the totals."""
    steps = bool(first.steps and second.steps)
    one, other = basis_of(first, steps=steps), basis_of(second, steps=steps)
    return TraceDifference(
        basis=one.name,
        first_s=one.seconds,
        second_s=other.seconds,
        difference_s=other.seconds - one.seconds,
        rows=_rows(one.entries, other.entries),
        kernels=_rows(one.kernels, other.kernels)[:_MOST_KERNELS],
    )


def _rows(one: Mapping[str, float], other: Mapping[str, float]) -> tuple[DifferenceRow, ...]:
    """Every name that either has time for, the largest difference first."""
    names = [name for name in dict.fromkeys((*one, *other)) if one.get(name) or other.get(name)]
    pairs = ((name, one.get(name, 0.0), other.get(name, 0.0)) for name in names)
    rows = [DifferenceRow(entry=n, first=x, second=y, difference=y - x) for n, x, y in pairs]
    return tuple(sorted(rows, key=lambda row: (-abs(row.difference), row.entry)))
