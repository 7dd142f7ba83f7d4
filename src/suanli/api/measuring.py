"""`suanli.mfu`."""

from __future__ import annotations

from typing import Any

from suanli.api.keeping import keeps_request
from suanli.api.parts import (
    as_asked,
    as_text,
    assumed_line,
    length_notes,
    read_convention,
    read_device,
    read_dtype,
    read_model_of,
    read_recompute,
    read_workload,
)
from suanli.api.request import MOST_GPUS, Request
from suanli.measure import Rate, find_peak
from suanli.measure import mfu as measure_mfu
from suanli.nouns.result import Result
from suanli.units import format_bytes


@keeps_request
def mfu(
    model: Any,
    *,
    gpu: str | None = None,
    gpus: Any = None,
    seq: Any = None,
    step_time: Any = None,
    global_batch: Any = None,
    tokens_per_second: Any = None,
    tflops_per_gpu: Any = None,
    dtype: str | None = None,
    peak: Any = None,
    recompute: str | None = None,
    convention: str | None = None,
    memory_used: Any = None,
    image: Any = None,
    frames: Any = None,
) -> Result:
    """MFU and HFU of a measured run. `mfu` is None with a reason where it would pass 100 %.

    >>> round(mfu("llama-3-8b", seq=8192, tokens_per_second=8000, gpu="h100-sxm").mfu, 4)
    0.4162
    """
    request = Request()
    arch = read_model_of(request, model, image, frames)
    rule = read_convention(request, convention)
    word = read_dtype(request, dtype)
    policy = read_recompute(request, recompute)
    count_gpus = request.whole("gpus", gpus, 1, low=1, high=MOST_GPUS)
    device = read_device(request, gpu)
    given_peak = request.quantity("peak", peak, "flop_per_s")
    rate = Rate(
        step_time=request.quantity("step_time", step_time, "duration", signed=True),
        global_batch=request.whole("global_batch", global_batch),
        tokens_per_second=request.quantity("tokens_per_second", tokens_per_second, "count", signed=True),
        tflops_per_gpu=request.quantity("tflops_per_gpu", as_text(tflops_per_gpu), "tflop_per_s", signed=True),
    )
    used = request.quantity("memory_used", memory_used, "memory")
    workload = read_workload(request, arch, {"seq": seq}, {"phase": "train"})
    request.check()
    request.attempt(rate.check)
    top = request.attempt(lambda: find_peak(device, word, given_peak))
    request.check()
    assert arch is not None and rule is not None and workload is not None and top is not None and count_gpus
    found = measure_mfu(
        arch, workload, rate, top, rule, gpus=count_gpus, device=device, recompute=policy,
        memory_used=None if used is None else int(used),
    )  # fmt: skip
    return Result(
        kind="mfu",
        inputs={"model": as_asked(model), **request.given, "assumed": request.assumed},
        convention=rule.name,
        result=found,
        sources=(*arch.sources, f"convention {rule.name}: {rule.source}", f"peak: {top.source}"),
        notes=(
            *assumed_line(request),
            *(device.notes if device and given_peak is None else ()),
            *arch.notes,
            *length_notes(arch, workload, seq),
            *_memory_notes(used, found.memory_bytes),
            *(("--global-batch changes nothing without --step-time",) if global_batch and step_time is None else ()),
        ),
        asked={"arch": arch},
    )


def _memory_notes(used: float | None, memory: int | None) -> tuple[str, ...]:
    """Why no part of the memory is told."""
    if used is None:
        return ()
    if memory is None:
        return ("memory utilisation: the memory of the device is not known",)
    if used > memory:
        return (f"memory utilisation: {format_bytes(used)} is more than the {format_bytes(memory)} of the device",)
    return ()
