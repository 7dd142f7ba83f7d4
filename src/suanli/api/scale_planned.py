"""The planner's own communication model as one more law of scaling: its step at every size of a series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from suanli.api.layouts import DEFAULT_STACK, PEAK_OF, question_of
from suanli.api.links import read_fabric
from suanli.api.parts import DTYPE_NAMES, read_device, read_model_of, read_stack, read_workload
from suanli.api.request import Request
from suanli.api.scaling import PLANNED
from suanli.errors import SuanliError, unknown_name
from suanli.nouns.arch import Arch
from suanli.nouns.hardware import Device
from suanli.nouns.profile import StackProfile
from suanli.nouns.scaling import STRONG, WEAK, PlannedSize, Planner, Series
from suanli.nouns.workload import Workload, option
from suanli.plan.layout import ROOMY, Question, fastest_layout
from suanli.plan.pins import read_pins
from suanli.plan.scale import kind_of

NO_BATCH = "the global batch of a size is not known: a column global_batch, or --global-batch"
NO_LAW = "the global batch is neither fixed nor grows with the GPUs: what it is at a larger size is not known"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is the same at every size."""

    arch: Arch
    device: Device
    workload: Workload
    stack: StackProfile
    pins: Any
    links: Any

    def at(self, gpus: int, batch: int) -> Question:
        """The question that `suanli layout` would ask at one size."""
        work = replace(self.workload, batch=batch)
        return question_of(self.arch, self.device, work, (gpus,), self.stack, pins=self.pins, links=self.links)

    def plan(self, series: Series, more: Sequence[int]) -> Planner:
        """The planner's step at every measured size and at those projected to; or why it cannot be used.

        Raises InputError for pins that cannot be at the largest measured size.
        """
        last = series.sizes[-1]
        read_pins(self.pins, self.at(last.gpus, last.global_batch or last.gpus).space)
        return _plan_sizes(self, series, more)


def read_asked(request: Request, model: Any, typed: dict[str, Any]) -> Asked | None:
    """What the planner is asked; None where no model is given, or with faults."""
    if model is None:
        given = [option(name) for name in PLANNED if typed[name] is not None]
        if given:
            request.fault("missing_option", f"{' and '.join(given)} without a model", "model",
                          expected="--model llama-3.1-70b")  # fmt: skip
        return None
    if typed["gpu"] is None:
        request.fault("missing_option", "a planned step is of a device", "gpu", expected="--gpu h100-sxm")
    arch = read_model_of(request, model)
    device = read_device(request, typed["gpu"])
    dtype = request.word("dtype", typed["dtype"], "bf16")
    dtype = DTYPE_NAMES.get(dtype, dtype)
    if dtype not in PEAK_OF:
        hint = "Training dtypes: " + ", ".join(PEAK_OF) + "."
        request.errors.append(unknown_name("dtype", dtype, PEAK_OF, where="--dtype", hint=hint))
        dtype = "bf16"
    stack = read_stack(request, typed["stack"], DEFAULT_STACK)
    workload = read_workload(request, arch, {"seq": typed["seq"]}, {"phase": "train", "batch": 1, "dtype": dtype})
    if arch is None or device is None or workload is None or stack is None:
        return None
    asked = request.attempt(lambda: Asked(arch=arch, device=device, workload=workload, stack=stack, pins=typed["pin"],
                                          links=read_fabric(typed["fabric"], device)))  # fmt: skip
    if asked is not None:
        request.attempt(lambda: asked.at(1, 1))  # a stack or a device that the catalogue does not know
    return asked


def _plan_sizes(asked: Asked, series: Series, more: Sequence[int]) -> Planner:
    """The planner's step at every measured size and at those projected to; or why it cannot be used."""
    batches = _batches(series, more)
    if isinstance(batches, str):
        return Planner(sizes=(), reason=batches)
    if asked.arch.unit != "token" or not any(placed.block for placed in asked.arch.leaves()):
        return Planner(sizes=(), reason=f"{asked.arch.name} is no stack of blocks over tokens")
    found = []
    for gpus, batch in batches.items():
        try:
            found.append(_planned(asked.at(gpus, batch)))
        except SuanliError as problem:
            return Planner(sizes=(), reason=f"at {gpus:,} GPUs: {problem}")
    return Planner(sizes=tuple(found))


def _planned(question: Question) -> PlannedSize:
    """One size by the planner; where by its books nothing fits, as if memory were no limit, for the run was made.

    Raises SuanliError where no layout is legal.
    """
    try:
        best, over = fastest_layout(question), ""
    except SuanliError as problem:
        if any(fault.code != "nothing_fits" for fault in problem.faults):
            raise
        best, over = fastest_layout(replace(question, limit_bytes=ROOMY)), ", over the memory by the planner's books"
    return PlannedSize(gpus=best.gpus, global_batch=question.global_batch, layout=best.short + over,
                       step_time_s=best.step_time_s, mfu=best.mfu,
                       tokens_per_second_per_gpu=best.tokens_per_second_per_gpu)  # fmt: skip


def _batches(series: Series, more: Sequence[int]) -> dict[int, int] | str:
    """The global batch at every size, or why it is not known: strong scaling keeps it, weak scaling a GPU's part."""
    known = {size.gpus: size.global_batch for size in series.sizes}
    if any(batch is None for batch in known.values()):
        return NO_BATCH
    batches = {gpus: batch for gpus, batch in known.items() if batch is not None}
    kind, last = kind_of(series), series.sizes[-1].gpus
    if more and kind not in (STRONG, WEAK):
        return NO_LAW
    for gpus in more:
        batches[gpus] = batches[last] if kind == STRONG else max(round(batches[last] / last * gpus), 1)
    return dict(sorted(batches.items()))
