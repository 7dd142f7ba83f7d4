"""The utilisation of a planned run, predicted by the planner of layouts; and the GPUs that meet a deadline."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from suanli.api.layouts import DEFAULT_STACK, PEAK_OF, question_of
from suanli.catalog.profiles import find_profile
from suanli.errors import Fault, InputError, SuanliError
from suanli.formulas import running
from suanli.nouns.arch import Arch
from suanli.nouns.convention import Convention
from suanli.nouns.hardware import Device
from suanli.nouns.plans import PlannedLayout
from suanli.nouns.workload import Workload
from suanli.plan.layout import Question, fastest_layout
from suanli.plan.train import run_flops
from suanli.units import format_seconds

MOST_GPUS = 1 << 18
ANSWERS = ("no_gpus", "no_layout", "nothing_fits")  # faults by which the planner says that the run cannot be
PRIMES = (2, 3, 5)  # machines come in multiples of these


def is_answer(problem: SuanliError) -> bool:
    """Whether the planner looked and found nothing, rather than lacking what it needs to look."""
    return all(fault.code in ANSWERS for fault in problem.faults)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """A predicted utilisation under a convention, and the layout it is of."""

    mfu: float
    interval: tuple[float, float]
    gpus: int
    layout: PlannedLayout
    sentence: str


def forecast_run(
    arch: Arch,
    device: Device,
    workload: Workload,
    rule: Convention,
    *,
    global_batch: int,
    recompute: str | None,
    gpus: int | None,
    steps: float,
    seconds: float | None,
) -> Forecast:
    """The run on `gpus`, or on the fewest that do `steps` steps in `seconds`.

    Raises SuanliError where the planner has no curves or links for the device, or the model no blocks; and, by
    `is_answer`, where no layout fits or no number of GPUs is enough.
    """
    if workload.dtype not in PEAK_OF:
        raise InputError(Fault(code="unknown_dtype", message=f"step times in {workload.dtype} are not predicted"))
    if arch.unit != "token" or not any(placed.block for placed in arch.leaves()):
        raise InputError(Fault(code="no_blocks", message=f"{arch.name} is no stack of blocks over tokens"))
    pins = {"recompute": recompute} if recompute else None
    plain = replace(workload, batch=global_batch, recompute="none")
    question = question_of(arch, device, plain, (gpus or 1,), find_profile(DEFAULT_STACK), pins=pins)
    best = fastest_layout(question) if gpus is not None else fewest_gpus(question, steps, seconds or math.inf)
    found = replace(workload, batch=global_batch, recompute=best.recompute)
    flops = run_flops(arch, found, rule, global_batch * workload.seq, None).model
    mfu = [
        running.utilisation(flops / (each * best.gpus), question.peak.flop_per_s)
        for each in (best.step_time_s, *reversed(best.step_time_interval_s))
    ]
    low, high = best.step_time_interval_s
    sentence = (
        f"predicted with the layout {best.short} of stack {question.profile.name}: "
        f"{format_seconds(best.step_time_s)} a step of {global_batch:,} sequences "
        f"({format_seconds(low)} to {format_seconds(high)}, 80 %)"
    )
    return Forecast(mfu=mfu[0], interval=(mfu[1], mfu[2]), gpus=best.gpus, layout=best, sentence=sentence)


def sizes(per_node: int, least: float) -> list[int]:
    """Numbers of GPUs that machines come in, from `least` on: whole nodes times powers of 2, 3 and 5."""
    found = {per_node}
    for prime in PRIMES:
        for each in sorted(found):
            power = each * prime
            while power <= MOST_GPUS:
                found.add(power)
                power *= prime
    return sorted(each for each in found if each >= least)


def fewest_gpus(question: Question, steps: float, seconds: float) -> PlannedLayout:
    """The best layout on the fewest GPUs that do the steps in time. Raises InputError where none do.

    Numbers are tried in ascending order, from the fewest that perfect use of the peak would take.
    """
    per_node = question.fabric.gpus_per_node
    ideal = steps * question.step_flops / question.peak.flop_per_s / seconds
    most = question.global_batch * per_node * question.space.cuts.layers  # every sequence on a replica of its own
    for gpus in sizes(per_node, ideal):
        if gpus > most:
            break
        try:
            best = fastest_layout(replace(question, gpus=(gpus,)))
        except SuanliError as problem:
            if is_answer(problem):
                continue  # too few to hold the model, or a number that divides nothing
            raise
        if steps * best.step_time_s <= seconds:
            return best
    raise InputError(
        Fault(
            code="no_gpus",
            message="no number of GPUs meets the deadline at this batch",
            where="--deadline",
            got=f"{steps:,.0f} steps of {question.global_batch:,} sequences in {format_seconds(seconds)}",
            expected="a later deadline, or a larger --global-batch",
        )
    )
