"""Memory of a whole grid: the fullest rank of each layout, by the functions that explain one layout.

What a block keeps, what a stage holds, what the loss makes is asked of `transient` and `states` once for every
combination that occurs, one block at a time; stages are sums of blocks. A test holds the sum to `memory_estimate`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from suanli.formulas.parallel import in_flight_interleaved
from suanli.nouns.grid import Grid
from suanli.nouns.layout import SCHEDULES, ZERO, Layout, chunk_sizes
from suanli.nouns.workload import RECOMPUTE
from suanli.plan.accumulation import whole_fraction
from suanli.plan.grid_keys import SHARED, Keys, unique_codes
from suanli.plan.memory import peak_bytes, reserve_bytes, whole_bytes
from suanli.plan.pipeline import Chunk, chunks_of, own_chunks
from suanli.plan.planned import Model, Policy, Rank
from suanli.plan.sharding import Degrees, Held
from suanli.plan.states import held_params, held_states
from suanli.plan.transient import buffer_bytes, chunk_bytes, loss_bytes, working_bytes

Array = Any
HELD = ("tp", "pp", "dp", "cp", "ep", "etp", "zero", "shards", "offload")  # and what a stage holds
MOST_OF = 0.7  # of the layouts
DUALPIPE = SCHEDULES.index("dualpipe")
NONE, FULL = RECOMPUTE.index("none"), RECOMPUTE.index("full")


@dataclass(frozen=True)
class Stage:
    """What a rank of a stage holds, in every schedule's terms: blocks of each kind, those of the 16-bit tail, whether
    it has what is before and after all blocks; and each weighted with the micro-batches in flight [micro-batches],
    `passed` being chunks whose result goes to another rank, `again` the first blocks of every chunk
    [so many of them, kind, micro-batches].
    """

    blocks: Array
    first: bool
    last: bool
    flight: Array
    tail: Array
    first_flight: Array
    last_flight: Array
    passed_flight: Array
    again: Array

    @property
    def present(self) -> tuple[bool, ...]:
        """Which kinds of block it has."""
        return tuple(bool(count) for count in self.blocks)


class GridMemory:
    """Memory of layouts that stand behind the rows of an enumeration."""

    def __init__(self, model: Model, global_batch: int, rows: Grid, imbalance: float = 1) -> None:
        import numpy as np  # noqa: PLC0415

        self.model, self.rows, self.imbalance = model, rows, imbalance
        self.kinds = len(model.parts.blocks)
        self.shared, self.held = Keys(rows, SHARED), Keys(rows, HELD)
        self.micro_batches, self.count = np.unique(global_batch / (rows.dp * rows.micro_batch), return_inverse=True)
        self.at = self._degrees(rows.take(self.shared.first), zero=0)
        self.rank = Rank(model, self.at)
        self.share = self._shares()
        self.loss = self._full(loss_bytes(self.rank))

    def _degrees(self, grid: Grid, zero: Any = None) -> Degrees:
        return degrees_of_grid(grid, self.model.stack.vocab_multiple, self.imbalance, zero)

    def _full(self, value: Any) -> Array:
        return value + 0 * self.at.tp

    # --- what a block, or an end of the model, leaves and makes ---------------------------------------------------

    def _chunk(self, kind: int | None = None, *, tail: bool = False, first: bool = False, last: bool = False) -> Chunk:
        one = tuple(int(place == kind) for place in range(self.kinds))
        none = (0,) * self.kinds
        return Chunk(blocks=one, recomputed=one, tail=one if tail else none, in_flight=1, first=first, last=last)

    def _shares(self) -> dict[str, Array]:
        """Bytes one micro-batch leaves, [policy, share]: of a block of each kind, what its being of the tail adds,
        and of both ends.
        """
        import numpy as np  # noqa: PLC0415

        def left(chunk: Chunk, copied: bool = False) -> Array:
            policies = [Policy(recompute=name, copied=copied) for name in RECOMPUTE]
            return np.stack([self._full(chunk_bytes(self.rank, policy, chunk)) for policy in policies])

        plain = [left(self._chunk(kind)) for kind in range(self.kinds)]
        wide = [left(self._chunk(kind, tail=True)) for kind in range(self.kinds)]
        return {
            "block": np.stack(plain), "tail": np.stack(wide) - np.stack(plain),
            "first": left(self._chunk(first=True)), "last": left(self._chunk(last=True)),
            "passed": left(self._chunk(), copied=True),
        }  # fmt: skip

    @functools.lru_cache(maxsize=256)  # noqa: B019  the object lives for one search
    def _working(self, present: tuple[bool, ...]) -> Array:
        """Bytes [ZeRO stage, policy, share] made while a block is in backward, of these kinds of block."""
        import numpy as np  # noqa: PLC0415

        chunks = tuple(self._chunk(kind) for kind, here in enumerate(present) if here)
        found = np.empty((len(ZERO), len(RECOMPUTE), len(self.at.tp)))
        for stage in ZERO:
            rank = self.rank.sharded(stage)
            for place, name in enumerate(RECOMPUTE):
                found[stage, place] = working_bytes(rank, Policy(recompute=name), chunks)
        return found

    @functools.lru_cache(maxsize=256)  # noqa: B019
    def _buffers(self, present: tuple[bool, ...], copied: bool) -> Array:
        chunks = tuple(self._chunk(kind) for kind, here in enumerate(present) if here)
        return self._full(buffer_bytes(self.rank, Policy(copied=copied), chunks))

    # --- states ---------------------------------------------------------------------------------------------------

    def floor_bytes(self) -> Array:
        """For each row the states of the mean stage and one micro-batch of its blocks: the fullest has no less."""
        grid = self.rows.take(self.held.first)
        mean = states_floor(self.model, grid, self.imbalance)
        counts = [len(block.layers) for block in self.model.parts.blocks]
        least = sum(count * share for count, share in zip(counts, self.share["block"].min(axis=1), strict=True))
        kept_least = (least + 0 * self.loss)[self.shared.of] / self.rows.pp
        if self.model.stack.frees_gradients:  # they may not be there yet when activations are
            kept_least = 0 * kept_least
        return mean[self.held.of] + kept_least

    @functools.cached_property
    def _holders(self) -> tuple[Rank, tuple[Held, ...], tuple[Held, Held, Held]]:
        """Of every combination of degrees that decide it: the rank, its parameters of a block of each kind, and of the
        first end, the last, and both on one rank, where a tied table is there once.
        """
        rank = Rank(self.model, self._degrees(self.rows.take(self.held.first)))
        policy = Policy(copied=True)
        ends = (self._chunk(first=True), self._chunk(last=True), self._chunk(first=True, last=True))
        blocks = tuple(held_params(rank, policy, (self._chunk(kind),)) for kind in range(self.kinds))
        first, last, both = (held_params(rank, policy, (chunk,)) for chunk in ends)
        assert rank.largest_block is not None  # worked out here, so that `take` finds it
        return rank, blocks, (first, last, both)

    def _states(self, which: Array, stages: Sequence[tuple[tuple[int, ...], bool, bool]]) -> dict[str, Array]:
        """Weights with optimizer, gradients, and what a step makes, of one stage of each layout: which combination of
        degrees it has, the blocks of each kind it has, and whether it has what is before and after them.
        """
        import numpy as np  # noqa: PLC0415

        rank, kinds, ends = self._holders
        blocks = np.array([counts for counts, _, _ in stages]).T
        first, last = (np.array([stage[place] for stage in stages]) for place in (1, 2))
        total = Held()
        for one, count in zip((*kinds, *ends), (*blocks, first & ~last, last & ~first, first & last), strict=True):
            total += _times(one.take(which), count)
        policy = Policy(copied=True, offload=self.rows.offload[self.held.first[which]])
        found = held_states(rank.take(which), policy, total)
        return {"fixed": found["weights"] + found["optimizer"], "gradients": found["gradients"],
                "stepping": found["stepping"], "whole": found["whole"]}  # fmt: skip

    # --- layouts --------------------------------------------------------------------------------------------------

    def fullest_bytes(self, grid: Grid, row: Array) -> Array:
        """Memory of the fullest rank of each layout, the allowance included."""
        import numpy as np  # noqa: PLC0415

        pipes, pipe = self._pipes(grid)
        most = np.zeros(len(grid))
        for slot in range(max(len(stages) for stages in pipes)):
            chosen = [stages[min(slot, len(stages) - 1)] for stages in pipes]
            here = np.flatnonzero(np.array([len(stages) > slot for stages in pipes])[pipe])
            if len(here) > MOST_OF * len(grid):  # looking twice at a few costs less than picking the others
                most = np.maximum(most, self._slot(grid, row, chosen, pipe))
            else:
                most[here] = np.maximum(most[here], self._slot(grid.take(here), row[here], chosen, pipe[here]))
        return most

    def _pipes(self, grid: Grid) -> tuple[list[tuple[Stage, ...]], Array]:
        """The stages that may be the fullest of each pipeline shape, and which shape each layout has."""
        chunks = int(grid.vpp.max()) + 1
        code = (grid.pp * chunks + grid.vpp) * len(SCHEDULES) + grid.schedule
        first, pipe = unique_codes(code.astype("int64"), int(code.max()) + 1)
        shapes = zip(
            *(getattr(grid, name)[first].astype(int).tolist() for name in ("pp", "vpp", "schedule")), strict=True
        )
        return [self._fullest_stages(*shape) for shape in shapes], pipe

    @functools.lru_cache(maxsize=4096)  # noqa: B019
    def _fullest_stages(self, pp: int, vpp: int, schedule: int) -> tuple[Stage, ...]:
        """Of stages that hold the same, the first has most in flight (in DualPipe the first or the last)."""
        import numpy as np  # noqa: PLC0415

        layout = Layout(pp=pp, vpp=vpp, schedule=SCHEDULES[schedule])
        sizes = np.array(chunk_sizes(self.model.parts.num_layers, pp, vpp))
        own = [own_chunks(layout, place) for place in range(pp)]
        last = pp * vpp - 1
        kinds = self._held_by(sizes, 0), self._held_by(sizes, self.model.parts.num_layers - self.model.tail)
        found: dict[tuple[Any, ...], list[int]] = {}
        for place, chunks in enumerate(own):
            held = (tuple(each[:, chunks].ravel().tolist()) for each in kinds)
            found.setdefault((*held, *((at == 0, at == last) for at in chunks)), []).append(place)
        wanted = {each for places in found.values() for each in (places[0], *(places[-1:] if schedule == DUALPIPE
                                                                               else ()))}  # fmt: skip
        return tuple(self._stage(layout, place, sizes, kinds) for place in sorted(wanted))

    def _held_by(self, sizes: Array, since: int, first: Array | None = None) -> Array:
        """Blocks of each kind of every chunk [kind, chunk]: of its first ones, of those number `since` and later."""
        import numpy as np  # noqa: PLC0415

        ends = np.cumsum(sizes)
        starts = ends - sizes
        ends = ends if first is None else starts + np.minimum(first, sizes)
        before = self.model.parts.before_each
        found: Array = before[:, ends] - before[:, np.clip(starts, since, ends)]
        return found

    def _stage(self, layout: Layout, place: int, sizes: Array, kinds: tuple[Array, Array]) -> Stage:
        import numpy as np  # noqa: PLC0415

        flights = self._flights(layout, place)  # [chunk, micro-batches]
        own = own_chunks(layout, place)
        blocks, tail = (each[:, own] for each in kinds)
        first, last = (np.array([at == end for at in own]) for end in (0, layout.pp * layout.vpp - 1))
        layers = np.arange(sizes.max() + 1)[:, None]
        again = np.moveaxis(self._held_by(sizes, 0, layers)[:, :, own], 0, 1)  # [so many, kind, chunk]
        return Stage(
            blocks=blocks.sum(axis=1), first=bool(first.any()), last=bool(last.any()), flight=blocks @ flights,
            tail=tail @ flights, first_flight=first @ flights, last_flight=last @ flights,
            passed_flight=(1 - last) @ flights * (layout.pp > 1), again=again @ flights,
        )  # fmt: skip

    def _flights(self, layout: Layout, place: int) -> Array:
        import numpy as np  # noqa: PLC0415

        if layout.vpp > 1:  # all chunks together
            return in_flight_interleaved(
                self.micro_batches, layout.pp, place, layout.vpp, np.arange(layout.vpp)[:, None]
            )
        return np.stack([count + 0 * self.micro_batches for _, count in chunks_of(layout, place, self.micro_batches)])

    def fewest_layers(self, grid: Grid, row: Array, limit_bytes: float) -> Array:
        """Of layouts that do not fit as they are, how few of the first layers of every chunk have to be made again so
        that the fullest rank fits; 0 where making all of them again is not enough or just so. Memory falls with every
        layer, so that halving finds the number.
        """
        import numpy as np  # noqa: PLC0415

        grid = replace(grid, recompute=FULL + 0 * grid.recompute)
        pipes, pipe = self._pipes(grid)
        every = np.ceil(self.model.parts.num_layers / (grid.pp * grid.vpp))
        fewest = np.ones(len(grid))
        for slot in range(max(len(stages) for stages in pipes)):
            chosen = [stages[min(slot, len(stages) - 1)] for stages in pipes]
            few = fewest < every
            here = np.flatnonzero(np.array([len(stages) > slot for stages in pipes])[pipe] & few)
            if len(here):
                total = self._slot_bytes(grid.take(here), row[here], chosen, pipe[here])
                fewest[here] = _halved(total, limit_bytes, fewest[here], every[here])
        return np.where(fewest < every, fewest, 0)

    def _slot(self, grid: Grid, row: Array, chosen: Sequence[Stage], pipe: Array) -> Array:
        """Memory of one stage of each layout: that of its pipeline's shape."""
        return self._slot_bytes(grid, row, chosen, pipe)(grid.recompute_layers)

    def _slot_bytes(self, grid: Grid, row: Array, chosen: Sequence[Stage], pipe: Array) -> Callable[[Array], Array]:
        """The same as a function of the layers that full recompute makes again (0: all)."""
        import numpy as np  # noqa: PLC0415

        share, policy, count = self.shared.of[row], grid.recompute.astype(int), self.count[row]
        whole = self._in_flight(chosen, pipe, policy, share, count)
        working, buffers = self._around(grid, chosen, pipe, policy, share)
        loss = self.loss[share] * np.array([stage.last for stage in chosen])[pipe]
        held, which = _distinct([(tuple(stage.blocks), stage.first, stage.last) for stage in chosen])
        kind = np.array(which)[pipe]
        first, place = unique_codes(self.held.of[row] * len(held) + kind, len(self.held.first) * len(held))
        states = self._states(self.held.of[row[first]], [held[each] for each in kind[first].tolist()])
        fixed, gradients, stepping = (states[name][place] for name in ("fixed", "gradients", "stepping"))
        times = self.micro_batches[count]
        early = gradients * (times > 1 if self.model.stack.frees_gradients else 1)
        early = early + whole_bytes(states["whole"][place], whole_fraction(self.model.stack, grid.pp, grid.vpp, times))
        context = self.model.stack.context_bytes

        def total(layers: Array) -> Array:
            kept_bytes = whole + self._spared(chosen, pipe, share, count, layers)
            peak = peak_bytes(kept_bytes, loss, working, gradients, early, stepping)
            allocated = fixed + peak + buffers
            return allocated + reserve_bytes(self.model, allocated) + context

        return total

    def _spared(self, chosen: Sequence[Stage], pipe: Array, share: Array, count: Array, layers: Array) -> Array:
        """What blocks keep more, if only the first `layers` (0: all) of every chunk are made again."""
        import numpy as np  # noqa: PLC0415

        some = np.flatnonzero(layers > 0)
        found = np.zeros(len(layers))
        if not len(some):
            return found
        ends = np.cumsum([len(stage.again) for stage in chosen])
        starts = ends - [len(stage.again) for stage in chosen]
        again = np.concatenate([stage.again for stage in chosen])  # [stage and so many, kind, micro-batches]
        pipe, share, count = pipe[some], share[some], count[some]
        at = np.minimum(starts[pipe] + layers[some].astype(int), ends[pipe] - 1)
        for kind in range(self.kinds):
            kept_more = self.share["block"][kind][NONE, share] - self.share["block"][kind][FULL, share]
            flight = np.stack([stage.flight[kind] for stage in chosen])[pipe, count]
            found[some] += (flight - again[at, kind, count]) * kept_more
        return found

    def _in_flight(self, chosen: Sequence[Stage], pipe: Array, policy: Array, share: Array, count: Array) -> Array:
        import numpy as np  # noqa: PLC0415

        total = 0
        for kind in range(self.kinds):
            flight = np.stack([stage.flight[kind] for stage in chosen])[pipe, count]
            total = total + flight * self.share["block"][kind][policy, share]
            tail = np.stack([stage.tail[kind] for stage in chosen])
            if tail.any() and self.share["tail"][kind].any():
                total = total + tail[pipe, count] * self.share["tail"][kind][policy, share]
        for name in ("first", "last", "passed"):
            flight = np.stack([getattr(stage, f"{name}_flight") for stage in chosen])[pipe, count]
            total = total + flight * self.share[name][policy, share]
        return total

    def _around(
        self, grid: Grid, chosen: Sequence[Stage], pipe: Array, policy: Array, share: Array
    ) -> tuple[Array, Array]:
        """What a block's backward makes, and buffers."""
        import numpy as np  # noqa: PLC0415

        working, buffers = np.zeros(len(grid)), np.zeros(len(grid))
        sets, which = _distinct([stage.present for stage in chosen])
        for place, present in enumerate(sets):
            here = slice(None) if len(sets) == 1 else np.flatnonzero((np.array(which) == place)[pipe])
            working[here] = self._working(present)[grid.zero[here].astype(int), policy[here], share[here]]
            copied = grid.pp[here] > 1
            buffers[here] = np.where(
                copied, self._buffers(present, True)[share[here]], self._buffers(present, False)[share[here]]
            )
        return working, buffers


def _distinct(values: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """The distinct ones, and which of them each is."""
    known: dict[Any, int] = {}
    which = [known.setdefault(value, len(known)) for value in values]
    return list(known), which


def _halved(total: Callable[[Array], Array], limit: float, low: Array, high: Array) -> Array:
    """The smallest whole numbers from `low` on whose total is within a limit; `high` where none below it is."""
    import numpy as np  # noqa: PLC0415

    while (low < high).any():
        middle = np.floor((low + high) / 2)
        good = total(middle) <= limit
        low, high = np.where(good, low, np.minimum(middle + 1, high)), np.where(good, middle, high)
    return high


def _times(held: Held, count: Array) -> Held:
    """So many of these, element by element."""
    return Held(*(getattr(held, name) * count for name in Held.__dataclass_fields__))


def degrees_of_grid(grid: Grid, vocab_multiple: int, imbalance: float = 1, zero: Any = None) -> Degrees:
    """The degrees of layouts as arrays; their ZeRO stages, or one for all."""
    names = ("tp", "cp", "dp", "ep", "etp", "sp", "micro_batch", "shards")
    return Degrees(
        **{name: getattr(grid, name) for name in names}, zero=grid.zero if zero is None else zero,
        vocab_multiple=vocab_multiple, imbalance=imbalance,
    )  # fmt: skip


def states_floor(model: Model, grid: Grid, imbalance: float = 1) -> Array:
    """Weights, gradients and optimizer states of the mean stage: the fullest holds no less."""
    none = (0,) * len(model.parts.blocks)
    every = tuple(len(block.layers) for block in model.parts.blocks)
    whole = Chunk(blocks=every, recomputed=none, tail=none, in_flight=1, first=True, last=True)
    rank = Rank(model, degrees_of_grid(grid, model.stack.vocab_multiple, imbalance))
    held = _times(held_params(rank, Policy(), (whole,)), 1 / grid.pp)
    found = held_states(rank, Policy(offload=grid.offload), held)
    return found["weights"] + found["gradients"] + found["optimizer"]
