"""The step of one layout with its pipeline played out: each chunk with its own time, sends, what comes after."""

from __future__ import annotations

from typing import Any

from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout, chunk_sizes
from suanli.nouns.profile import Profile
from suanli.nouns.workload import RECOMPUTE
from suanli.plan.columns import BACKWARD, EXPERTS, MATMUL
from suanli.plan.pipeline_events import Played, StageTimes, play
from suanli.plan.step_time import Job, account, beside, block_times, factors_of, features
from suanli.plan.time_grid import by_policy, passes_of, summed

_WEIGHTS = 0.5  # of a product's backward pass, the gradient of its weight: one of two products of equal operations
MOST_PLAYED = 10_000  # micro-batches × stages: above, the ends no longer matter and playing would take minutes
_AFTER = ("data parallel", "optimizer", "fixed")  # entries that come once, after the last pass


def played_step(job: Job, profile: Profile, layout: Layout, global_batch: int) -> tuple[float, Played]:
    """Seconds of a step with the pipeline played out, and how it was played."""
    grid = Grid.of([layout])
    found = features(job, grid, float(global_batch))
    entries = {name: float(_one(value)) for name, value in account(found, profile).items()}
    send = float(_one(found.send))
    steady = send * profile.send_exposed  # keeps the rank busy; the rest of a send only makes the next stage wait
    gathers = float(_one(found.gather)) / layout.vpp, float(_one(found.scatter)) / layout.vpp
    stages = [
        StageTimes(forward_s=each.forward_s + steady, backward_s=each.backward_s + steady, weight_s=each.weight_s)
        for each in chunk_times(job, profile, layout, gathers)
    ]
    played = play(
        stages, pp=layout.pp, micro_batches=layout.micro_batches(global_batch), schedule=layout.schedule,
        send_s=send - steady,
    )  # fmt: skip
    return played.span_s + sum(entries[name] for name in _AFTER), played


def too_long_to_play(layout: Layout, global_batch: int) -> bool:
    """Whether a pipeline has so many passes that the closed form stands for it."""
    return layout.micro_batches(global_batch) * layout.pp * layout.vpp > MOST_PLAYED


def _one(value: Any) -> Any:
    """The value of the only layout: an array of one, or a number."""
    return value[0] if getattr(value, "shape", ()) else value


def chunk_times(
    job: Job, profile: Profile, layout: Layout, gathers: tuple[float, float] = (0.0, 0.0)
) -> list[StageTimes]:
    """Seconds of one micro-batch in every chunk, in the order of the model; `gathers` are those of a chunk's weights
    and the scatter of its gradients (ZeRO 3), which run beside the passes.
    """
    import numpy as np  # noqa: PLC0415

    times = block_times(job, Grid.of([layout]))
    sums = by_policy(summed(times, profile))[RECOMPUTE.index(layout.recompute), :, :, 0]
    factors = factors_of(profile)
    weights = _WEIGHTS * np.array(
        [sum(factors[at] * each[BACKWARD, at, 0] for at in (MATMUL, EXPERTS)) for each in times]
    )
    found = []
    paired = int(layout.schedule == "dualpipe")
    for counts in chunk_counts(job, layout):
        forward, behind = passes_of(counts @ sums, profile, paired)
        found.append(
            StageTimes(
                forward_s=float(beside(forward, gathers[0] * profile.gather, profile)),
                backward_s=float(beside(behind, sum(gathers) * profile.gather, profile)),
                weight_s=float(counts @ weights),
            )
        )
    return found


def chunk_counts(job: Job, layout: Layout) -> list[Any]:
    """Blocks of each kind, and 1 where what is before or after all blocks is there, of every chunk."""
    import numpy as np  # noqa: PLC0415

    chunks = layout.pp * layout.vpp
    held = job.parts.counts(chunk_sizes(job.parts.num_layers, layout.pp, layout.vpp))
    return [
        np.array([*counts, float(place == 0), float(place == chunks - 1)], dtype=float)
        for place, counts in enumerate(held)
    ]
