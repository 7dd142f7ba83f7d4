"""Step times of a whole grid: what layouts share is worked out once, columns added up before stages are.

The same step as `step_time.account` sums up, to rounding; a test holds the two together. A layout's own share of a
micro-batch depends on (tp, cp, ep, etp, micro-batch, sp) alone, its stages on pp and vpp as well, its exchanges over
dp on the degrees and ZeRO stage: each is worked out for the combinations that occur, and looked up.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from suanli.formulas.steps import bubble_s
from suanli.nouns.grid import Grid
from suanli.nouns.layout import SCHEDULES
from suanli.nouns.profile import Profile
from suanli.nouns.workload import RECOMPUTE
from suanli.plan.columns import AGAIN, BACKWARD, COUNTS, EXCHANGE, FORWARD, LAUNCHES, SPANS
from suanli.plan.comm_time import data_times, send_time
from suanli.plan.grid_keys import SHARED, Keys, unique_rows
from suanli.plan.stage_time import bubble_share, rank_counts
from suanli.plan.step_time import (
    Job,
    beside,
    block_params,
    block_times,
    by_stage,
    data_parallel,
    exchange_share,
    factors_of,
    hidden_behind,
    joined,
    optimizer_time,
    width,
)

Array = Any
HELD = ("tp", "pp", "dp", "cp", "ep", "etp", "zero")  # and vpp
SENT = ("tp", "pp", "dp", "cp", "micro_batch", "sp")
_DUALPIPE = SCHEDULES.index("dualpipe")
_NONE, _SELECTIVE, _FULL = (RECOMPUTE.index(name) for name in ("none", "selective", "full"))
ENDS = 2  # groups of pieces that are before and after the blocks
# forward, backward, made again under selective recompute: on the device, on the host, exchanged over ep
BUSY, HOST, EXCHANGED = (0, 1, 2), (3, 4, 5), (6, 7, 8)
_ROWS = 9
TINY = 1e-300  # keeps 0/0 out
PLAIN, PAIRED = 0, 1  # DualPipe pairs the exchange of one micro-batch with the kernels of another


def summed(times: Sequence[Array], profile: Profile) -> Array:
    """Columns added up with the profile's factors: seconds [group of pieces, row of BUSY and HOST, layout]."""
    import numpy as np  # noqa: PLC0415

    factors = factors_of(profile)
    found = np.zeros((len(times), _ROWS, times[0].shape[2]))
    for place, each in enumerate(times):
        for row in range(len(BUSY)):
            found[place, BUSY[row]] = sum(factors[at] * each[row, at] for at in factors)
            found[place, EXCHANGED[row]] = each[row, EXCHANGE]
            found[place, HOST[row]] = profile.launch_s * each[row, LAUNCHES] + profile.span_s * each[row, SPANS]
    return found


def by_policy(sums: Array) -> Array:
    """Rows of `summed` under each recompute policy [policy, group, row, layout]: what is made again is nothing, scores,
    or blocks; what is before and after them is kept.
    """
    import numpy as np  # noqa: PLC0415

    found = np.stack([sums] * len(RECOMPUTE))
    for first, again in (BUSY[::2], HOST[::2], EXCHANGED[::2]):
        found[_NONE, :, again] = 0
        found[_FULL, :, again] = sums[:, first]
        found[_FULL, -ENDS:, again] = 0
    return found


def passes_of(sums: Array, profile: Profile, paired: int) -> tuple[Array, Array]:
    """Seconds of a forward pass, and of what follows it, from rows of `by_policy`."""
    share = exchange_share(profile)
    if paired:
        busy, moved = sums[BUSY[0]] + sums[BUSY[1]], sums[EXCHANGED[0]] + sums[EXCHANGED[1]]
        share = hidden_behind(busy, moved, profile)
    rows = [sums[each] + share * sums[other] for each, other in zip(BUSY, EXCHANGED, strict=True)]
    forward, backward, again = (joined(row, sums[host]) for row, host in zip(rows, HOST, strict=True))
    return forward, backward + again


def _bare(times: Sequence[Array]) -> Array:
    """Seconds [policy, group of pieces, layout] of all passes, no factors: what tells the slowest stage."""
    import numpy as np  # noqa: PLC0415

    each = np.stack([np.delete(time, COUNTS, axis=1).sum(axis=1) for time in times], axis=1)  # [pass, group, layout]
    both = each[FORWARD] + each[BACKWARD]
    found = np.stack([both] * len(RECOMPUTE))
    found[_SELECTIVE] += each[AGAIN]
    found[_FULL, :-ENDS] += each[FORWARD, :-ENDS]
    return found


@dataclass(frozen=True)
class _Stages:
    """Per combination of a share, pp and vpp: seconds [policy, row, combination] of the slowest stage and of the others
    together, and the parameters of the fullest stage.
    """

    slowest: Array
    others: Array
    dense: Array
    expert: Array


class GridTimes:
    """Step times of layouts that stand behind the rows of an enumeration."""

    def __init__(self, job: Job, profile: Profile, global_batch: int, rows: Grid) -> None:
        self.job, self.profile, self.global_batch, self.rows = job, profile, global_batch, rows
        shared = Keys(rows, SHARED)
        self.share = shared.of
        self.staged = Keys(rows, (*SHARED, "pp"))
        self.held = Keys(rows, HELD)
        self.sent = Keys(rows, SENT)
        self.send = send_time(job, rows.take(self.sent.first), width(job.parts))
        alone = rows.take(shared.first)
        times = block_times(job, alone)
        self.sums = by_policy(summed(times, profile))
        self.cost = _bare(times)
        self.params = [block_params(pieces, alone) for pieces in job.groups]
        self._set_floors()

    def _set_floors(self) -> None:
        """For each row, the work of the whole model, and under each policy the least of the slowest stage, of one
        micro-batch.

        The slowest stage by bare seconds has at least its share of them, and the profile makes no group of pieces
        cheaper by more than the ratio at which it makes the cheapest so. What is exchanged over ep is left out.
        """
        import numpy as np  # noqa: PLC0415

        counts = np.array([*(len(block.layers) for block in self.job.parts.blocks), 1, 1], dtype=float)
        busy = self.sums[:, :, list(BUSY)].sum(axis=2)
        ratio = np.where(self.cost > 0, busy / np.maximum(self.cost, TINY), np.inf).min(axis=1)
        least = ratio * np.einsum("g,pgl->pl", counts, self.cost)
        self.whole = (counts @ busy[_NONE])[self.share]
        self.least = least[:, self.share] / self.rows.pp

    def floor_s(self) -> Array:
        """For each row, seconds that no schedule, chunks or recompute can go below: work alone."""
        return self.least.min(axis=0) * self.global_batch / (self.rows.dp * self.rows.micro_batch)

    def layout_floor_s(self, grid: Grid, row: Array) -> Array:
        """The same with the bubble of each layout's schedule."""
        share, times = bubble_s(1.0, bubble_share(grid), grid.vpp), self.global_batch / (grid.dp * grid.micro_batch)
        return (times - share) * self.least[grid.recompute.astype(int), row] + share * self.whole[row]

    def step_s(self, grid: Grid, row: Array) -> Array:
        """Seconds of a step of each layout."""
        first, back = self.staged.with_chunks(row, grid.vpp)
        found = self._stages(self.share[row[first]], grid.pp[first], grid.vpp[first])
        return self._step(grid, row, found, back)

    def _stages(self, share: Array, pp: Array, vpp: Array) -> _Stages:
        import numpy as np  # noqa: PLC0415

        size = len(share)
        shape = (len(RECOMPUTE), _ROWS, size)
        found = _Stages(np.empty(shape), np.empty(shape), np.empty(size), np.empty(size))
        pairs, which = unique_rows([pp, vpp])
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which, minlength=len(pairs)))
        for pair, here in zip(pairs, np.split(order, ends[:-1]), strict=True):
            self._put(found, here, share[here], int(pp[pair]), int(vpp[pair]))
        return found

    @functools.lru_cache(maxsize=4096)  # noqa: B019  the object lives for one search
    def _ranks(self, pp: int, vpp: int) -> tuple[Array, Array]:
        """What the ranks of a pipeline hold, of each group of pieces, and how many ranks hold just that."""
        import numpy as np  # noqa: PLC0415

        ranks = rank_counts(self.job.parts, pp, vpp)
        return np.array([held for held, _ in ranks], dtype=float), np.array(
            [copies for _, copies in ranks], dtype=float
        )

    def _put(self, found: _Stages, here: Array, share: Array, pp: int, vpp: int) -> None:
        """The stages of one pp and vpp."""
        import numpy as np  # noqa: PLC0415

        held, copies = self._ranks(pp, vpp)
        for policy in range(len(RECOMPUTE)):
            sums = self.sums[policy][:, :, share]
            worst = held[(held @ self.cost[policy][:, share]).argmax(axis=0)]  # [layout, group]
            slowest = np.einsum("lg,grl->rl", worst, sums)
            rest = np.tensordot(copies @ held, sums, 1) - slowest
            found.slowest[policy][:, here] = slowest
            found.others[policy][:, here] = np.maximum(rest, 0)  # rounding, of one stage
        for place, total in ((0, found.dense), (1, found.expert)):
            params = np.stack([pair[place][share] for pair in self.params])
            total[here] = (held @ params).max(axis=0)

    def _step(self, grid: Grid, row: Array, found: _Stages, back: Array) -> Array:
        first, place = self.held.with_chunks(row, grid.vpp)
        exchanged = self._exchanged(grid.take(first), found.dense[back[first]], found.expert[back[first]])
        times = self.global_batch / (grid.dp * grid.micro_batch)
        gather, scatter = (each * self.profile.gather for each in exchanged[1:3])
        sharded = (grid.zero == 3).nonzero()[0]
        policy = grid.recompute.astype(int)
        paired = (grid.schedule == _DUALPIPE).astype(int)
        (slow, waits), (rest, _) = (
            self._micro(each, (paired, policy), back, gather[place] * stages, scatter[place] * stages, sharded)
            for each, stages in ((found.slowest, 1), (found.others, grid.pp - 1))
        )
        profile = self.profile
        moved = exchanged[0][place], (exchanged[1] + exchanged[2])[place]
        return (
            (slow + profile.micro_s) * times + bubble_s(rest, bubble_share(grid), grid.vpp) + profile.fixed_s
            + data_parallel(moved, slow, waits, times, profile, int(self.job.traits.overlaps_data))
            + exchanged[3][place] * profile.optimizer
            + 2 * self.send[self.sent.of[row]] * (grid.vpp * times * profile.send_exposed + (grid.pp - 1))
        )  # fmt: skip

    def _micro(
        self, sums: Array, kind: tuple[Array, Array], back: Array, gather: Array, scatter: Array, sharded: Array
    ) -> tuple[Array, Array]:
        """Seconds of one micro-batch of each layout, `kind` its pairing and policy, and of them those that wait for
        weights, gathered where `sharded`.
        """
        import numpy as np  # noqa: PLC0415

        passes = [[passes_of(each, self.profile, pair) for each in sums] for pair in (PLAIN, PAIRED)]
        forward, behind = np.moveaxis(np.array(passes), 2, 0)  # [pairing, policy, combination]
        at = (*kind, back)
        found = forward[at] + behind[at]
        few, waits = tuple(each[sharded] for each in at), 0 * found
        waits[sharded] = (
            -found[sharded]
            + beside(forward[few], gather[sharded], self.profile)
            + beside(behind[few], (gather + scatter)[sharded], self.profile)
        )
        return found + waits, waits

    def _exchanged(self, grid: Grid, dense: Array, expert: Array) -> tuple[Array, ...]:
        """Seconds of the exchange over dp, of a gather of weights, a scatter of gradients, and the optimizer."""
        moved = by_stage(data_times(self.job, grid, dense, expert), grid.zero)
        return (*moved, optimizer_time(self.job, grid, dense, expert))
