"""Ranks that are slow themselves: in the compute of their steps, and in the runs of a kernel.

A rank that only waits for others is none: communication and idle time are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from suanli.explain.fleet.pool import Fleet
from suanli.explain.fleet.robust import FEWEST, Spread, spread
from suanli.explain.intervals import Array
from suanli.explain.usage import seconds
from suanli.nouns.fleet import Straggler

MOST_OF_KERNELS = 50
OFTEN = 0.5  # of its steps that must stand out


@dataclass(frozen=True, eq=False)
class StepTable:
    """Steps by unit: seconds of each, and of its compute; NaN where a unit has no step of that name."""

    names: tuple[str, ...]
    seconds: Array  # [units, steps]
    compute: Array


def step_table(fleet: Fleet) -> StepTable:
    """Steps are the same where their names are; their order is that of the rank that has most of them."""
    names: dict[str, int] = {}
    for unit in sorted(fleet.units, key=lambda each: -len(each.steps)):
        for step in unit.steps:
            names.setdefault(step.name, len(names))
    shape = len(fleet.units), len(names)
    lasted, compute = np.full(shape, np.nan), np.full(shape, np.nan)
    for place, unit in enumerate(fleet.units):
        for step in unit.steps:
            lasted[place, names[step.name]] = step.seconds
            compute[place, names[step.name]] = step.compute_s
    return StepTable(tuple(names), lasted, compute)


def stragglers(fleet: Fleet, table: StepTable, stage_of: Mapping[int, int]) -> tuple[Straggler, ...]:
    """By step, then by kernel, each the slowest first."""
    return (*_by_step(fleet, table, stage_of), *_by_kernel(fleet))


def _by_step(fleet: Fleet, table: StepTable, stage_of: Mapping[int, int]) -> list[Straggler]:
    """Compute of each step against that of ranks at the same stage: stages have different layers."""
    stage = np.array([stage_of.get(unit.rank, -1) for unit in fleet.units])
    found = []
    for each in np.unique(stage):
        units = np.flatnonzero(stage == each)
        found += _of_stage(fleet, units, table.compute[units])
    return sorted(found, key=lambda one: (-one.slower_fraction, one.rank, one.device))


def _of_stage(fleet: Fleet, units: Array, compute: Array) -> list[Straggler]:
    flagged = np.zeros(compute.shape, dtype=bool)
    spreads: list[Spread | None] = []
    for step in range(compute.shape[1]):
        known = ~np.isnan(compute[:, step])
        found = spread(compute[known, step])
        spreads.append(found)
        if found is not None:
            flagged[:, step] = known & (compute[:, step] > found.threshold)
    looked = np.array([each is not None for each in spreads], dtype=bool)
    steps = (~np.isnan(compute) & looked).sum(axis=1)
    slow = np.flatnonzero((flagged.sum(axis=1) > OFTEN * steps) & (steps > 0))
    return [_slow(fleet, int(units[row]), compute[row], flagged[row], spreads, len(units)) for row in slow]


def _slow(fleet: Fleet, unit: int, own: Array, flagged: Array, spreads: list[Spread | None], beside: int) -> Straggler:
    """The unit by its step in the middle of those that stand out."""
    places = np.flatnonzero(flagged)
    by_time = sorted(places, key=lambda place: (own[place], place))
    middle = int(by_time[(len(by_time) - 1) // 2])
    found = spreads[middle]
    assert found is not None, "a step that stands out has a median"
    return Straggler(
        rank=fleet.units[unit].rank,
        device=fleet.units[unit].device,
        by="step",
        what="compute of steps",
        seconds=float(own[middle]),
        median_s=found.median,
        mad_s=found.mad,
        threshold_s=found.threshold,
        slower_fraction=float(own[middle]) / found.median - 1,
        times=len(places),
        of=int((~np.isnan(own)).sum()),
        beside=beside,
    )


def _by_kernel(fleet: Fleet) -> list[Straggler]:
    """All runs of a kernel against those of ranks that run it as often: they do the same work."""
    kernels = fleet.kernels
    order = np.lexsort((kernels["unit"], kernels["count"], kernels["name"]))
    name, count = kernels["name"][order], kernels["count"][order]
    border = np.flatnonzero(np.concatenate(([True], (np.diff(name) != 0) | (np.diff(count) != 0), [True])))
    found = []
    for begin, end in itertools.pairwise(border):
        if end - begin >= FEWEST:
            found += _slow_kernels(fleet, order[begin:end])
    return sorted(found, key=lambda one: (one.median_s - one.seconds, one.rank, one.what))[:MOST_OF_KERNELS]


def _slow_kernels(fleet: Fleet, rows: Array) -> list[Straggler]:
    totals = fleet.kernels["total_ns"][rows]
    found = spread(totals)
    if found is None:
        return []
    return [
        Straggler(
            rank=fleet.units[int(fleet.kernels["unit"][row])].rank,
            device=fleet.units[int(fleet.kernels["unit"][row])].device,
            by="kernel",
            what=fleet.word("name", int(fleet.kernels["name"][row])) or "",
            seconds=seconds(int(total)),
            median_s=seconds(found.median),
            mad_s=seconds(found.mad),
            threshold_s=seconds(found.threshold),
            slower_fraction=float(total) / found.median - 1,
            times=int(fleet.kernels["count"][row]),
            of=int(fleet.kernels["count"][row]),
            beside=len(rows),
        )
        for row, total in zip(rows, totals, strict=True) if total > found.threshold
    ]  # fmt: skip
