"""The model's FLOPs against a trace: whether the kernels did them, and the MFU of a step by either."""

from __future__ import annotations

from dataclasses import dataclass

from suanli.explain.compare import MEAN_STEP, WINDOW
from suanli.explain.useful import check
from suanli.nouns.explained import Explained, ModelUse


@dataclass(frozen=True, kw_only=True)
class ModelAsked:
    """A model with the step it does. `step_flops` are those of one step on all the `gpus` that share it."""

    model: str
    phase: str
    seq: int
    batch: int
    gpus: int
    convention: str
    step_flops: float


def model_use(found: Explained, asked: ModelAsked, dtype: str | None = None) -> ModelUse:
    """What the model needs for the steps of a trace. Without steps the whole window of each device is taken as one.

    MFU stands against the peak of `dtype`, unless given that which most of the kernels' FLOPs are in.
    """
    devices = max(len(found.devices), 1)
    rows = found.steps or found.devices
    times = [step.seconds for step in found.steps] or [each.account.peak_s for each in found.devices]
    count = max(len(rows), 1)
    done = sum(each.flops or 0.0 for each in rows)
    again = sum(each.recompute_flops or 0.0 for each in rows)
    whole = sum(times)
    dtype = dtype or _dtype(found)
    peak = None if dtype is None else next(
        (each.peaks_flop_per_s[dtype] for each in found.devices if dtype in each.peaks_flop_per_s), None
    )  # fmt: skip
    most = whole * peak if peak else 0.0  # FLOPs of all these steps at the peak
    useful = asked.step_flops / asked.gpus * len(rows)
    known = any(each.flops is not None for each in rows)
    figures: dict[str, float | None] = {
        "mfu": useful / most if most else None,
        "mfu_attributed": done / most if most and known else None,
        "hfu_attributed": (done + again) / most if most and known else None,
    }
    reasons = {name: _why(found, dtype, peak) for name, value in figures.items() if value is None}
    for name, value in figures.items():
        if value is not None and value > 1:
            figures[name], reasons[name] = None, "above the peak: check --seq, --batch, --gpus and the device"
    return ModelUse(
        **vars(asked),
        steps=len(rows),
        basis=MEAN_STEP if found.steps else f"{WINDOW}, taken as one step",
        step_s=whole / count,
        check=check(
            asked.step_flops, done, again, found.attributed_fraction, steps=count, ranks=asked.gpus, devices=devices
        ),
        dtype=dtype,
        peak_flop_per_s=peak,
        mfu=figures["mfu"],
        mfu_attributed=figures["mfu_attributed"],
        hfu_attributed=figures["hfu_attributed"],
        reasons=reasons,
    )


def _dtype(found: Explained) -> str | None:
    """The dtype that most of the attributed FLOPs are in; of what has no FLOPs the catalogue's bf16 is not taken."""
    sums: dict[str, float] = {}
    for row in found.kernels:
        if row.kind == "matmul" and row.dtype is not None:
            sums[row.dtype] = sums.get(row.dtype, 0.0) + (row.flops or 0.0)
    return max(sums, key=lambda each: sums[each]) if any(sums.values()) else None


def _why(found: Explained, dtype: str | None, peak: float | None) -> str:
    if not found.devices:
        return "no device work"
    if dtype is None:
        return "the dtype of the products is not known: none has FLOPs; --dtype names it"
    if peak is None:
        return f"the device has no sourced peak of {dtype}; name it with --gpu"
    return "no kernel has FLOPs"
