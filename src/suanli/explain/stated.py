"""FLOPs and bytes of work without an operator, by what the file says of the instruction of XLA that it ran.

A TPU's profiler states both, event by event. A GPU's states neither, but its file holds the compiled modules: there an
instruction counts once a run, shared by time over its products, as an operator is. The i-th of each of its kernels
belong to one run, where all come equally often.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.explain.grouping import alike
from suanli.explain.ops import hlo
from suanli.explain.ops.call import MOST_FLOPS, STATED, Cost
from suanli.explain.ops.instruction import instruction_bytes, instruction_flops, instruction_sizes
from suanli.nouns.attribution import WorkClass
from suanli.nouns.trace import OpDetail, Trace

Array = npt.NDArray[Any]


def event_costs(trace: Trace) -> tuple[list[Cost], Array]:
    """Of work whose event says it all: costs, and the place of each row's, -1 for none."""
    costs: list[Cost] = []

    def cost_of(detail: OpDetail) -> Cost | None:
        if detail.flops is not None and 0 < detail.flops < MOST_FLOPS:
            return Cost(detail.flops, STATED, _types(detail.hlo))
        if detail.hlo is None or detail.hlo.get("instruction") is not None:
            return None
        return hlo.instruction_cost(str(detail.hlo.get("text", "")))

    places = _by_detail(trace, cost_of, costs)
    return costs, places


def _types(instruction: Any) -> tuple[str, ...]:
    """Types of the operands that an instruction's text names: after the result's."""
    text = str(instruction.get("text", "")) if instruction else ""
    return tuple(re.findall(r"\b([a-z]+\d+[a-z0-9]*)\[", text)[1:3])


def _by_detail(trace: Trace, of: Callable[[OpDetail], Any], found: list[Any]) -> Array:
    """What `of` makes of each detail is added to `found`; its place for each row of work, -1 for None. int64 [N]."""
    table = np.full(len(trace.details) + 1, -1, dtype=np.int64)
    for place, detail in enumerate(trace.details):
        made = of(detail)
        if made is not None:
            table[place] = len(found)
            found.append(made)
    rows: Array = table[trace.work.detail]  # detail -1 takes the last place, which is -1
    return rows


class Instructions:
    """Runs of instructions whose modules are in the file. N rows of work; -1 for work that ran none."""

    def __init__(self, trace: Trace, work_class: Array) -> None:
        keys: dict[Any, int] = {}
        self.costs: list[Cost | None] = []
        self.moved: list[int | None] = []
        self.products: list[tuple[int, int, int] | None] = []  # m, n, k of what is one product of two matrices

        def number(detail: OpDetail) -> int | None:
            said = detail.hlo or {}
            if said.get("instruction") is None:
                return None
            key = (said.get("program"), said.get("module"), said.get("op"))
            if key not in keys:
                keys[key] = len(keys)
                self.costs.append(_believed(instruction_flops(said["instruction"])))
                self.moved.append(instruction_bytes(said["instruction"]))
                self.products.append(instruction_sizes(said["instruction"]))
            return keys[key]

        of_detail: list[int] = []
        places = _by_detail(trace, number, of_detail)
        self.which: Array = np.array([*of_detail, -1], dtype=np.int64)[places]
        self.run: Array = np.full(len(places), -1, dtype=np.int64)
        rows = np.flatnonzero(self.which >= 0)
        if len(rows):
            matmul = work_class[rows] == WorkClass.MATMUL
            self.run[rows] = _runs(self.which[rows], trace.work.device[rows], trace.work.name[rows], matmul)

    def multiplies(self) -> Array:
        """bool [N]: work of an instruction whose FLOPs are above 0, or unknown."""
        costs = np.array([each is not None and each.flops != 0 for each in self.costs] + [False], dtype=bool)
        rows: Array = costs[self.which]
        return rows


def _believed(cost: Cost | None) -> Cost | None:
    return cost if cost is None or cost.flops is None or cost.flops < MOST_FLOPS else None


def _runs(which: Array, device: Array, name: Array, matmul: Array) -> Array:
    """A number for the run that each row belongs to. Rows stand by device and time.

    There are as many runs as the rarest kernel that multiplies has, where one does: others may run now and then.
    """
    _, kernel = alike(which, device, name)
    _, owner = alike(which, device)
    times = np.bincount(kernel)  # of each kernel of an instruction
    order = np.argsort(kernel, kind="stable")
    before = np.cumsum(times) - times
    place = np.empty(len(kernel), dtype=np.int64)
    place[order] = np.arange(len(kernel)) - before[kernel[order]]
    least = np.full(int(owner.max()) + 1, len(kernel), dtype=np.int64)
    chosen = matmul | ~np.isin(owner, np.unique(owner[matmul]))
    np.minimum.at(least, owner[chosen], times[kernel[chosen]])
    turn = place * np.minimum(least[owner], len(kernel)) // times[kernel]
    _, run = alike(owner, turn)
    return run
