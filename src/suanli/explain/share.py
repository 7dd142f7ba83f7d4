"""`attributed 92 % of matmul time`: how much of the time of products has FLOPs, and what to record to get the rest."""

from __future__ import annotations

import numpy as np

from suanli.explain import reasons
from suanli.explain.ops import attention, convolutions, custom
from suanli.explain.ops.call import NO_SHAPES
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.roofline import Share
from suanli.nouns.trace import Trace
from suanli.units import NANO, format_percent, format_seconds

_ENOUGH = 0.95  # of the time of products: above it nothing needs to be switched on
_WORTH = 0.01  # a reason that takes less of that time is not worth a sentence

SHAPES = (
    "Record shapes: torch.profiler.profile(record_shapes=True); "
    "for nsys, torch.autograd.profiler.emit_nvtx(record_shapes=True)."
)
EAGER = "Profile one step without graph replay (vLLM and SGLang: eager mode; torch.compile: mode without cudagraphs)."
AT_REST = "Let the device come to rest before the window opens: synchronise before the profiler's first active step."
BOTH = "Record the host too: activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]; for nsys, --trace=cuda,nvtx."
COMPILED = "This trace hides the operators inside compiled code; a current torch records them with their shapes."
XLA = "Give the .xplane.pb, whose compiled modules have the shapes; or --model, so that FLOPs come from the model."
BUFFERS = (
    "Profile without command buffers, which hide instructions: XLA_FLAGS=--xla_gpu_enable_command_buffer= (empty)."
)
LENGTHS = "Lengths of packed sequences stand in no trace: give --model and --seq, so that FLOPs come from the model."
VALUES = (
    "Values of scalar arguments are missing (strides, is_causal): a torch from 2.1 on records them with the shapes."
)

_ADVICE: tuple[tuple[str, str], ...] = (
    (NO_SHAPES, SHAPES),
    (reasons.GRAPH, EAGER),
    (reasons.XLA, XLA),
    (reasons.NO_INSTRUCTION, BUFFERS),
    (reasons.BEFORE, AT_REST),
    (reasons.NO_LAUNCHES, BOTH),
    (reasons.NO_OPERATORS, BOTH),
    (f"{reasons.WITHOUT_FORMULA}CompiledFunction", COMPILED),
    (attention.LENGTHS, LENGTHS),
    (custom.ROUTED, LENGTHS),
    (attention.NO_MASK_FLAG, VALUES),
    (convolutions.NO_STRIDES, VALUES),
)


def share(trace: Trace, found: Attribution) -> Share:
    """The share of the time of products that has FLOPs. Times of kernels that overlap add up."""
    lasted = (trace.work.end_ns - trace.work.start_ns) * NANO
    products = found.work_class == WorkClass.MATMUL
    whole = float(np.sum(lasted[products]))
    known = float(np.sum(lasted[products & found.flops_known]))
    fraction = known / whole if whole else None
    why = tuple(found.reasons.items())
    return Share(
        matmul_s=whole, known_s=known, fraction=fraction, reasons=why, advice=_advice(why, whole, fraction),
        message=_message(fraction, why),
    )  # fmt: skip


def _advice(why: tuple[tuple[str, float], ...], whole: float, fraction: float | None) -> tuple[str, ...]:
    """One sentence for each thing to change, the one that returns most first; none where enough is known."""
    if fraction is None or fraction >= _ENOUGH:
        return ()
    heavy = [reason for reason, seconds in why if seconds >= _WORTH * whole]
    return tuple(dict.fromkeys(advice for reason in heavy for advice in _cures(reason)))


def _cures(reason: str) -> list[str]:
    return [advice for start, advice in _ADVICE if reason.startswith(start)]


def cured_s(found: Share, advice: str) -> float:
    """Seconds of products whose reason the advice is for."""
    return sum(seconds for reason, seconds in found.reasons if advice in _cures(reason))


def _message(fraction: float | None, why: tuple[tuple[str, float], ...]) -> str:
    if fraction is None:
        return "no products in this trace"
    text = f"attributed {format_percent(fraction, 1)} of matmul time"
    if not why:
        return text
    reason, seconds = why[0]
    return f"{text}; the rest above all: {reason} ({format_seconds(seconds)})"
