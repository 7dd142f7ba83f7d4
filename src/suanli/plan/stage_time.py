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
ENDS = 2  # groups of pieces that are before and after the blocks
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


_MOST = 4096  # pipeline shapes of a model that are kept


def rank_counts(parts: Parts, pp: int, vpp: int, layers: int = 0) -> tuple[Array, Array, Array]:
    """What the ranks of a pipeline hold: for each kind of rank the blocks of each kind, 1 where it has what is before
    all blocks, 1 for what is after; of these what full recompute of the first `layers` of every chunk (0: all) makes
    again; and how many ranks are of that kind. Kept with the parts: not to be written to.
    """
    known, key = parts.ranks, (pp, vpp, layers)
    found: tuple[Array, Array, Array] | None = known.get(key)
    if found is None:
        if len(known) >= _MOST:
            known.clear()
        found = known[key] = _rank_counts(parts, pp, vpp, layers)
    return found


def _rank_counts(parts: Parts, pp: int, vpp: int, layers: int) -> tuple[Array, Array, Array]:
    import numpy as np  # noqa: PLC0415

    sizes = np.array(chunk_sizes(parts.num_layers, pp, vpp))
    ends = np.cumsum(sizes)
    starts, kinds = ends - sizes, len(parts.blocks)
    found = np.zeros((2, kinds + ENDS, pp))  # held, made again
    for place, stop in enumerate((ends, starts + np.minimum(sizes, layers or parts.num_layers))):
        counts = parts.before_each[:, stop] - parts.before_each[:, starts] if kinds else np.zeros((0, pp * vpp))
        found[place, :kinds] = counts.reshape(kinds, vpp, pp).sum(axis=1)
    found[0, kinds, 0] = found[0, kinds + 1, -1] = 1
    ranks = Counter(map(tuple, found.reshape(-1, pp).T.tolist()))
    kind = np.array(list(ranks)).reshape(len(ranks), 2, kinds + ENDS)
    return kind[:, 0], kind[:, 1], np.array(list(ranks.values()), dtype=np.float64)


def stages(parts: Parts, grid: Grid, times: Sequence[Array], params: Sequence[tuple[Array, Array]]) -> Stages:
    """Blocks put into stages, with what recompute runs again in them: of blocks only, embedding and head are kept.
    `times` and `params` are of each kind of block, then of the first stage's own pieces and of the last's: seconds
    [pass, column, layout] and parameters of a rank (dense, expert) [layout].
    """
    import numpy as np  # noqa: PLC0415

    found = Stages(*(np.zeros_like(times[0]) for _ in range(2)), *(np.zeros(len(grid)) for _ in range(2)))
    shapes = np.stack([grid.pp, grid.vpp, grid.recompute_layers]).astype(int)
    for pp, vpp, layers in sorted(set(map(tuple, shapes.T.tolist()))):
        here = np.flatnonzero((shapes == [[pp], [vpp], [layers]]).all(axis=0))
        held, again, copies = rank_counts(parts, pp, vpp, layers)
        stacked = np.stack([each[:, :, here] for each in times])
        each = np.tensordot(held, stacked, 1)  # [kind of rank, pass, column, layout]
        full, selective = ((grid.recompute[here] == policy) * 1.0 for policy in (_FULL, _SELECTIVE))
        each[:, AGAIN] = full * np.tensordot(again, stacked[:, FORWARD], 1) + selective * each[:, AGAIN]
        cost = np.delete(each, COUNTS, axis=2).sum(axis=(1, 2))
        worst = cost.argmax(axis=0)
        slowest = np.take_along_axis(each, worst[None, None, None, :], 0)[0]
        found.slowest[:, :, here] = slowest
        found.others[:, :, here] = np.maximum(np.tensordot(copies, each, 1) - slowest, 0)  # rounding, of one stage
        for place, total in ((0, found.dense), (1, found.expert)):
            total[here] = (held @ np.stack([pair[place][here] for pair in params])).max(axis=0)
    return found


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
