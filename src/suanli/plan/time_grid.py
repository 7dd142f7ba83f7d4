"""Step times of a whole grid: what layouts share is worked out once, columns added up before stages are.

The same step as `step_time.account` sums up, to rounding; a test holds the two together. A layout's own share of a
micro-batch depends on (tp, cp, ep, etp, micro-batch, sp) alone, its stages on pp and vpp as well, its exchanges over
dp on the degrees and ZeRO stage: each is worked out for the combinations that occur, and looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from suanli.formulas.steps import bubble_s
from suanli.nouns.grid import Grid
from suanli.nouns.layout import SCHEDULES
from suanli.nouns.profile import Profile
from suanli.nouns.workload import RECOMPUTE
from suanli.plan.accumulation import scatters
from suanli.plan.columns import AGAIN, BACKWARD, COUNTS, EXCHANGE, FORWARD, LAUNCHES, SPANS
from suanli.plan.comm_time import data_times, send_time
from suanli.plan.grid_keys import SHARED, Keys, unique_rows
from suanli.plan.stage_time import ENDS, bubble_share, rank_counts
from suanli.plan.step_time import (
    Job,
    block_params,
    block_times,
    by_stage,
    data_parallel,
    exchange_share,
    factors_of,
    hidden_behind,
    joined,
    optimizer_time,
    scattered_share,
    sharded_passes,
    width,
)

Array = Any
HELD = ("tp", "pp", "dp", "cp", "ep", "etp", "zero", "shards", "offload")  # and vpp
SENT = ("tp", "pp", "dp", "cp", "micro_batch", "sp")
_DUALPIPE = SCHEDULES.index("dualpipe")
_NONE, _SELECTIVE, _FULL = (RECOMPUTE.index(name) for name in ("none", "selective", "full"))
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
    """Seconds [row, column] of the slowest stage and of the others together, columns being combinations of a share, pp
    and vpp under each policy, then those with layers that are recomputed; and per combination the parameters of the
    fullest stage.
    """

    slowest: Array
    others: Array
    dense: Array
    expert: Array


def _slowest(
    parts: Sequence[tuple[Array, int]], copies: Array, which: Array, share: Array, times: GridTimes
) -> tuple[Array, Array]:
    """Seconds [row, combination] of the slowest stage and of all others: ranks hold `parts` [shape, rank, group], each
    under a policy; `which` is a combination's shape.
    """
    import numpy as np  # noqa: PLC0415

    cost = sum(np.einsum("crg,gc->cr", held[which], times.cost[policy][:, share]) for held, policy in parts)
    worst = np.argmax(cost, axis=1)
    slowest = every = np.zeros((_ROWS, len(which)))
    for held, policy in parts:
        sums = times.sums[policy][:, :, share]
        slowest = slowest + np.einsum("cg,grc->rc", held[which, worst], sums)
        every = every + np.einsum("cg,grc->rc", np.einsum("sr,srg->sg", copies, held)[which], sums)
    return slowest, np.maximum(every - slowest, 0)  # rounding, of one stage


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
        bare = np.einsum("g,pgl->pl", counts, self.cost)
        self.whole = (counts @ busy[_NONE])[self.share]
        self.least = (ratio * bare)[:, self.share] / self.rows.pp
        self.cheapest = (np.minimum(ratio[_NONE], ratio[_FULL]) * bare)[:, self.share]  # of both policies mixed

    def floor_s(self) -> Array:
        """For each row, seconds that no schedule, chunks or recompute can go below: work alone."""
        import numpy as np  # noqa: PLC0415

        least = np.minimum(self.least.min(axis=0), self.cheapest[_NONE] / self.rows.pp)
        return least * self.global_batch / (self.rows.dp * self.rows.micro_batch)

    def layout_floor_s(self, grid: Grid, row: Array) -> Array:
        """The same with the bubble of each layout's schedule, and with what it recomputes (nothing where that is not
        settled yet)."""
        share, times = bubble_s(1.0, bubble_share(grid), grid.vpp), self.global_batch / (grid.dp * grid.micro_batch)
        least = self.least[grid.recompute.astype(int), row]
        some = (grid.recompute_layers != 0).nonzero()[0]
        least[some] = self._least_of_some(grid.take(some), row[some])
        return (times - share) * least + share * self.whole[row]

    def _least_of_some(self, grid: Grid, row: Array) -> Array:
        """Of layouts that recompute the first layers of every chunk: the part of each kind of block that is made again
        is at least the smallest such part, and costs at least what either policy makes it cost.
        """
        import numpy as np  # noqa: PLC0415

        first, back = unique_rows([grid.pp, grid.vpp, grid.recompute_layers])
        shapes = zip(*(each[first].astype(int).tolist() for each in (grid.pp, grid.vpp, grid.recompute_layers)),
                     strict=True)  # fmt: skip
        part = np.array([self._part_again(*shape) for shape in shapes])[back] if len(back) else grid.pp
        none, all_layers = self.cheapest[_NONE, row], self.cheapest[_FULL, row]
        return (none + part * (all_layers - none)) / grid.pp

    def _part_again(self, pp: int, vpp: int, layers: int) -> float:
        if layers < 0:
            return 0.0
        held, again, copies = rank_counts(self.job.parts, pp, vpp, layers)
        blocks, made = (copies @ each[:, :-ENDS] for each in (held, again))
        return float((made / blocks).min())

    def step_s(self, grid: Grid, row: Array) -> Array:
        """Seconds of a step of each layout."""
        import numpy as np  # noqa: PLC0415

        some, whole = (grid.recompute_layers > 0).nonzero()[0], (grid.recompute_layers == 0).nonzero()[0]
        place, policy = np.empty(len(grid), dtype=np.int64), grid.recompute.astype(int)
        first, place[whole] = self.staged.with_more(row[whole], grid.vpp[whole])
        other, back = self.staged.with_more(row[some], grid.vpp[some], grid.recompute_layers[some])
        place[some] = len(first) + back
        chosen = np.concatenate([whole[first], some[other]])
        found = self._stages(grid.take(chosen), self.share[row[chosen]], len(first))
        column = np.where(grid.recompute_layers > 0, len(first) * (len(RECOMPUTE) - 1), policy * len(first)) + place
        return self._step(grid, row, found, place, column)

    def _stages(self, grid: Grid, share: Array, whole: int) -> _Stages:
        """Stages of combinations: the first `whole` of them under every policy, the others with their layers."""
        import numpy as np  # noqa: PLC0415

        first, which = unique_rows([grid.pp, grid.vpp, grid.recompute_layers])
        held, again, copies = self._tables(grid.take(first))
        params = [np.stack([pair[place][share] for pair in self.params]) for place in (0, 1)]
        dense, expert = (np.einsum("crg,gc->cr", held[which], each).max(axis=1) for each in params)
        plain, some = slice(0, whole), slice(whole, len(share))
        columns = [
            _slowest(((held, policy),), copies, which[plain], share[plain], self) for policy in range(len(RECOMPUTE))
        ]
        parts = ((held - again, _NONE), (again, _FULL))
        columns.append(_slowest(parts, copies, which[some], share[some], self))
        slowest, others = (np.concatenate(each, axis=1) for each in zip(*columns, strict=True))
        return _Stages(slowest, others, dense, expert)

    def _tables(self, shapes: Grid) -> tuple[Array, Array, Array]:
        """Of every pipeline shape what its kinds of rank hold, what of it is made again [shape, rank, group], and how
        many ranks are of a kind; shapes of fewer kinds have some that no rank is of.
        """
        import numpy as np  # noqa: PLC0415

        columns = (getattr(shapes, name).astype(int).tolist() for name in ("pp", "vpp", "recompute_layers"))
        ranks = [rank_counts(self.job.parts, *shape) for shape in zip(*columns, strict=True)]
        most = max((len(copies) for *_, copies in ranks), default=0)
        found = [np.zeros((len(ranks), most, len(self.params))) for _ in range(2)]
        copies = np.zeros((len(ranks), most))
        for place, each in enumerate(ranks):
            count = len(each[2])
            for table, own in zip((*found, copies), each, strict=True):
                table[place, :count] = own
        return found[0], found[1], copies

    def _step(self, grid: Grid, row: Array, found: _Stages, combination: Array, column: Array) -> Array:
        first, place = self.held.with_more(row, grid.vpp)
        exchanged = self._exchanged(grid.take(first), found.dense[combination[first]], found.expert[combination[first]])
        times = self.global_batch / (grid.dp * grid.micro_batch)
        runs = scatters(self.job.traits, grid.pp, grid.vpp, times)
        scattered = scattered_share(grid.zero, runs, times)
        travel = [each[place] * self.profile.gather for each in exchanged[1:3]]
        paired = (grid.schedule == _DUALPIPE).astype(int)
        (slow, waits), (rest, _) = (
            self._micro(each, paired, column, [each * stages for each in travel], scattered)
            for each, stages in ((found.slowest, 1), (found.others, grid.pp - 1))
        )
        zero3 = (grid.zero == 3) * 1.0  # what ZeRO 2 scatters stands in `whole` already
        fewer = self._zero2_waits(found.slowest, paired, column, travel[1], scattered - 1 / times, zero3)
        profile = self.profile
        moved, waits = (exchanged[0][place], (exchanged[1] + exchanged[2])[place] * zero3), (waits * zero3, fewer)
        return (
            (slow + profile.micro_s) * times + bubble_s(rest, bubble_share(grid), grid.vpp) + profile.fixed_s
            + data_parallel(moved, slow, waits, times, profile, int(self.job.traits.overlaps_data))
            + exchanged[3][place] * profile.optimizer
            + 2 * self.send[self.sent.of[row]] * (grid.vpp * times * profile.send_exposed + (grid.pp - 1))
        )  # fmt: skip

    def _micro(
        self, sums: Array, paired: Array, column: Array, travel: Sequence[Array], scattered: Array
    ) -> tuple[Array, Array]:
        """Seconds of one micro-batch of each layout, with what hides behind it of weights gathered and gradients
        scattered, and of them those that wait for either.
        """
        import numpy as np  # noqa: PLC0415

        kinds = (PLAIN, PAIRED) if paired.any() else (PLAIN,)
        passes = [passes_of(sums, self.profile, pair) for pair in kinds]  # [pairing][pass][column]
        forward, behind = np.moveaxis(np.array(passes), 1, 0)
        at = (paired, column)
        found = forward[at] + behind[at]
        gather, scatter = travel
        sharded = ((gather > 0) | (scattered > 0)).nonzero()[0]
        few, waits = tuple(each[sharded] for each in at), 0 * found
        passed = sharded_passes(
            (forward[few], behind[few]), gather[sharded], scatter[sharded], scattered[sharded], self.profile,
            int(self.job.traits.overlaps_data),
        )  # fmt: skip
        waits[sharded] = sum(passed) - found[sharded]
        return found + waits, waits

    def _zero2_waits(
        self, sums: Array, paired: Array, column: Array, scatter: Array, scattered: Array, zero3: Array
    ) -> Array:
        """What a micro-batch of a layout of ZeRO 3 would wait for under ZeRO 2; 0 of other layouts."""
        rows, waits = zero3.nonzero()[0], 0 * zero3
        if len(rows):
            few = (each[rows] for each in (paired, column, 0 * scatter, scatter, scattered))
            pair, at, gather, moved, share = few
            waits[rows] = self._micro(sums, pair, at, [gather, moved], share)[1]
        return waits

    def _exchanged(self, grid: Grid, dense: Array, expert: Array) -> tuple[Array, ...]:
        """Seconds of the exchange over dp, of a gather of weights, a scatter of gradients, and the optimizer."""
        moved = by_stage(data_times(self.job, grid, dense, expert), grid.zero)
        return (*moved, optimizer_time(self.job, grid, dense, expert))
