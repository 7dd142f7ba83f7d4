"""Steps and kernels over all ranks: the middle one, the slowest, and who that is."""

from __future__ import annotations

import itertools

import numpy as np

from suanli.explain.fleet.pool import Fleet
from suanli.explain.fleet.stragglers import StepTable
from suanli.explain.intervals import Array
from suanli.explain.usage import seconds
from suanli.nouns.fleet import FleetKernel, FleetStep

MOST_KERNELS = 100


def fleet_steps(fleet: Fleet, table: StepTable) -> tuple[FleetStep, ...]:
    """One row a step, in the order of the table. A step is as long as its slowest rank makes it."""
    return tuple(_step(fleet, name, table.seconds[:, k], table.compute[:, k]) for k, name in enumerate(table.names))


def _step(fleet: Fleet, name: str, lasted: Array, compute: Array) -> FleetStep:
    known = np.flatnonzero(~np.isnan(compute))
    slowest = int(known[compute[known].argmax()])
    return FleetStep(
        name=name,
        ranks=len(known),
        median_s=float(np.median(lasted[known])),
        longest_s=float(lasted[known].max()),
        compute_median_s=float(np.median(compute[known])),
        compute_longest_s=float(compute[slowest]),
        slowest_rank=fleet.units[slowest].rank,
    )


def fleet_kernels(fleet: Fleet) -> tuple[FleetKernel, ...]:
    """Kernels that compute, by their time over all ranks, the longest first, at most a hundred."""
    order = np.lexsort((fleet.kernels["unit"], fleet.kernels["name"]))
    border = np.flatnonzero(np.diff(fleet.kernels["name"][order], prepend=-1, append=-1))
    parts = [order[first:last] for first, last in itertools.pairwise(border)] if len(order) else []
    made = [_kernel(fleet, rows) for rows in parts]
    return tuple(sorted(made, key=lambda row: (-row.total_s, row.name))[:MOST_KERNELS])


def _kernel(fleet: Fleet, rows: Array) -> FleetKernel:
    total, name = fleet.kernels["total_ns"][rows], int(fleet.kernels["name"][rows[0]])
    slowest = rows[total.argmax()]
    return FleetKernel(
        name=fleet.word("name", name) or "",
        ranks=len(rows),
        count=int(fleet.kernels["count"][rows].sum()),
        total_s=seconds(int(total.sum())),
        median_s=seconds(float(np.median(total))),
        longest_s=seconds(int(total.max())),
        slowest_rank=fleet.units[int(fleet.kernels["unit"][slowest])].rank,
    )
