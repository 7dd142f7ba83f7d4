"""Steps with their pipelines played out: each chunk with its own time, sends, what comes after.

Layouts are worked out together: what fills arrays of one as well fills arrays of all, in the time of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout, chunk_sizes
from suanli.nouns.profile import Profile
from suanli.plan.columns import AGAIN, BACKWARD, EXPERTS, FORWARD, MATMUL
from suanli.plan.pipeline import own_chunks
from suanli.plan.pipeline_events import Played, StageTimes, play
from suanli.plan.step_time import Features, Job, account, block_times, factors_of, features, micro_passes, shards

Array = Any
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
    return _closed(account(features(job, Grid.of([layout]), float(global_batch)), profile), 1)[0]


def best_step(job: Job, profile: Profile, layout: Layout, global_batch: int) -> Step:
    """The step with its pipeline played out, by the closed form where that is too long."""
    return best_steps(job, profile, [layout], global_batch)[0]


def played_step(job: Job, profile: Profile, layout: Layout, global_batch: int) -> Step:
    """The step with the pipeline played out: every chunk with its own time, sends between stages. The account is that
    of the rank that works longest; its bubble is all it waits.
    """
    found = features(job, Grid.of([layout]), float(global_batch))
    return _played(job, profile, [layout], found, global_batch)[0]


def best_steps(job: Job, profile: Profile, layouts: Sequence[Layout], global_batch: int) -> list[Step]:
    """The step of each layout, worked out together: the same numbers as one by one."""
    if not layouts:
        return []
    every, steps = features(job, Grid.of(layouts), float(global_batch)), dict[int, Step]()
    for places in _alike(every, [too_long_to_play(layout, global_batch) for layout in layouts]):
        own, found = [layouts[place] for place in places], every.take(places)
        long = too_long_to_play(own[0], global_batch)
        made = _closed(account(found, profile), len(own)) if long else _played(job, profile, own, found, global_batch)
        steps.update(zip(places, made, strict=True))
    return [steps[place] for place in range(len(layouts))]


def _alike(found: Features, long: Sequence[bool]) -> Iterator[list[int]]:
    """Places of layouts that are worked out in the same way: those that exchange states beside their micro-batches
    apart from those that do not, for which nothing is added up that rounding could leave a rest of.
    """
    kinds: dict[tuple[bool, bool], list[int]] = {}
    for place, kind in enumerate(zip(shards(found).tolist(), long, strict=True)):
        kinds.setdefault(kind, []).append(place)
    yield from kinds.values()


def _closed(found: Mapping[str, Array], count: int) -> list[Step]:
    """Steps of `count` layouts from their account."""
    accounts = _by_layout(found, count)
    totals = [sum(entries.values()) for entries in accounts]
    return [
        Step(seconds=total, account=entries, closed_s=total) for entries, total in zip(accounts, totals, strict=True)
    ]


def _by_layout(found: Mapping[str, Array], count: int) -> list[dict[str, float]]:
    """An account of arrays, or of numbers that all have in common, as one of numbers for each layout."""
    import numpy as np  # noqa: PLC0415

    columns = [np.broadcast_to(value, (count,)).tolist() for value in found.values()]
    return [dict(zip(found, each, strict=True)) for each in zip(*columns, strict=True)]


def _played(job: Job, profile: Profile, layouts: Sequence[Layout], found: Features, global_batch: int) -> list[Step]:
    wholes, sends = _by_layout(account(found, profile), len(layouts)), _by_layout({"send": found.send}, len(layouts))
    chunks = chunk_passes(job, profile, layouts, found)
    return [
        _played_one(layout, own, whole, send["send"], profile.send_exposed, layout.micro_batches(global_batch))
        for layout, own, whole, send in zip(layouts, chunks, wholes, sends, strict=True)
    ]


def _played_one(
    layout: Layout, chunks: Chunks, whole: Mapping[str, float], send: float, exposed: float, count: int
) -> Step:
    steady = send * exposed  # keeps the rank busy; the rest of a send only makes the next stage wait
    played = play(
        chunks.stages(steady), pp=layout.pp, micro_batches=count, schedule=layout.schedule, send_s=send - steady,
    )  # fmt: skip
    busiest = max(range(layout.pp), key=played.busy_s.__getitem__)
    times = _times_of(layout, busiest, count)
    entries: dict[str, float] = {
        name: sum(times[at] * float(each[at]) for at in times) for name, each in chunks.account.items()
    }
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


@dataclass(frozen=True, kw_only=True)
class Chunks:
    """One micro-batch in every chunk of a layout, in the order of the model: seconds of its passes [chunk], and the
    entries that add up to them.
    """

    forward_s: Array
    backward_s: Array
    weight_s: Array
    account: Mapping[str, Array]

    def stages(self, more_s: float = 0.0) -> list[StageTimes]:
        """As a pipeline plays them; `more_s` is what each pass is longer for what the rank sends."""
        passes = ((self.forward_s + more_s).tolist(), (self.backward_s + more_s).tolist(), self.weight_s.tolist())
        return [
            StageTimes(forward_s=forward, backward_s=backward, weight_s=weight)
            for forward, backward, weight in zip(*passes, strict=True)
        ]


def chunk_passes(job: Job, profile: Profile, layouts: Sequence[Layout], found: Features) -> list[Chunks]:
    """One micro-batch in the chunks of each layout, by the functions that account for whole stages; each chunk gathers
    its part of a stage's weights and scatters its part of the gradients.
    """
    import numpy as np  # noqa: PLC0415

    times = np.stack(block_times(job, Grid.of(layouts)), axis=2)  # [pass, column, group, layout]
    works = [_work_of(job, layout, times[..., place]) for place, layout in enumerate(layouts)]
    factors, ends = factors_of(profile), np.cumsum([each.shape[2] for each in works])
    work = np.concatenate(works, axis=2)
    weights = sum(factors[at] * work[BACKWARD, at] for at in (MATMUL, EXPERTS)) * _WEIGHTS
    forward, back, entries = micro_passes(_of_chunks(found, [each.shape[2] for each in works]), work, profile)
    return [
        Chunks(forward_s=forward[start:end], backward_s=back[start:end], weight_s=weights[start:end],
               account={name: value[start:end] for name, value in entries.items()})
        for start, end in zip([0, *ends[:-1]], ends, strict=True)
    ]  # fmt: skip


def _work_of(job: Job, layout: Layout, times: Array) -> Array:
    """Seconds [pass, column, chunk] of a layout's chunks from those of its blocks and ends [pass, column, group]."""
    import numpy as np  # noqa: PLC0415

    counts, again = (np.array(each).T for each in chunk_counts(job, layout))  # [group, chunk]
    times = np.ascontiguousarray(times)
    work: Array = times @ counts
    work[AGAIN] = times[FORWARD] @ again if layout.recompute == "full" else work[AGAIN] * (layout.recompute != "none")
    return work


def _of_chunks(found: Features, counts: Sequence[int]) -> Features:
    """Features of layouts as those of their chunks, so many of each."""
    import numpy as np  # noqa: PLC0415

    apart = found.take(np.repeat(np.arange(len(counts)), counts))
    return replace(apart, gather=apart.gather / apart.vpp, scatter=apart.scatter / apart.vpp)


def chunk_counts(job: Job, layout: Layout) -> tuple[list[list[int]], list[list[int]]]:
    """Of every chunk: blocks of each kind, and 1 where what is before or after all blocks is there; and of these what
    full recompute makes again.
    """
    sizes = chunk_sizes(job.parts.num_layers, layout.pp, layout.vpp)
    last = len(sizes) - 1
    held = [[*counts, int(place == 0), int(place == last)] for place, counts in enumerate(job.parts.counts(sizes))]
    return held, [[*counts, 0, 0] for counts in job.parts.counts(sizes, layout.recompute_layers)]
