"""How far the median of published runs is off: found on runs of one publication by those of all others.

A plan is for a team of its own, so a whole publication is left out at once. Where one shows several layouts of a model
on one number of GPUs the best counts, for that is the one a plan would take.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import median

from suanli.nouns.convention import Convention
from suanli.nouns.hardware import Device
from suanli.plan.typical import NEAREST, Row, comparable_runs, nearest

NINETY = 0.9
JUDGED = 20  # runs most like the one planned that tell how far off it may be
FEWEST = 10  # below this the largest error of all would have to stand for a tenth of them


@dataclass(frozen=True)
class HeldOut:
    """A published run with the log of its MFU as the others say it over the MFU it had."""

    row: Row
    error: float


@cache
def held_out(device: Device, dtype: str, convention: Convention) -> tuple[HeldOut, ...]:
    """Every run judged by those of other publications; none where there is one publication alone."""
    rows = comparable_runs(device, dtype, convention)
    found = []
    for row in _best(rows):
        size, mfu, run = row
        others = [each for each in rows if each[2].group != run.group]
        if others:
            near = nearest(others, size, run.gpu_count, NEAREST)
            found.append(HeldOut(row, math.log(median(each[1] for each in near) / mfu)))
    return tuple(found)


def _best(rows: list[Row]) -> list[Row]:
    """The best run of each publication, model and number of GPUs."""
    found: dict[tuple[str, str, int | None], Row] = {}
    for row in rows:
        key = (row[2].group, row[2].model, row[2].gpu_count)
        if key not in found or row[1] > found[key][1]:
            found[key] = row
    return list(found.values())


def half_width(judged: list[float]) -> float:
    """What nine of ten errors stay below, one more counted that is not yet seen (split conformal; Vovk 2005)."""
    ordered = sorted(map(abs, judged))
    return ordered[min(len(ordered), math.ceil((len(ordered) + 1) * NINETY)) - 1]


def typical_half_width(
    params: float, device: Device, dtype: str, convention: Convention, gpus: int | None
) -> tuple[float | None, str]:
    """Half-width of the 90 % interval of log MFU, from the held-out runs most like this one; and in words what it is
    from, or why it is None.
    """
    found = held_out(device, dtype, convention)
    return width_among(found, params, gpus)


def width_among(found: tuple[HeldOut, ...], params: float, gpus: int | None) -> tuple[float | None, str]:
    """The same among runs that are given."""
    if len(found) < FEWEST:
        return None, f"{len(found)} published runs that those of other publications can be held against: too few"
    by_run = {each.row[2].id: each.error for each in found}
    near = nearest([each.row for each in found], params, gpus, JUDGED)
    width = half_width([by_run[run.id] for *_, run in near])
    groups = len({run.group for *_, run in near})
    return width, (
        f"{len(near)} published runs most like it, of {groups} publications, each told from the runs of the others: "
        f"nine of ten lie within a factor of {math.exp(width):.2f}"
    )
