"""What the model needs for the steps of a trace, checked against what its kernels did."""

from __future__ import annotations

from suanli.nouns.roofline import UsefulCheck
from suanli.units import format_flops, format_percent

_TOLERANCE = 0.02  # of the model's FLOPs: attention's scores computed again, vectors that one side leaves out
_ENOUGH = 0.98  # of the time of products: with less, a sum of kernels says nothing of the whole


def check(
    step_flops: float,
    done: float,
    again: float,
    fraction: float | None,
    *,
    steps: int = 1,
    ranks: int = 1,
    devices: int = 1,
) -> UsefulCheck:
    """The model's FLOPs of `steps` steps on `devices` of the `ranks` that share them, against the kernels of these.

    `steps` counts a step on each device as one.
    `step_flops` are the model's for one step under its own convention; `done` are those of the kernels of these steps
    without recomputation, `again` those of recomputation, `fraction` the part of matmul time that is attributed.
    Kernels are counted as executed, so that an attention backward that computes its scores again exceeds the model by a
    fifth of itself.
    """
    assert steps > 0 and ranks > 0, "steps and ranks are counts"
    useful = step_flops * steps / ranks
    ratio = done / useful if useful else None
    agrees = _agrees(ratio, fraction)
    return UsefulCheck(
        useful_flops=useful, attributed_flops=done, recompute_flops=again, ratio=ratio, agrees=agrees,
        message=_message(useful, done, ratio, agrees, fraction, _of(steps, ranks, devices)),
    )  # fmt: skip


def _agrees(ratio: float | None, fraction: float | None) -> bool | None:
    """None where the trace cannot tell: too little known, unless even that is more than the model needs."""
    if ratio is None or fraction is None:
        return None
    if ratio > 1 + _TOLERANCE:
        return False
    return None if fraction < _ENOUGH else ratio >= 1 - _TOLERANCE


def _message(
    useful: float, done: float, ratio: float | None, agrees: bool | None, fraction: float | None, of: str
) -> str:
    if ratio is None or fraction is None:
        return "no FLOPs to compare: " + ("the model needs none" if ratio is None else "the trace has no products")
    did = f"the kernels did {format_flops(done)} without recomputation ({format_percent(ratio, 1)})"
    head = f"the model needs {format_flops(useful)} {of}, {did}"
    if agrees:
        return f"{head}: they agree"
    if agrees is None:
        return f"{head}, a lower bound: {format_percent(fraction, 1)} of matmul time is attributed"
    if ratio > 1:
        return f"{head}: more than the model needs. Check --seq, --batch and the steps, or look for work done twice"
    return f"{head}: less than the model needs. Check --seq, --batch and how many devices share a step"


def _of(steps: int, ranks: int, devices: int) -> str:
    each = -(-steps // devices)
    of = f"for {each} step{'s' * (each > 1)}"
    if ranks == 1:
        return of
    return f"{of} on {'one' if devices == 1 else devices} of {ranks} devices"
