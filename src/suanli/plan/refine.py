"""The step of one layout with its pipeline played out: each chunk with its own time, sends, what comes after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout, chunk_sizes
from suanli.nouns.profile import Profile
from suanli.plan.columns import AGAIN, BACKWARD, EXPERTS, FORWARD, MATMUL
from suanli.plan.pipeline import own_chunks
from suanli.plan.pipeline_events import Played, StageTimes, play
from suanli.plan.step_time import Features, Job, account, block_times, factors_of, features, micro_passes

_WEIGHTS = 0.5  # of a product's backward pass, the gradient of its weight: one of two products of equal operations
MOST_PLAYED = 10_000  # micro-batches × stages: above, the ends no longer matter and playing would take minutes
_AFTER = ("data parallel", "optimizer", "fixed")  # entries that come once, after the last pass


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step as entries that add up to it: of the rank that works longest, and what it waits; and the closed form's."""

    seconds: float
    account: dict[str, float]
    closed_s: float
    played: Played | None = None


def closed_step(job: Job, profile: Profile, layout: Layout, global_batch: int) -> Step:
    """The step by the closed form."""
    found = account(features(job, Grid.of([layout]), float(global_batch)), profile)
    entries = {name: float(_one(value)) for name, value in found.items()}
    seconds = sum(entries.values())
    return Step(seconds=seconds, account=entries, closed_s=seconds)


def best_step(job: Job, profile: Profile, layout: Layout, global_batch: int) -> Step:
    """The step with its pipeline played out, by the closed form where that is too long."""
    if too_long_to_play(layout, global_batch):
        return closed_step(job, profile, layout, global_batch)
    return played_step(job, profile, layout, global_batch)


def played_step(job: Job, profile: Profile, layout: Layout, global_batch: int) -> Step:
    """The step with the pipeline played out: every chunk with its own time, sends between stages. The account is that
    of the rank that works longest; its bubble is all it waits.
    """
    found = features(job, Grid.of([layout]), float(global_batch))
    whole = {name: float(_one(value)) for name, value in account(found, profile).items()}
    send = float(_one(found.send))
    steady = send * profile.send_exposed  # keeps the rank busy; the rest of a send only makes the next stage wait
    chunks = chunk_passes(job, profile, layout, found)
    stages = [
        replace(each.times, forward_s=each.times.forward_s + steady, backward_s=each.times.backward_s + steady)
        for each in chunks
    ]
    count = layout.micro_batches(global_batch)
    played = play(
        stages, pp=layout.pp, micro_batches=count, schedule=layout.schedule, send_s=send - steady,
    )  # fmt: skip
    busiest = max(range(layout.pp), key=played.busy_s.__getitem__)
    times = _times_of(layout, busiest, count)
    entries = {name: sum(times[at] * chunks[at].account[name] for at in times) for name in chunks[0].account}
    entries["sends"] = 2 * steady * sum(times.values())
    entries["bubble"] = max(0.0, played.span_s - sum(entries.values()))
    entries |= {name: whole[name] for name in _AFTER}
    entries = {name: entries[name] for name in whole}
    return Step(seconds=sum(entries.values()), account=entries, closed_s=sum(whole.values()), played=played)


def _times_of(layout: Layout, rank: int, count: int) -> dict[int, float]:
    """Chunks of a rank, and how many micro-batches pass each; in DualPipe half of them pass from either end."""
    return dict.fromkeys(own_chunks(layout, rank), count / 2 if layout.schedule == "dualpipe" else float(count))


def too_long_to_play(layout: Layout, global_batch: int) -> bool:
    """Whether a pipeline has so many passes that the closed form stands for it."""
    return layout.micro_batches(global_batch) * layout.pp * layout.vpp > MOST_PLAYED


def _one(value: Any) -> Any:
    """The value of the only layout: an array of one, or a number."""
    return value[0] if getattr(value, "shape", ()) else value


@dataclass(frozen=True, kw_only=True)
class ChunkPasses:
    """One micro-batch in one chunk: its passes, and the entries that add up to them."""

    times: StageTimes
    account: dict[str, float]


def chunk_passes(job: Job, profile: Profile, layout: Layout, found: Features) -> list[ChunkPasses]:
    """One micro-batch in every chunk, in the order of the model, by the functions that account for whole stages; each
    gathers its part of a stage's weights and scatters its part of the gradients.
    """
    import numpy as np  # noqa: PLC0415

    grid = Grid.of([layout])
    times = np.stack([each[:, :, 0] for each in block_times(job, grid)], axis=2)  # [pass, column, group]
    counts, again = (np.array(each).T for each in chunk_counts(job, layout))  # [group, chunk]
    work = times @ counts
    work[AGAIN] = times[FORWARD] @ again if layout.recompute == "full" else work[AGAIN] * (layout.recompute != "none")
    factors = factors_of(profile)
    weights = sum(factors[at] * work[BACKWARD, at] for at in (MATMUL, EXPERTS)) * _WEIGHTS
    chunks = work.shape[2]
    apart = replace(
        found, place=np.arange(chunks), paired=np.repeat(found.paired[:1], chunks),
        gather=found.gather / layout.vpp, scatter=found.scatter / layout.vpp,
    )  # fmt: skip
    forward, back, entries = micro_passes(apart, work, profile)
    return [
        ChunkPasses(
            times=StageTimes(forward_s=float(forward[at]), backward_s=float(back[at]), weight_s=float(weights[at])),
            account={name: float(value[at]) for name, value in entries.items()},
        )
        for at in range(chunks)
    ]


def chunk_counts(job: Job, layout: Layout) -> tuple[list[list[int]], list[list[int]]]:
    """Of every chunk: blocks of each kind, and 1 where what is before or after all blocks is there; and of these what
    full recompute makes again.
    """
    sizes = chunk_sizes(job.parts.num_layers, layout.pp, layout.vpp)
    last = len(sizes) - 1
    held = [[*counts, int(place == 0), int(place == last)] for place, counts in enumerate(job.parts.counts(sizes))]
    return held, [[*counts, 0, 0] for counts in job.parts.counts(sizes, layout.recompute_layers)]
