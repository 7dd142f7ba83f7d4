"""Step times of measured runs and of plans: observations to data, data to predictions, one layout to an estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from suanli.catalog.curves import find_curves
from suanli.catalog.devices import find_device
from suanli.catalog.stacks import find_stack
from suanli.nouns.grid import Grid
from suanli.nouns.layers import Experts
from suanli.nouns.layout import Layout
from suanli.nouns.profile import Profile, StackProfile, Traits
from suanli.nouns.step import Entry, StepEstimate
from suanli.nouns.workload import Workload
from suanli.plan.calibrate import Data, join_features
from suanli.plan.memory import memory_estimate
from suanli.plan.observed import Observation
from suanli.plan.refine import Step, best_step
from suanli.plan.step_time import Features, Job, account, features

Array = Any


def job_of(observation: Observation, traits: Traits) -> Job:
    """What a run trained, on what."""
    return Job(
        arch=observation.arch, seq=observation.seq, dtype=observation.dtype, curves=find_curves(observation.device),
        fabric=observation.fabric, traits=traits,
    )  # fmt: skip


def data_of(observations: Sequence[Observation], traits: Traits, prior: Profile) -> Data:
    """Features of runs of one stack, runs of one model on one device together; where a run has several layouts, of
    the one that fits and is fastest by `prior`.
    """
    import numpy as np  # noqa: PLC0415

    groups: dict[Any, list[tuple[int, Layout]]] = {}
    for place, each in enumerate(observations):
        key = (id(each.arch), each.seq, each.device, each.dtype, id(each.fabric))
        groups.setdefault(key, []).extend((place, layout) for layout in fitting(each))
    parts, rows = [], []
    for held in groups.values():
        batches = np.array([float(observations[place].global_batch) for place, _ in held])
        job = job_of(observations[held[0][0]], traits)
        parts.append(features(job, Grid.of([layout for _, layout in held]), batches))
        rows += [place for place, _ in held]
    joined, order = join_features(parts), np.array(rows)
    seconds = step_times(joined, prior)
    fastest = [min(np.flatnonzero(order == place), key=seconds.__getitem__) for place in range(len(observations))]
    return Data(
        joined.take(np.array(fastest)), np.array([each.step_s for each in observations]),
        tuple(each.labels for each in observations), np.ones(len(observations)),
    )  # fmt: skip


def settled(run: Observation, traits: Traits, prior: Profile) -> Observation:
    """The run with one layout: where it may have had several, the one that fits and is fastest by `prior`."""
    held = fitting(run)
    if len(held) == 1:
        return replace(run, layouts=held)
    seconds = step_times(features(job_of(run, traits), Grid.of(held), float(run.global_batch)), prior)
    return replace(run, layouts=(held[int(seconds.argmin())],))


def fitting(run: Observation) -> tuple[Layout, ...]:
    """Of a run's possible layouts those that fit its device; the one that needs least where none does."""
    if len(run.layouts) == 1:
        return run.layouts
    workload = Workload(phase="train", seq=run.seq)
    stack, capacity = find_stack(run.stack), find_device(run.device).usable_bytes_per_torch_device
    estimates = [
        memory_estimate(run.arch, workload, layout, stack, global_batch=run.global_batch, capacity=capacity)
        for layout in run.layouts
    ]
    held = tuple(layout for layout, found in zip(run.layouts, estimates, strict=True) if found.fits)
    least = min(range(len(estimates)), key=lambda place: estimates[place].total)
    return held or (run.layouts[least],)


def step_times(found: Features, profile: Profile) -> Array:
    """Seconds of a step for every layout of a grid's features."""
    return sum(account(found, profile).values())


def estimate(
    job: Job, layout: Layout, global_batch: int, stack: StackProfile, labels: Sequence[str], flops: float, peak: float,
    step: Step | None = None,
) -> StepEstimate:  # fmt: skip
    """One layout explained, its pipeline played out where that is not too long: `flops` the model's of one step, `peak`
    FLOP/s of one GPU at the job's dtype; `step` where it is known already.
    """
    layout.micro_batches(global_batch)
    step = step or best_step(job, stack.at(*labels), layout, global_batch)
    routed = any(isinstance(placed.layer, Experts) for placed in job.arch.leaves())
    wide = math.exp(stack.routed_half_width if routed else stack.half_width)
    entries = tuple(Entry(name, seconds) for name, seconds in step.account.items())
    beyond = (*_extrapolates(stack, labels, routed), *_untold(stack, entries, step.seconds))
    return StepEstimate(
        layout=layout, step_time_s=step.seconds, step_time_interval_s=(step.seconds / wide, step.seconds * wide),
        account=entries, played=step.played is not None, closed_form_step_time_s=step.closed_s,
        mfu=flops / (step.seconds * peak * layout.gpus), stack=stack.name,
        tokens_per_second_per_gpu=global_batch * job.seq / step.seconds / layout.gpus,
        extrapolates=beyond,
    )  # fmt: skip


def _extrapolates(stack: StackProfile, labels: Sequence[str], routed: bool) -> tuple[str, ...]:
    """In what the estimate goes beyond the runs that the stack was fitted to."""
    if not stack.rows:
        return (f"no run of {stack.name} was seen",)
    device, found = labels[0] if labels else "", []
    if device not in stack.devices:
        found.append(f"no run of {stack.name} on {device} was seen, only on {', '.join(stack.devices)}")
    if routed and not stack.routed_rows:
        found.append(f"no run of {stack.name} with routed experts was seen")
    return tuple(found)


# What of an account a number makes longer or shorter, of numbers that own runs may not tell.
_ENTRY_OF = {
    "attention": "attention", "experts": "experts", "tensor_exposed": "tensor parallel",
    "context_exposed": "context parallel", "expert_exposed": "expert parallel", "send_exposed": "sends",
    "data_exposed": "data parallel", "gather": "weight gathers", "optimizer": "optimizer",
}  # fmt: skip
_NOTICED = 0.01  # of the step: what is smaller is not told


def _untold(stack: StackProfile, entries: Sequence[Entry], seconds: float) -> Iterator[str]:
    """Entries of a calibrated stack that none of its own runs tells."""
    found = {each.entry: each.seconds for each in entries}
    named = [_ENTRY_OF[name] for name in stack.untold if name in _ENTRY_OF]
    large = [name for name in named if found.get(name, 0.0) > _NOTICED * seconds]
    if large:
        yield f"no own run of {stack.name} tells {', '.join(large)}: as in {stack.base}"
