"""The direction of every lever, on every stack that ships: no option's cost has the wrong sign.

One table of levers: a layout (or setting) and the one after the lever is pulled, which is never slower. Each is tried
on every shipped profile, on models of several sizes, on machines with and without links that sum in the switch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pytest

from suanli.catalog.curves import find_curves
from suanli.catalog.fabrics import node_fabric
from suanli.catalog.profiles import find_profile, stack_names
from suanli.nouns.grid import Grid
from suanli.nouns.layout import Layout
from suanli.nouns.profile import Profile, StackProfile
from suanli.plan.step_time import Job, account, features
from suanli.readers.model import read_model

LLAMA, GPT3, SMALL, MIXTURE = "llama-3.1-70b", "gpt3-175b", "gpt2", "mixtral-8x7b"
SEQ = {LLAMA: 8192, GPT3: 2048, SMALL: 1024, MIXTURE: 4096}
LARGE, EVERY = (LLAMA, GPT3, MIXTURE), (LLAMA, GPT3, SMALL, MIXTURE)  # products of GPT-2 are no larger than a tile
MACHINES = {"a100-80gb-sxm": "hgx-a100", "h100-sxm": "hgx-h100", "b200": "hgx-b200"}
KERNELS = ("matmul", "attention", "experts", "memory-bound", "recompute")
ROUNDING = 1e-9


@dataclass(frozen=True)
class Lever:
    """What is pulled, from where to where; which entries are looked at; on which models; at which batch."""

    name: str
    before: Layout
    after: Layout
    entries: tuple[str, ...] = ()  # of the account; none: the step
    models: tuple[str, ...] = EVERY
    batch: int = 512


def _levers() -> list[Lever]:
    found = []
    for tp, micro, again in ((2, 1, "none"), (4, 4, "full"), (8, 1, "full"), (8, 2, "selective")):
        plain = Layout(tp=tp, dp=4, micro_batch=micro, recompute=again)
        found += [
            Lever(f"sequence parallelism: {base.short}", base, replace(base, sp=True))
            for base in (plain, replace(plain, pp=2))
        ]
    for base in (Layout(dp=8), Layout(tp=8, dp=4, sp=True), Layout(tp=2, pp=4, dp=2), Layout(dp=8, zero=3)):
        none, some, full = (replace(base, recompute=word) for word in ("none", "selective", "full"))
        found += [Lever(f"selective for full: {base.short}", full, some, KERNELS),
                  Lever(f"none for selective: {base.short}", some, none, KERNELS),
                  Lever(f"none for full: {base.short}", full, none)]  # fmt: skip
    for base in (Layout(pp=4, dp=4), Layout(tp=4, pp=2, dp=2, sp=True), Layout(pp=4, dp=4, micro_batch=2)):
        more = replace(base, vpp=3, schedule="interleaved")
        found += [Lever(f"interleaving: {base.short}", base, more, ("bubble",)),
                  Lever(f"zero bubble: {base.short}", base, replace(base, schedule="zero-bubble"))]  # fmt: skip
    # one micro-batch, where gathers of ZeRO 3 have most to hide behind and the exchange of ZeRO 1 least; two; many
    for dp, micro, tp in ((256, 2, 1), (256, 1, 1), (8, 1, 1), (32, 4, 4)):
        for stage in (1, 2):
            sharded = Layout(dp=dp, micro_batch=micro, tp=tp, zero=3)
            found.append(Lever(f"ZeRO {stage} for 3: dp{dp} mb{micro} tp{tp}", sharded, replace(sharded, zero=stage)))
    away = Layout(dp=8, zero=1, offload=True)
    found.append(Lever("states on the device", away, replace(away, offload=False)))
    routed = Layout(dp=16, pp=2, ep=8, micro_batch=2)
    found.append(Lever("paired exchange", routed, replace(routed, schedule="dualpipe"), models=(MIXTURE,)))
    return found


LEVERS = _levers()
# Settings of the machine and the job: the same layouts before and after.
LAYOUTS = [
    Layout(dp=8), Layout(tp=8, dp=4, sp=True), Layout(tp=2, pp=2, dp=4, vpp=2, schedule="interleaved"),
    Layout(dp=32, zero=3), Layout(dp=32, zero=1), Layout(dp=16, cp=2), Layout(tp=16, dp=2, sp=True),
    Layout(pp=2, dp=16, ep=8, micro_batch=2),
]  # fmt: skip
ONE_STAGE = [layout for layout in LAYOUTS if layout.pp == 1 and layout.tp < 16]


@dataclass(frozen=True)
class Setting:
    """What is changed of a job or of the numbers; on which layouts; the step after is never slower."""

    name: str
    change: Callable[[Job, Profile], tuple[Job, Profile]]
    layouts: list[Layout] = field(default_factory=lambda: LAYOUTS)
    models: tuple[str, ...] = LARGE
    needs_fp8: bool = False


def _links(name: str) -> Callable[[Job, Profile], tuple[Job, Profile]]:
    return lambda job, numbers: (
        replace(job, fabric=replace(job.fabric, **{name: 2 * getattr(job.fabric, name)})), numbers,
    )  # fmt: skip


def _trait(**values: Any) -> Callable[[Job, Profile], tuple[Job, Profile]]:
    return lambda job, numbers: (replace(job, traits=replace(job.traits, **values)), numbers)


def _less(name: str) -> Callable[[Job, Profile], tuple[Job, Profile]]:
    return lambda job, numbers: (job, replace(numbers, **{name: 0.7 * getattr(numbers, name)}))


SETTINGS = [
    Setting("faster links in a node", _links("link_bytes_per_s"), models=EVERY),
    Setting("faster network", _links("nics_bytes_per_s"), models=EVERY),
    Setting("8-bit products", lambda job, numbers: (replace(job, dtype="fp8"), numbers), ONE_STAGE, needs_fp8=True),
    Setting("16-bit gradients", _trait(gradient_bytes=2), models=EVERY),
    Setting("fused attention", _trait(fused_attention=True)),
    Setting("fused loss", _trait(fused_loss=True), ONE_STAGE),
    Setting("overlapped data parallelism", _trait(overlaps_data=True)),
    *(Setting(f"less {each.name}", _less(each.name), models=EVERY) for each in fields(Profile)),
]  # fmt: skip


def job_of(model: str, gpu: str, stack: StackProfile) -> Job:
    return Job(arch=arch_of(model), seq=SEQ[model], dtype="bf16", curves=find_curves(gpu),
               fabric=node_fabric(MACHINES[gpu]), traits=stack.traits)  # fmt: skip


@functools.cache
def arch_of(model: str) -> Any:
    return read_model(model)


def entries_of(job: Job, numbers: Profile, layouts: list[Layout], batch: float) -> dict[str, Any]:
    found = account(features(job, Grid.of(layouts), batch), numbers)
    return {**found, "step": sum(found.values())}


def slower(stack: str, gpu: str) -> list[str]:
    """Levers that make something slower on a stack and machine, in words."""
    profile, found = find_profile(stack), []
    numbers = profile.at(f"{gpu} bf16", "", "")
    for model in EVERY:
        chosen = [lever for lever in LEVERS if model in lever.models]
        layouts = [layout for lever in chosen for layout in (lever.before, lever.after)]
        times = entries_of(job_of(model, gpu, profile), numbers, layouts, 512.0)
        for place, lever in enumerate(chosen):
            looked = [np.asarray(times[name]) for name in lever.entries or ("step",)]
            before, after = (sum(float(each[2 * place + side]) for each in looked) for side in (0, 1))
            if after > before * (1 + ROUNDING):
                found.append(f"{lever.name} on {model}: {before:.6g} s → {after:.6g} s")
    return found


def slower_settings(stack: str, gpu: str) -> list[str]:
    """The same for settings of the job and the machine."""
    profile, found = find_profile(stack), []
    numbers = profile.at(f"{gpu} bf16", "", "")
    for model in EVERY:
        job = job_of(model, gpu, profile)
        before = entries_of(job, numbers, LAYOUTS, 512.0)["step"]
        for setting in SETTINGS:
            if model not in setting.models or (setting.needs_fp8 and "fp8" not in job.curves.matmul_dtypes):
                continue
            after = entries_of(*setting.change(job, numbers), LAYOUTS, 512.0)["step"]
            found += [
                f"{setting.name} on {model}, {layout.short}: {old:.6g} s → {new:.6g} s"
                for layout, old, new in zip(LAYOUTS, before, after, strict=True)
                if layout in setting.layouts and new > old * (1 + ROUNDING)
            ]
    return found


def own_stacks() -> list[str]:
    """Stacks of numbers of their own; those that take another's numbers share all but facts with it."""
    return [name for name in stack_names() if find_profile(name).rows]


@pytest.mark.parametrize("gpu", MACHINES)
@pytest.mark.parametrize("stack", stack_names())
def test_no_lever_of_a_layout_pulls_the_wrong_way(stack: str, gpu: str) -> None:
    assert slower(stack, gpu) == []


@pytest.mark.parametrize("gpu", ["a100-80gb-sxm", "h100-sxm"])
@pytest.mark.parametrize("stack", own_stacks())
def test_no_setting_of_a_machine_pulls_the_wrong_way(stack: str, gpu: str) -> None:
    assert slower_settings(stack, gpu) == []


def moved(stack: str) -> set[str]:
    """Levers that make something faster on some model."""
    profile, gpu = find_profile(stack), "a100-80gb-sxm"
    layouts, found = [layout for lever in LEVERS for layout in (lever.before, lever.after)], set()
    for model in EVERY:
        times = entries_of(job_of(model, gpu, profile), profile.at(f"{gpu} bf16"), layouts, 512.0)
        for place, lever in enumerate(LEVERS):
            looked = sum(np.asarray(times[name]) for name in lever.entries or ("step",))
            if looked[2 * place + 1] < looked[2 * place] * (1 - ROUNDING):
                found.add(lever.name)
    return found


def test_levers_do_something() -> None:
    """A lever that changes nothing anywhere would pass: each moves its entries on one of two stacks, of which one keeps
    scores that can be made again, and the other hides gathers behind kernels."""
    assert {lever.name for lever in LEVERS} == moved("megatron-2021") | moved("composer-fsdp")


def test_the_search_for_wrong_signs_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lever put the wrong way round is found on every model."""
    lever = Lever("recompute", Layout(dp=8), Layout(dp=8, recompute="full"))
    monkeypatch.setitem(globals(), "LEVERS", [lever])
    assert len(slower("nemo", "h100-sxm")) == len(EVERY)
