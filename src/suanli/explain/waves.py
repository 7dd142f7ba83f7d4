"""Wave quantisation: what products lose because their blocks do not fill the multiprocessors evenly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from suanli.explain.device import DeviceFacts
from suanli.explain.intervals import Array
from suanli.explain.lanes import Lane
from suanli.nouns.attribution import WorkClass
from suanli.nouns.trace import OpDetail, Trace


def lost_fraction(blocks: int, processors: int) -> float:
    """The part of a kernel's time that empty multiprocessors of its last wave cost, at one block on each.

    132 multiprocessors and 133 blocks: two waves hold 264, so (264 - 133) / 264 = 49.6 %.
    """
    waves = -(-blocks // processors)  # rounded up, exactly
    return 1 - blocks / (waves * processors)


def blocks_of(detail: OpDetail) -> int | None:
    """Blocks of a kernel's grid; None where it is not said, or is no grid."""
    grid = (detail.kernel or {}).get("grid")
    if not isinstance(grid, list | tuple) or not grid or not all(isinstance(each, int) and each > 0 for each in grid):
        return None
    return math.prod(grid)


def lost_s(
    trace: Trace, work_class: Array, lanes: Sequence[Lane], owned: Mapping[int, Array],
    facts: Mapping[int, DeviceFacts],
) -> tuple[float, int]:  # fmt: skip
    """Seconds lost over all products whose grid is said, and how many of them lose any.

    `owned` has the seconds that each piece of a device owns.
    """
    blocks = [blocks_of(detail) for detail in trace.details]
    seen = {each.id: each.sm_count for each in trace.devices}
    seconds, products = 0.0, 0
    for lane in lanes:
        device = facts[lane.device].device
        processors = seen.get(lane.device) or (device.sm_count if device else None)
        if not processors or processors < 0:
            continue
        parts = [lost_fraction(each, processors) if each else 0.0 for each in blocks]
        lost = np.array([*parts, 0.0])[trace.work.detail[lane.pieces.row]]
        lost = lost * (work_class[lane.pieces.row] == WorkClass.MATMUL)
        seconds += float((owned[lane.device] * lost).sum())
        products += int((lost > 0).sum())
    return seconds, products
