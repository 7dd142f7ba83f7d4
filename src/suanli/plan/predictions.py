"""How far predicted step times are off on published runs: fitted, held out by fold, and beside a constant utilisation.

A fold is what is left out together (a source, a model, a shape, a size, a family); everything fitted is fitted again
without it, from the same beliefs. The interval of a fold is the spread of the errors of the other folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import Any

from suanli.catalog.conventions import find_convention
from suanli.catalog.devices import find_device
from suanli.catalog.measured import measured_steps
from suanli.catalog.profiles import prior_profile
from suanli.catalog.runs import published_runs
from suanli.count import build_ledger
from suanli.nouns.profile import UNSEEN, StackProfile
from suanli.nouns.workload import Workload
from suanli.plan.calibrate import fit, half_width
from suanli.plan.observed import Observation, observe_run, observe_step
from suanli.plan.predict import data_of

Array = Any
_PEAKS = {"bf16": "bf16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
_BRIDGE = ("Megatron-Bridge dense", "Megatron-Bridge MoE")
_VTRAIN = ("vTrain-multi", "vTrain-single")


@dataclass(frozen=True, kw_only=True)
class PredictionSet:
    """Runs that are judged together: which, what is left out together, what else is fitted with them."""

    name: str
    stack: str
    fold: str = field(metadata={"doc": "what is left out together, in words"})
    key: Callable[[Observation], str]
    judged: Callable[[Observation], bool]
    also: Callable[[Observation], bool] = lambda _: False  # rows of the stack always fitted with, at a weight
    weight: float = 1.0
    bar: float | None = field(default=None, metadata={"unit": "fraction", "doc": "largest mean error aimed at"})


def _source(*names: str, dtype: str | None = None) -> Callable[[Observation], bool]:
    return lambda run: run.source in names and dtype in (None, run.dtype)


def _paper(run: Observation) -> str:
    return run.source.removesuffix(" text").removesuffix(" T5")


def _model(run: Observation) -> str:
    return run.model


def _family(run: Observation) -> str:
    return run.family


_MEGATRON = ("2104.04473 T1", "2104.04473 T2 PTD", "2205.05198 T5", "2205.05198 text", "MegaScale T2 Megatron-LM")
_DGXC, _MOSAIC = "NVIDIA dgxc-benchmarking v25.04.02", "MosaicML llm-foundry FSDP"

SETS = (
    PredictionSet(name="Megatron-LM A100", stack="megatron-2021", fold="source", key=_paper,
                  judged=_source(*_MEGATRON), bar=0.06),
    PredictionSet(name="vTrain multi-node", stack="megatron-deepspeed", fold="model", key=_model,
                  judged=_source("vTrain-multi"), also=_source("vTrain-single"), weight=0.1, bar=0.10),
    PredictionSet(name="vTrain single-node", stack="megatron-deepspeed", fold="shape", key=_model,
                  judged=_source("vTrain-single"), bar=0.07),
    PredictionSet(name="NVIDIA dgxc H100 bf16", stack="nemo", fold="model", key=_model,
                  judged=_source(_DGXC, dtype="bf16"), also=_source(_DGXC, dtype="fp8"), bar=0.06),
    PredictionSet(name="NVIDIA dgxc H100 fp8", stack="nemo", fold="model", key=_model,
                  judged=_source(_DGXC, dtype="fp8"), also=_source(_DGXC, dtype="bf16"), bar=0.09),
    PredictionSet(name="MosaicML FSDP bf16", stack="composer-fsdp", fold="size", key=_model,
                  judged=_source(_MOSAIC, dtype="bf16"), bar=0.06),
    PredictionSet(name="MosaicML FSDP fp8", stack="composer-fsdp", fold="size", key=_model,
                  judged=_source(_MOSAIC, dtype="fp8"), also=_source(_MOSAIC, dtype="bf16")),
    PredictionSet(name="ZeRO-3 of 2104.04473", stack="deepspeed-zero3", fold="model", key=_model,
                  judged=_source("2104.04473 T2 ZeRO3"), bar=0.12),
    PredictionSet(name="Megatron-Bridge dense GB200", stack="megatron-bridge", fold="model", key=_model,
                  judged=lambda run: run.source == _BRIDGE[0] and run.device == "gb200",
                  also=_source(_BRIDGE[0]), bar=0.12),
    PredictionSet(name="Megatron-Bridge MoE", stack="megatron-bridge", fold="family", key=_family,
                  judged=_source(_BRIDGE[1]), also=_source(_BRIDGE[0]), weight=0.3, bar=0.25),
    PredictionSet(name="MegaScale", stack="megascale", fold="run", key=lambda run: run.id,
                  judged=_source("MegaScale T2 MegaScale")),
    PredictionSet(name="Llama 3 405B", stack="llama3", fold="run", key=lambda run: run.id,
                  judged=_source("2407.21783 T4")),
)  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """One set's rows with what was predicted for them. Arrays over the rows judged."""

    name: str
    set: PredictionSet
    runs: tuple[Observation, ...]
    fitted_s: Array
    held_out_s: Array
    constant_s: Array
    half_width: Array = field(metadata={"doc": "of the logarithm, from the other folds"})

    @property
    def measured_s(self) -> Array:
        """Seconds as published."""
        import numpy as np  # noqa: PLC0415

        return np.array([run.step_s for run in self.runs])

    def errors(self, predicted: Array) -> Array:
        """Predicted over measured less 1."""
        return predicted / self.measured_s - 1

    @property
    def covered(self) -> Array:
        """Whether the 80 % interval of the held-out prediction holds the measured time."""
        import numpy as np  # noqa: PLC0415

        return np.abs(np.log(self.held_out_s / self.measured_s)) <= self.half_width

    @property
    def regrets(self) -> dict[str, float]:
        """Of each group of runs that differ in layout only: the time of the layout held-out prediction picks over the
        best measured, less 1. Groups of one layout have none.
        """
        groups: dict[str, list[int]] = {}
        for place, run in enumerate(self.runs):
            where = f"{run.gpus:,} × {run.device} {run.dtype}"
            key = f"{run.model} {run.release}, {where}, {run.global_batch:,} × {run.seq:,}"
            groups.setdefault(key, []).append(place)
        measured = self.measured_s
        return {
            key: float(measured[min(places, key=self.held_out_s.__getitem__)] / measured[places].min() - 1)
            for key, places in groups.items()
            if len(places) > 1
        }


@cache
def observations() -> tuple[Observation, ...]:
    """Every published run that has a legal layout, a shape and a time."""
    steps = [observe_step(step) for step in measured_steps()]
    runs = [found for run in published_runs() if (found := observe_run(run)) is not None]
    return tuple(run for run in steps + runs if run.layouts)


def judge(chosen: PredictionSet, runs: Sequence[Observation] | None = None) -> Judged:
    """A set's rows predicted by everything fitted to them, and by what was fitted without their fold.

    All published runs where none are given (kept, being slow).
    """
    return _of_published(chosen) if runs is None else _judged(chosen, runs)


@cache
def _of_published(chosen: PredictionSet) -> Judged:
    return _judged(chosen, observations())


def _judged(chosen: PredictionSet, every: Sequence[Observation]) -> Judged:
    import numpy as np  # noqa: PLC0415

    held = [run for run in every if run.stack == chosen.stack and (chosen.judged(run) or chosen.also(run))]
    judged = np.array([chosen.judged(run) for run in held])
    stack = prior_profile(chosen.stack)
    data = data_of(held, stack.traits, stack.prior)
    data = replace(data, weights=np.where(judged, 1.0, chosen.weight))
    keys = np.array([chosen.key(run) for run in held])
    found = fit(data, stack.prior, stack.spreads).predict(data)
    out = found.copy()
    for key in sorted(set(keys[judged])):
        rest, gone = keys != key, (keys == key) & judged
        out[gone] = fit(data.take(rest), stack.prior, stack.spreads).predict(data.take(gone))
    own = tuple(run for run, here in zip(held, judged, strict=True) if here)
    wide = _half_widths(np.log(out / data.step_s), keys, judged)
    rule = _constant(held, data.step_s, keys, judged)
    return Judged(chosen.name, chosen, own, found[judged], out[judged], rule[judged], wide[judged])


def _half_widths(errors: Array, keys: Array, judged: Array) -> Array:
    """For each row the spread that holds four fifths of the errors of the other folds; where there is no other fold
    to judge, of the rows that were fitted with it."""
    import numpy as np  # noqa: PLC0415

    found = np.zeros(len(keys))
    for key in set(keys[judged]):
        others = judged & (keys != key)
        found[keys == key] = half_width(errors[others if others.any() else keys != key])
    return found


# --- a constant utilisation ---------------------------------------------------------------------------------------


def _constant(held: Sequence[Observation], step_s: Array, keys: Array, judged: Array) -> Array:
    """Seconds by the median utilisation of the other folds on the same GPU and dtype (of all, where none is), in the
    way of counting FLOPs (causal or full attention, recomputed layers in or out) that serves this rule best."""
    import numpy as np  # noqa: PLC0415

    labels = np.array([run.labels[0] for run in held])
    ways = []
    for convention, hardware in product(("causal", "full"), (True, False)):
        work = np.array(_ideal_seconds(held, convention, hardware))
        used, found = work / step_s, work.copy()
        for row in np.flatnonzero(judged):
            rest = judged & (keys != keys[row])
            rest = rest if rest.any() else keys != keys[row]
            same = rest & (labels == labels[row])
            found[row] = work[row] / np.median(used[same if same.any() else rest])
        ways.append(found)
    return min(ways, key=lambda found: float(np.abs(found / step_s - 1)[judged].mean()))


def _ideal_seconds(runs: Sequence[Observation], convention: str, hardware: bool) -> list[float]:
    """Seconds of each run's step at the peak."""
    known: dict[Any, float] = {}
    found = []
    for run in runs:
        layout = run.layouts[0]
        recompute = layout.recompute if hardware else "none"
        key = (id(run.arch), run.seq, recompute)
        if key not in known:
            workload = Workload(phase="train", seq=run.seq, recompute=recompute)
            ledger = build_ledger(run.arch, workload, find_convention(convention))
            known[key] = float(ledger.hardware_flops)
        peak = find_device(run.device).peak_flop_per_s(_PEAKS[run.dtype])
        found.append(run.global_batch * known[key] / (peak * layout.gpus))
    return found


# --- what ships ---------------------------------------------------------------------------------------------------


def fit_stack(name: str, judged: Sequence[Judged], own: Sequence[Observation] = ()) -> StackProfile:
    """A stack's numbers from every run of it and `own` ones, weighed as its sets weigh them; the intervals of these."""
    import numpy as np  # noqa: PLC0415

    stack = prior_profile(name)
    runs = [*(run for run in observations() if run.stack == name), *own]
    sets = [found for found in judged if found.set.stack == name]
    data = data_of(runs, stack.traits, stack.prior)
    least = [min((s.set.weight for s in sets if s.set.also(run)), default=1.0) for run in runs]
    fitted = fit(replace(data, weights=np.array(least)), stack.prior, stack.spreads)
    widths = {routed: _widest(sets, routed) for routed in (False, True)}
    return replace(
        stack, numbers=fitted.numbers, labels=fitted.labels,
        rows=len(runs), routed_rows=sum(run.routed for run in runs),
        half_width=widths[False] or stack.half_width, routed_half_width=widths[True] or stack.routed_half_width,
        devices=tuple(sorted({run.labels[0] for run in runs})),
        sources=tuple(sorted({run.source for run in runs})),
    )  # fmt: skip


def _widest(sets: Sequence[Judged], routed: bool) -> float | None:
    """The widest interval among sets of models with (or without) routed experts; None where there is none."""
    import numpy as np  # noqa: PLC0415

    fitting = [found for found in sets if found.name.endswith("MoE") == routed and found.set.bar is not None]
    fitting = fitting or [found for found in sets if found.name.endswith("MoE") == routed]
    errors = [np.log(found.held_out_s / found.measured_s) for found in fitting]
    return max((_doubted(half_width(each), len(each)) for each in errors), default=None)


def _doubted(width: float, rows: int) -> float:
    """A width with the doubt of one unseen stack among the rows: few rows know little of the next."""
    return float(((rows * width**2 + UNSEEN**2) / (rows + 1)) ** 0.5)
