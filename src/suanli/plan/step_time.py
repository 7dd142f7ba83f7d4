"""Step time of layouts, as entries that add up to it; one set of functions for a single layout and for a grid.

First `features`: seconds of the device's curves by block, pass and column, put into pipeline stages; nothing fitted
enters. Then `account`: a stack's profile makes them the entries of a step. Fitting a profile repeats the second only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from suanli.formulas.kernels import joined_s, larger
from suanli.formulas.steps import bubble_s, exchange_beside_s, exposed_exchange_s
from suanli.nouns.arch import Arch
from suanli.nouns.grid import Grid
from suanli.nouns.layout import SCHEDULES
from suanli.nouns.profile import Traits
from suanli.nouns.workload import Workload
from suanli.plan import columns as c
from suanli.plan.accumulation import scatters
from suanli.plan.columns import ENTRIES, LAUNCHES, SPANS
from suanli.plan.comm_time import data_times, send_time
from suanli.plan.compute_time import Local, block_time
from suanli.plan.known_times import KnownTimes
from suanli.plan.pieces import EXPERTS, Parts, Piece, parts_of
from suanli.plan.sharding import Degrees, positions_of, rank_leaf
from suanli.plan.stage_time import Stages, bubble_share, stages

Array = Any
_DUALPIPE = SCHEDULES.index("dualpipe")
_NOTHING = 1e-30  # keeps 0/0 out where nothing is exchanged
_SHARPNESS = 8.0  # how sharply the slower of two overlapping activities wins
_BLOCK = ("tp", "cp", "ep", "etp", "micro_batch", "sp")  # what the time of a block depends on
_JOBS = 16  # of a model that are kept: a question asks about the run on other links and in 8 bits too
_OF_SHAPES = ("stages", "paired", "place")  # features that are of shapes, and which shape each layout has
# What stages and exchanges depend on.
_SHAPE = (*_BLOCK, "pp", "vpp", "dp", "schedule", "shards", "recompute", "recompute_layers")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is trained, on what, with what: all that layouts of one grid have in common."""

    arch: Arch
    seq: int
    dtype: str
    curves: Any
    fabric: Any
    traits: Traits
    parts: Parts = field(init=False)

    def __post_init__(self) -> None:
        """Take the model apart once."""
        object.__setattr__(self, "parts", parts_of(self.arch))

    @cached_property
    def known(self) -> KnownTimes:
        """Seconds of blocks asked for before."""
        return KnownTimes()

    @property
    def groups(self) -> tuple[tuple[Piece, ...], ...]:
        """Pieces of one copy of each kind of block, of what comes before the blocks, and of what comes after."""
        return (*(block.pieces for block in self.parts.blocks), self.parts.before, self.parts.after)


@dataclass(frozen=True, kw_only=True)
class Features:
    """Everything of a step that no fitted number enters. Seconds unless named; arrays over layouts, but `stages` and
    `paired` over the shapes among them: layouts that differ in ZeRO and offload only share a shape, and
    `place` says which is whose. `scattered` is how often gradients are scattered within a micro-batch.
    """

    stages: Stages
    paired: Array
    place: Array
    micro_batches: Array
    bubble: Array
    zero3: Array
    scattered: Array
    send: Array
    data: Array
    gather: Array
    scatter: Array
    optimizer: Array
    pp: Array
    vpp: Array
    overlaps: Array

    def apart(self) -> Features:
        """The same with a shape of its own for every layout, so that numbers may differ by layout."""
        import numpy as np  # noqa: PLC0415

        held = Stages(*(getattr(self.stages, each.name)[..., self.place] for each in fields(Stages)))
        return replace(self, stages=held, paired=self.paired[self.place], place=np.arange(len(self.place)))

    def take(self, rows: Array) -> Features:
        """Those of some layouts, a layout as often as it is named; every one with a shape of its own."""
        import numpy as np  # noqa: PLC0415

        at = self.place[rows]
        held = Stages(*(getattr(self.stages, each.name)[..., at] for each in fields(Stages)))
        others = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _OF_SHAPES}
        taken = {name: value[rows] for name, value in others.items()}
        return Features(stages=held, paired=self.paired[at], place=np.arange(len(at)), **taken)


def features(job: Job, grid: Grid, global_batch: Array) -> Features:
    """The features of every layout of a grid at a global batch (one, or one for each layout)."""
    first, place = _shapes(grid)
    shapes = grid.take(first)
    times = block_times(job, shapes)
    params = [block_params(pieces, shapes) for pieces in job.groups]
    held = stages(job.parts, shapes, times, params)
    exchanged = {name: each[place] for name, each in data_times(job, shapes, held.dense, held.expert).items()}
    micro_batches = global_batch / (grid.dp * grid.micro_batch)
    runs = scatters(job.traits, grid.pp, grid.vpp, micro_batches)
    data, gather, scatter = by_stage(exchanged, grid.zero)
    return Features(
        stages=held,
        paired=(shapes.schedule == _DUALPIPE) * 1.0,
        place=place,
        micro_batches=micro_batches,
        bubble=bubble_share(shapes)[place],
        zero3=(grid.zero == 3) * 1.0,
        scattered=scattered_share(grid.zero, runs, micro_batches),
        send=send_time(job, shapes, width(job.parts))[place],
        data=data,
        gather=gather,
        scatter=scatter,
        optimizer=optimizer_time(job, grid, held.dense[place], held.expert[place]),
        pp=grid.pp,
        vpp=grid.vpp,
        overlaps=int(job.traits.overlaps_data) + 0 * grid.pp,
    )


def _shapes(grid: Grid) -> tuple[Array, Array]:
    """Places of one layout of each shape, and of each layout its shape."""
    import numpy as np  # noqa: PLC0415

    code = np.zeros(len(grid), dtype=np.int64)
    for name in _SHAPE:
        values, codes = np.unique(getattr(grid, name), return_inverse=True)
        code = code * len(values) + codes
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    return first, place


def width(parts: Parts) -> int:
    """Width of what passes from a stage to the next."""
    return max((piece.layer.dim for piece in parts.before if hasattr(piece.layer, "dim")), default=0)


def job_of(arch: Arch, seq: int, dtype: str, curves: Any, fabric: Any, traits: Traits) -> Job:
    """The job, with all that is known of it from earlier questions about the same model."""
    kept: tuple[Job, ...] = arch.__dict__.get("_jobs", ())
    asked = (seq, dtype, curves, fabric, traits)
    same = [each for each in kept if (each.seq, each.dtype, each.curves, each.fabric, each.traits) == asked]
    job = same[0] if same else Job(arch=arch, seq=seq, dtype=dtype, curves=curves, fabric=fabric, traits=traits)
    object.__setattr__(arch, "_jobs", (job, *(each for each in kept if each is not job))[:_JOBS])
    return job


def block_times(job: Job, grid: Grid) -> list[Array]:
    """Seconds [pass, column, layout] of each kind of block and of both ends, worked out once for layouts that share
    what matters.
    """
    import numpy as np  # noqa: PLC0415

    keys = np.stack([getattr(grid, name) for name in _BLOCK])
    unique, back = np.unique(keys, axis=1, return_inverse=True)
    found = job.known.times(unique, lambda keys: _block_times(job, keys))
    return [each[:, :, back.reshape(-1)] for each in found]


def _block_times(job: Job, keys: Array) -> list[Array]:
    degrees = Degrees(**dict(zip(_BLOCK, keys, strict=True)))
    positions = positions_of(job.arch, Workload(phase="train", seq=job.seq))
    local = Local(degrees, positions, job.curves, job.fabric, job.traits, job.dtype)
    return [block_time(pieces, local) for pieces in job.groups]


def block_params(pieces: tuple[Piece, ...], grid: Grid) -> tuple[Array, Array]:
    """Parameters of one copy on one rank: dense ones, and experts."""
    degrees = Degrees(tp=grid.tp, ep=grid.ep, etp=grid.etp)
    dense, expert = 0 * grid.tp, 0 * grid.tp
    for piece in pieces:
        held = rank_leaf(piece, degrees).params
        dense, expert = (dense, expert + held) if piece.cut == EXPERTS else (dense + held, expert)
    return dense, expert


def optimizer_time(job: Job, grid: Grid, dense: Array, expert: Array) -> Array:
    """Seconds of one pass over a rank's states, on the device or, offloaded, in the host's memory."""
    sharded = grid.zero > 0
    dense = dense / (1 + sharded * (grid.state_ranks - 1))
    expert = expert / (1 + sharded * (grid.expert_state_ranks - 1))
    moved = (dense + expert) * job.traits.state_bytes
    near = job.curves.memory_s(moved)
    return near + (moved / job.traits.host_bytes_per_s - near) * grid.offload


# --- the account --------------------------------------------------------------------------------------------------


def joined(first: Array, second: Array) -> Array:
    """Time of two activities side by side."""
    return joined_s(first, second, _SHARPNESS)


def account(features: Features, profile: Any) -> dict[str, Array]:
    """Entry → seconds [layout]; their sum is the step. `profile` holds numbers, or arrays with one for each layout
    where the features stand `apart`.
    """
    slowest, others = (_passes(features, each, profile) for each in (features.stages.slowest, features.stages.others))
    micro = _micro(features, slowest, profile, 1)
    other = _micro(features, others, profile, features.pp - 1)
    times = features.micro_batches
    found = {entry: seconds * times for entry, seconds in micro.items()}
    hops = 2 * features.send
    found["sends"] = hops * (features.vpp * times * profile.send_exposed + (features.pp - 1))
    found["bubble"] = bubble_s(sum(other.values()), features.bubble, features.vpp)
    waits = micro["weight gathers"], _zero2_waits(features, slowest, profile)
    moved = features.data, (features.gather + features.scatter) * features.zero3
    found["data parallel"] = data_parallel(moved, sum(micro.values()), waits, times, profile, features.overlaps)
    found["optimizer"] = features.optimizer * profile.optimizer
    found["fixed"] = profile.fixed_s + profile.micro_s * times
    return found


def micro_passes(features: Features, work: Array, profile: Any) -> tuple[Array, Array, dict[str, Array]]:
    """Seconds of the forward pass and of what follows it of one micro-batch of `work`, and the entries that add up to
    both, for features that stand as `work` does.
    """
    passes = _passes(features, work, profile)
    return *_sharded(features, passes, profile, 1), _micro(features, passes, profile, 1)


@dataclass(frozen=True)
class _Passes:
    """Of one micro-batch on stages of every shape: entries of forward and backward, and of each pass the seconds of
    kernels and exchanges, alone and with the launches that they do not hide."""

    entries: Mapping[str, Array]
    busy: Sequence[Array]
    launched: Sequence[Array]


def _passes(features: Features, work: Array, profile: Any) -> _Passes:
    """The work of stages at a stack's pace."""
    factors = factors_of(profile)
    both = work[c.FORWARD] + work[c.BACKWARD]
    factors[c.EXCHANGE] = _exchange(features, factors, both, profile)
    busy = [sum(factors[at] * each[at] for at in ENTRIES) for each in work]
    hosts = [profile.launch_s * each[LAUNCHES] + profile.span_s * each[SPANS] for each in work]
    launched = [joined(kernels, host) for kernels, host in zip(busy, hosts, strict=True)]
    return _Passes({name: factors[at] * both[at] for at, name in ENTRIES.items()}, busy, launched)


def _micro(features: Features, passes: _Passes, profile: Any, stages: Array) -> dict[str, Array]:
    """Entries of one micro-batch on the `stages` stages whose passes are given together."""
    at = features.place
    busy, launched = ([each[at] for each in kind] for kind in (passes.busy, passes.launched))
    found = {name: seconds[at] for name, seconds in passes.entries.items()}
    found["recompute"] = busy[c.AGAIN]
    found["launch"] = sum(slow - kernels for slow, kernels in zip(launched, busy, strict=True))
    waits = 0 * busy[c.AGAIN]
    if shards(features).any():
        waits = sum(_sharded(features, passes, profile, stages)) - sum(launched)
    found["weight gathers"] = waits * features.zero3
    found["gradient scatters"] = waits * (1 - features.zero3)
    return found


def _sharded(features: Features, passes: _Passes, profile: Any, stages: Array) -> tuple[Array, Array]:
    """Seconds of the forward pass and of what follows it, with the gathers and scatters beside them."""
    forward, back, again = (each[features.place] for each in passes.launched)
    if not shards(features).any():
        return forward, back + again
    gather, scatter = (each * profile.gather * stages for each in (features.gather, features.scatter))
    return sharded_passes((forward, back + again), gather, scatter, features.scattered, profile, features.overlaps)


def _zero2_waits(features: Features, passes: _Passes, profile: Any) -> Array:
    """Of layouts of ZeRO 3, what a micro-batch would wait for under ZeRO 2: scatters alone, all but a step's last."""
    forward, back, again = (each[features.place] for each in passes.launched)
    if not features.zero3.any():
        return 0 * forward
    scattered = features.scattered - 1 / features.micro_batches
    found = sharded_passes(
        (forward, back + again), 0 * features.gather, features.scatter * profile.gather, scattered, profile,
        features.overlaps,
    )  # fmt: skip
    return (sum(found) - forward - back - again) * features.zero3


def shards(features: Features) -> Array:
    """Which layouts exchange states beside their micro-batches."""
    return (features.scattered != 0) | (features.zero3 != 0)


def factors_of(profile: Any) -> dict[int, Array]:
    """What a profile multiplies the seconds of each column by, the exchange over ep apart."""
    return {
        c.MATMUL: profile.matmul, c.ATTENTION: profile.attention, c.MEMORY: profile.memory,
        c.EXPERTS: profile.experts * profile.imbalance, c.TENSOR: profile.tensor_exposed,
        c.ACROSS: profile.tensor_exposed * profile.network, c.CONTEXT: profile.context_exposed,
    }  # fmt: skip


def sharded_passes(
    passes: tuple[Array, Array], gather: Array, scatter: Array, scattered: Array, profile: Any, overlaps: Array
) -> tuple[Array, Array]:
    """Seconds of the forward pass and of what follows it, with weights gathered beside each (ZeRO 3) and gradients
    scattered beside a part of the backward passes (ZeRO 2 and 3).
    """
    forward, back = passes
    with_scatter = beside(back, gather + scatter, profile, overlaps)
    without = beside(back, gather, profile, overlaps)
    return beside(forward, gather, profile, overlaps), without + scattered * (with_scatter - without)


def beside(busy: Array, travel: Array, profile: Any, overlaps: Array = 1) -> Array:
    """Seconds of kernels with gathers and scatters beside them; after them where the stack overlaps none."""
    exposed = 1 + (profile.data_exposed - 1) * overlaps
    return busy + exchange_beside_s(busy, travel, exposed, _SHARPNESS)


def _exchange(features: Features, factors: Mapping[int, Array], work: Array, profile: Any) -> Array:
    """What of the exchange over ep is exposed: the stack's share; under DualPipe, which runs it beside the kernels of
    another micro-batch, what these do not hide.
    """
    import numpy as np  # noqa: PLC0415

    paired = hidden_behind(sum(factor * work[at] for at, factor in factors.items()), work[c.EXCHANGE], profile)
    return np.where(features.paired > 0, paired, exchange_share(profile))


def exchange_share(profile: Any) -> Array:
    """What of the exchange over ep is exposed where the stack alone decides."""
    return profile.expert_exposed * profile.imbalance


def hidden_behind(busy: Array, exchange: Array, profile: Any) -> Array:
    """The share of an exchange that kernels of `busy` seconds do not hide."""
    import numpy as np  # noqa: PLC0415

    return (joined(busy, exchange * profile.imbalance) - busy) / np.maximum(exchange, _NOTHING)


def by_stage(exchanged: Mapping[str, Array], zero: Array) -> tuple[Array, Array, Array]:
    """Of the exchanges over dp those of a ZeRO stage: seconds after a step's micro-batches, of one gather of weights
    (stage 3: twice a micro-batch), and of one scatter of gradients (from stage 2 on as often as they are sharded).
    """
    plain, zero3 = zero == 0, zero == 3
    sharded = exchanged["rest"] + (exchanged["scatter"] + exchanged["gather"]) * ~zero3
    data = exchanged["whole"] * plain + sharded * ~plain
    return data, exchanged["gather"] * zero3, exchanged["scatter"] * (zero >= 2)


def scattered_share(zero: Array, runs: Array, micro_batches: Array) -> Array:
    """Scatters of gradients beside one micro-batch's backward pass, of `runs` in a step: all under stage 3, all but
    the last under stage 2.
    """
    return (runs * (zero == 3) + (runs - 1) * (zero == 2)) / micro_batches


def data_parallel(
    moved: tuple[Array, Array], window: Array, waits: tuple[Array, Array], times: Array, profile: Any, overlaps: Array
) -> Array:
    """Seconds of the exchange over dp after `times` micro-batches of `window` seconds each, of which it waits for what
    ZeRO 3 moves, and would for what ZeRO 2 moves (`waits`). `moved` is what is exchanged once a step, and what ZeRO 3
    gathers and scatters in every micro-batch.

    Sharded weights travel as often as under ZeRO 1 and 2 or oftener: what ZeRO 1 or 2 would wait for, and ZeRO 3 does
    not, is added, so that ZeRO 3 never comes out faster.
    """
    kept = exposed_data(moved[0] * profile.network, window, profile, overlaps)
    whole = (moved[0] + moved[1]) * profile.network
    spent = kept + waits[0] * times
    added = 0 * kept
    for fewer in (0 * waits[1], waits[1]):  # under ZeRO 1, under ZeRO 2
        least = exposed_data(whole, window - waits[0] + fewer, profile, overlaps) + fewer * times
        added = larger(added, least - spent)
    return kept + added


def exposed_data(whole: Array, window: Array, profile: Any, overlaps: Array) -> Array:
    """Seconds of the exchange over dp that no micro-batch hides, all of it where the stack overlaps none: `whole` of
    it, beside `window` of one micro-batch.
    """
    kept = exposed_exchange_s(whole, profile.data_exposed, window)
    return whole + (kept - whole) * overlaps
