"""Results of `suanli mfu` (objects, or the JSON files it writes) as the sizes of a scaling series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suanli.errors import FaultList, InputError, SuanliError, shown
from suanli.nouns.scaling import Figure, Series, Size
from suanli.readers.results import read_result
from suanli.readers.sizes import read_figure
from suanli.units import parse

NAME = "results of mfu"
WORDS = ("model", "gpu", "dtype", "seq")


def read_runs(paths: Sequence[Path]) -> Series:
    """JSON files as a series. Raises InputError with the faults of all files."""
    faults, found = FaultList(InputError), []
    for path in paths:
        try:
            found.append((str(path), read_result(path, "mfu")))
        except SuanliError as problem:
            faults.faults += problem.faults
    faults.raise_if_any()
    return sizes_of_runs(found)


def sizes_of_runs(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> Series:
    """Envelopes, each with where it is from, as a series. Raises InputError with every fault.

    Utilisations count only where all are under one convention: those of two say nothing of scaling.
    """
    faults = FaultList(InputError)
    same = len({run["result"].get("convention") for _, run in runs}) == 1
    sizes = [size for where, run in runs if (size := _size(run, where, faults, with_mfu=same)) is not None]
    faults.raise_if_any()
    return Series(name=NAME, sizes=tuple(sorted(sizes, key=lambda size: size.gpus)))


def _size(run: Mapping[str, Any], where: str, faults: FaultList, *, with_mfu: bool) -> Size | None:
    result, inputs = run["result"], run["inputs"]
    gpus, rate, mfu = result.get("gpus"), result.get("tokens_per_second_per_gpu"), result.get("mfu")
    if not isinstance(gpus, int) or gpus < 1 or not isinstance(rate, int | float) or not rate > 0:
        faults.add(code="bad_result", message="the result has no GPUs or no rate above 0", where=where,
                   got=f"gpus {shown(gpus)}, tokens_per_second_per_gpu {shown(rate)}",
                   expected="what `suanli mfu --json` prints")  # fmt: skip
        return None
    batch = _number(inputs.get("global_batch"), "count")
    part = _half_digit_part(inputs)
    values = {"step_time_s": _number(inputs.get("step_time"), "duration") if batch else None,
              "tokens_per_s_per_gpu": float(rate), "mfu": mfu if with_mfu else None}  # fmt: skip
    figures = {
        name: Figure(value=value, half_digit=value * part)
        for name, value in values.items()
        if isinstance(value, int | float) and value > 0
    }
    assumed = inputs.get("assumed") if isinstance(inputs.get("assumed"), dict) else {}
    words = {name: str(value) for name in WORDS if (value := inputs.get(name, assumed.get(name))) is not None}
    return Size(gpus=gpus, figures=figures, global_batch=int(batch) if batch else None, words=words)


MEASURED = {"step_time": "step_time_s", "tokens_per_second": "tokens_per_s", "tflops_per_gpu": "tflops_per_gpu"}


def _half_digit_part(inputs: Mapping[str, Any]) -> float:
    """Half a unit of the last digit of what was typed, as a part of it: every figure of the run shares it."""
    for name, metric in MEASURED.items():
        if isinstance(inputs.get(name), str):
            figure = read_figure(metric, inputs[name].strip(), name, FaultList(InputError))
            return figure.half_digit / figure.value if figure is not None else 0.0
    return 0.0


def _number(value: Any, kind: str) -> float | None:
    """A quantity as typed there; None where there is none."""
    if value is None:
        return None
    try:
        return float(parse(value, kind))
    except SuanliError:
        return None
