"""Stages of a pipeline: what the slowest holds, what the others add to the bubble, and how long the bubble is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from suanli.nouns.grid import Grid
from suanli.nouns.layout import SCHEDULES, chunk_sizes
from suanli.nouns.workload import RECOMPUTE
from suanli.plan.columns import AGAIN, COUNTS, FORWARD
from suanli.plan.pieces import Parts

Array = Any
_SELECTIVE, _FULL = RECOMPUTE.index("selective"), RECOMPUTE.index("full")


@dataclass(frozen=True)
class Stages:
    """Seconds [pass, column, layout] of one micro-batch on the slowest stage and on all others together, and the
    parameters of the fullest stage on one rank (dense ones, experts) with what a stage holds in all.
    """

    slowest: Array
    others: Array
    dense: Array
    expert: Array


def rank_counts(parts: Parts, pp: int, vpp: int) -> list[tuple[tuple[int, ...], int]]:
    """What the ranks of a pipeline hold: blocks of each kind, first, last; and how many ranks hold just that."""
    held = parts.counts(chunk_sizes(parts.num_layers, pp, vpp))
    ranks: list[tuple[int, ...]] = []
    for rank in range(pp):
        own = [sum(each) for each in zip(*held[rank::pp], strict=True)] or [0] * len(parts.blocks)
        ranks.append((*own, int(rank == 0), int(rank == pp - 1)))
    return list(Counter(ranks).items())


def stages(parts: Parts, grid: Grid, times: Sequence[Array], params: Sequence[tuple[Array, Array]]) -> Stages:
    """Blocks put into stages, with what recompute runs again in them: of blocks only, embedding and head are kept.
    `times` and `params` are of each kind of block, then of the first stage's own pieces and of the last's: seconds
    [pass, column, layout] and parameters of a rank (dense, expert) [layout].
    """
    import numpy as np  # noqa: PLC0415

    found = Stages(*(np.zeros_like(times[0]) for _ in range(2)), *(np.zeros(len(grid)) for _ in range(2)))
    for pp, vpp in sorted({(int(a), int(b)) for a, b in zip(grid.pp, grid.vpp, strict=True)}):
        here = np.flatnonzero((grid.pp == pp) & (grid.vpp == vpp))
        ranks = rank_counts(parts, pp, vpp)
        held = np.array([counts for counts, _ in ranks], dtype=np.float64)
        copies = np.array([copies for _, copies in ranks], dtype=np.float64)
        stacked = np.stack([each[:, :, here] for each in times])
        each = np.tensordot(held, stacked, 1)  # [kind of rank, pass, column, layout]
        layers = np.tensordot(held[:, :-2], stacked[:-2, FORWARD], 1)
        full, selective = (share[here] for share in recomputed(parts, grid))
        each[:, AGAIN] = full * layers + selective * each[:, AGAIN]
        cost = np.delete(each, COUNTS, axis=2).sum(axis=(1, 2))
        worst = cost.argmax(axis=0)
        slowest = np.take_along_axis(each, worst[None, None, None, :], 0)[0]
        found.slowest[:, :, here] = slowest
        found.others[:, :, here] = np.maximum(np.tensordot(copies, each, 1) - slowest, 0)  # rounding, of one stage
        for place, total in ((0, found.dense), (1, found.expert)):
            total[here] = (held @ np.stack([pair[place][here] for pair in params])).max(axis=0)
    return found


def recomputed(parts: Parts, grid: Grid) -> tuple[Array, Array]:
    """The part of the layers that full recompute makes again, and 1 where selective recompute makes scores again."""
    import numpy as np  # noqa: PLC0415

    held = np.maximum(np.ceil(parts.num_layers / (grid.pp * grid.vpp)), 1)
    some = np.minimum(grid.recompute_layers, held) / held + (grid.recompute_layers == 0)
    return (grid.recompute == _FULL) * some, (grid.recompute == _SELECTIVE) * 1.0


def bubble_share(grid: Grid) -> Array:
    """The part of the other stages' time that the slowest waits for: all of it in 1F1B (of a chunk of each where
    interleaved), less where weights' gradients fill it. With a backward of two forwards, half of it for the weights
    (F = 1, B = 2, W = 1), arXiv:2412.19437 table 2 has of the 3·(p − 1) of 1F1B (p − 1)·(F + B − 2W) left under ZB-H1
    and (p/2 − 1)·(F + B + B − 3W) under DualPipe.
    """
    import numpy as np  # noqa: PLC0415

    paired = (grid.pp - 2) / (3 * np.maximum(grid.pp - 1, 1))
    shares = {"zero-bubble": 1 / 3 + 0 * grid.pp, "dualpipe": np.maximum(paired, 0)}
    return np.choose(grid.schedule.astype(int), [shares.get(name, 1 + 0 * grid.pp) for name in SCHEDULES])
