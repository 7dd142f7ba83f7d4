"""What `suanli.layout` does: names and numbers as typed become a question for the planner."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suanli.api.links import read_fabric
from suanli.api.parts import (
    DTYPE_NAMES,
    as_asked,
    assumed_line,
    length_notes,
    read_device,
    read_model_of,
    read_stack,
    read_workload,
)
from suanli.api.request import MOST_GPUS, Request
from suanli.catalog.conventions import DEFAULT, find_convention
from suanli.catalog.curves import find_curves
from suanli.catalog.prices import find_price, price_sentence
from suanli.catalog.stacks import find_stack
from suanli.count import build_ledger
from suanli.errors import Fault, InputError, SuanliError, shown, unknown_name
from suanli.measure import find_peak
from suanli.nouns.arch import Arch
from suanli.nouns.hardware import Device
from suanli.nouns.plans import PlannedLayout
from suanli.nouns.profile import StackProfile
from suanli.nouns.result import Result
from suanli.nouns.stack import Stack
from suanli.nouns.workload import Workload
from suanli.plan.launch import TOOLS
from suanli.plan.layout import FLASH_KEEPS_NO_SCORES, Progress, Question
from suanli.plan.layout import layout as plan_layout
from suanli.plan.refine import MOST_PLAYED
from suanli.units import GIGA

_THOUSANDS = re.compile(r"\d{1,2}(,\d{3})+")  # 16,384 is one number; 512,1024 and 128,256 are two
MOST_SHOWN = 1000  # layouts of a ranking; several times as many are played out
DEFAULT_STACK = "megatron-core"
CALLED = {"batch": "global_batch"}  # what a step's workload calls the sequences that --global-batch gives
HOST, MUCH = ("launch", "fixed"), 0.3  # entries of the host's time, and the part of a step from which it is said
# Training dtypes and the catalogue's peak that a utilisation in them is of.
PEAK_OF = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}


def plan_layouts(
    model: Any,
    *,
    gpu: str | None = None,
    gpus: Any = None,
    global_batch: Any = None,
    seq: Any = None,
    pin: str | Mapping[str, Any] | None = None,
    dtype: str | None = None,
    stack: Any = None,
    fabric: str | None = None,
    top: Any = None,
    memory_limit: Any = None,
    why: Any = None,
    emit: str | None = None,
    progress: Progress | None = None,
) -> Result:
    """The plan as a Result. Raises InputError listing every fault."""
    request = Request()
    arch = read_model_of(request, model)
    device = read_device(request, gpu)
    if gpu is None:
        request.fault("missing_option", "a layout is for a device", "gpu", expected="--gpu h100-sxm")
    counts = read_gpus(request, gpus)
    batch = _needed(request, "global_batch", global_batch, "--global-batch 2048, sequences of a step")
    word = _dtype(request, dtype)
    most = _top(request, top)
    limit = _limit(request, memory_limit)
    if pin is not None:
        request.given["pin"] = dict(pin) if isinstance(pin, Mapping) else pin
    tool = _tool(request, emit)
    fixed = {"phase": "train", "batch": batch, "dtype": word}
    workload = read_workload(request, arch, {"seq": seq}, fixed, called=CALLED)
    profile = read_stack(request, stack, DEFAULT_STACK)
    links, curves, peak = _machine(request, arch, device, fabric, word)
    memory = limit if limit is not None or device is None else device.usable_bytes_per_torch_device
    if memory is None and device is not None and memory_limit is None:
        request.fault("missing_option", f"the memory of {device.short_id} is not known", "memory_limit",
                      expected="--memory-limit 80GB")  # fmt: skip
    places = request.attempt(lambda: read_why(why, most or 1))
    request.check()
    assert (
        arch is not None and device is not None and workload is not None and profile is not None and batch is not None
    )
    assert links is not None and curves is not None and peak is not None and memory is not None and most is not None
    bill = _price(device)[1]
    question = replace(
        question_of(arch, device, workload, counts, profile, pins=pin, links=links), limit_bytes=memory, top=most
    )
    plan = plan_layout(question, why=places or (), emit=tool, progress=progress)
    given = {**request.given, **({"fabric": fabric} if fabric else {}), **({"why": list(why)} if why else {})}
    return Result(
        kind="layout",
        inputs={"model": as_asked(model), **given, "assumed": request.assumed},
        convention=DEFAULT,
        result=plan,
        uncounted=(),
        sources=(
            *arch.sources, f"peak: {peak.source}", f"kernels: {curves.file.data}, {curves.file.date}",
            *(f"links: {each}" for each in links.sources),
            *(f"profile: {each}" for each in profile.sources),
        ),
        notes=(*assumed_line(request), *_notes(question, plan, bill), *length_notes(arch, workload, seq)),
        asked={"question": question},
    )  # fmt: skip


def question_of(
    arch: Arch, device: Device, workload: Workload, gpus: tuple[int, ...], profile: StackProfile, *,
    pins: Any = None, links: Any = None,
) -> Question:  # fmt: skip
    """The question for the planner, `workload.batch` being the global batch: the device's own memory as the limit, its
    first node's links unless others are given. Raises SuanliError for what the catalogue does not know.
    """
    curves, memory = find_curves(device), device.usable_bytes_per_torch_device
    return Question(
        arch=arch, workload=workload, gpus=gpus, global_batch=workload.batch, curves=curves,
        fabric=links or read_fabric(None, device), stack=find_stack(profile.shipped), profile=profile,
        labels=(f"{device.short_id} {workload.dtype}", "", ""), peak=find_peak(device, PEAK_OF[workload.dtype], None),
        limit_bytes=memory or 0, step_flops=_step_flops(arch, workload), pins=pins, price=_price(device)[0],
    )  # fmt: skip


def _machine(
    request: Request, arch: Arch | None, device: Device | None, fabric: str | None, dtype: str
) -> tuple[Any, Any, Any]:
    """Links, kernels and peak of the device; a fault for what is missing, and for a model that has no blocks."""
    if arch is not None and (arch.unit != "token" or not any(placed.block for placed in arch.leaves())):
        what = f"{arch.name} is no stack of blocks over tokens"
        request.fault("no_blocks", "the model cannot be laid out", "model", got=what, expected="a transformer")
    if device is None:
        return None, None, None
    links = request.attempt(lambda: read_fabric(fabric, device))
    curves = request.attempt(lambda: find_curves(device))
    peak = request.attempt(lambda: find_peak(device, PEAK_OF[dtype], None))
    if curves is not None and dtype not in curves.matmul_dtypes:
        known = ", ".join(each for each in PEAK_OF if each in curves.matmul_dtypes)
        what = f"no {dtype} products were measured on {device.short_id}"
        request.fault("unknown_dtype", what, "dtype", got=dtype, expected=f"one of {known}")
    return links, curves, peak


def _limit(request: Request, limit: Any) -> int | None:
    """Bytes of a GPU that may be used; none of them is a fault whatever its unit."""
    if str(limit).strip() != "0":
        found = request.quantity("memory_limit", limit, "memory")
        if found != 0:
            return None if found is None else int(found)
    request.fault("bad_memory_limit", "no memory to hold anything", "memory_limit", got=shown(limit),
                  expected="above 0, like 80GB")  # fmt: skip
    return None


def _top(request: Request, top: Any) -> int | None:
    found = request.whole("top", top, 5, low=1)
    if found is not None and found > MOST_SHOWN:
        request.fault("bad_top", "so many layouts are not listed", "top", got=shown(top),
                      expected=f"1 to {MOST_SHOWN:,}")  # fmt: skip
        return None
    return found


def _needed(request: Request, name: str, value: Any, example: str) -> int | None:
    if value is None:
        request.fault("missing_option", f"a layout needs its {name.replace('_', ' ')}", name, expected=example)
        return None
    return request.whole(name, value, low=1)


def read_gpus(request: Request, gpus: Any) -> tuple[int, ...]:
    """The numbers of GPUs asked about: one, or several as `512,1024`."""
    if gpus is None:
        request.fault("missing_option", "a layout needs its GPUs", "gpus", expected="--gpus 1024, or several: 512,1024")
        return ()
    parts = gpus.split(",") if isinstance(gpus, str) and not _THOUSANDS.fullmatch(gpus.strip()) else gpus
    parts = parts if isinstance(parts, list | tuple) else [parts]
    if not parts:
        request.fault("bad_gpus", "no number of GPUs", "gpus", got=shown(gpus), expected="one, or several: 512,1024")
    found = [request.whole("gpus", part, low=1, high=MOST_GPUS) for part in parts]
    request.given["gpus"] = gpus
    return tuple(sorted({each for each in found if each is not None}))


def _dtype(request: Request, dtype: str | None) -> str:
    word = request.word("dtype", dtype, "bf16")
    word = DTYPE_NAMES.get(word, word)
    if word not in PEAK_OF:
        hint = "Training dtypes: " + ", ".join(PEAK_OF) + "."
        request.errors.append(unknown_name("dtype", word, PEAK_OF, where="--dtype", hint=hint))
        return "bf16"
    return word


def _tool(request: Request, emit: str | None) -> str | None:
    if emit is None:
        return None
    word = request.word("emit", emit, "")
    if word not in TOOLS:
        hint = "Tools: " + ", ".join(TOOLS) + "."
        request.errors.append(unknown_name("tool", word, TOOLS, where="--emit", hint=hint))
    return word


def read_why(why: Any, top: int) -> tuple[Any, ...] | None:
    """Two layouts to compare: places from 1 to `top`, or pins. Raises InputError."""
    if why is None:
        return None
    parts = list(why) if isinstance(why, list | tuple) else str(why).split()
    if len(parts) != 2:
        raise InputError(Fault(code="bad_why", message="two layouts are compared", where="--why", got=shown(why),
                               expected="two places, like 1 2, or two pins, like tp=8 tp=4"))  # fmt: skip
    return tuple(_place(part, top) for part in parts)


def _place(part: Any, top: int) -> Any:
    if isinstance(part, Mapping) or "=" in str(part):
        return part
    if str(part).isdecimal() and 1 <= int(part) <= top:
        return int(part)
    raise InputError(Fault(code="bad_why", message="no such place", where="--why", got=shown(part),
                           expected=f"a place from 1 to {top} (--top), or pins like tp=8"))  # fmt: skip


def _step_flops(arch: Arch, workload: Workload) -> int:
    """Model FLOPs of one step, under the default convention."""
    return build_ledger(arch, workload, find_convention(DEFAULT)).model_flops


def _price(device: Device) -> tuple[float | None, str]:
    """USD of one GPU-hour as torch sees a GPU, and where from; None with the reason."""
    try:
        found = find_price(device)
    except SuanliError as problem:
        return None, f"cost: {problem}"
    return found.usd_per_gpu_hour / device.torch_devices_per_package, f"price: {price_sentence(found)}"


def _host_bound(best: PlannedLayout) -> list[str]:
    """That times of the host, not of kernels, make much of a step: of all entries they are known least."""
    share = sum(each.seconds for each in best.account if each.entry in HOST) / best.step_time_s
    if share < MUCH:
        return []
    return [f"{share:.0%} of the first layout's step are launches and what every step and micro-batch costs the host: "
            "for work this small they rule the prediction, and differ most from cluster to cluster"]  # fmt: skip


def _notes(question: Question, plan: Any, bill: str) -> tuple[str, ...]:
    found = [f"links: {question.fabric.name}", bill]
    found.append(_stack_note(question.stack))
    if question.stack.flash and question.stack.selective == "scores":
        found.append(FLASH_KEEPS_NO_SCORES)
    if question.curves.extrapolated:
        found.append(f"kernels: those of {question.curves.extrapolated}: {question.curves.note}")
    found += [f"beyond the runs the profile was fitted to: {each}" for each in plan.extrapolates]
    if not all(each.played for each in plan.layouts):
        found.append(f"played out: not where micro-batches × stages are above {MOST_PLAYED:,}; the closed form stands")
    found += _host_bound(plan.layouts[0])
    return (*found, _limit_note(question))


def _stack_note(stack: Stack) -> str:
    """What of a layout the stack can run, hence what was searched without pins."""
    zero, piped = (", ".join(map(str, each)) or "none" for each in (stack.zero, stack.pipeline_zero))
    can = [
        f"schedules {', '.join(stack.schedules)}",
        f"ZeRO {zero}" + (f", beside a pipeline {piped}" * (zero != piped)),
    ]
    lacks = [
        name for name, has in (("states shared in a node", stack.hybrid), ("recompute of some layers",
         stack.block_recompute)) if not has
    ]  # fmt: skip
    said = f"{stack.name} runs {'; '.join(can)}" + (f"; it lacks {', '.join(lacks)}" if lacks else "")
    more = ", and offload=yes" if stack.offloads else ""
    return f"{said}; what it lacks by --pin{more}"


def _limit_note(question: Question) -> str:
    """The memory limit, and where it is from where that is the device's own."""
    device, limit = question.curves.device, question.limit_bytes
    said = f"memory limit {limit / GIGA:,.4g} GB a GPU"
    if device.usable_memory_source and limit == device.usable_bytes_per_torch_device:
        return f"{said}, what a program can have of {device.short_id} ({device.usable_memory_source})"
    return said
