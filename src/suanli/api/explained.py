"""What `suanli.explain` does: files and options as typed become an account, or that of many ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from suanli.api.keeping import written
from suanli.api.parts import (
    assumed_line,
    length_notes,
    read_convention,
    read_device,
    read_dtype,
    read_workload,
)
from suanli.api.request import Request
from suanli.count import build_ledger
from suanli.errors import Fault, InputError, shown
from suanli.explain.against import against_layout
from suanli.explain.attribute import attribute
from suanli.explain.chosen import devices_of, most_steps, only_devices, only_steps
from suanli.explain.compare import compare_traces
from suanli.explain.measured import measured_kernels
from suanli.explain.model_use import ModelAsked, model_use
from suanli.explain.whole import explain_trace
from suanli.nouns.arch import Arch
from suanli.nouns.attribution import Attribution
from suanli.nouns.convention import Convention
from suanli.nouns.explained import Explained
from suanli.nouns.hardware import Device
from suanli.nouns.result import Result
from suanli.nouns.trace import Trace
from suanli.nouns.workload import Workload
from suanli.readers import gate
from suanli.readers.cores import cores
from suanli.readers.layout_answers import PredictedStep, read_layout_answer
from suanli.readers.model import read_model
from suanli.readers.traces import read_trace

SUMMARY = ".parquet"  # of one rank, written by summarise
ONE_RANK = ("model", "seq", "batch", "gpus", "dtype", "convention", "against", "compare", "steps", "device")
MANY_RANKS = ("engine", "workers", "cache")
_RANGE = re.compile(r"(\d{1,9})(?:\.\.(\d{1,9}))?")
MOST_LISTED = 10_000
SOURCES = ("time: unions of exact nanoseconds, one owner an instant (docs/explaining.md)",)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A sound request about one file."""

    path: str
    gpu: Device | None
    arch: Arch | None
    workload: Workload | None
    rule: Convention | None
    dtype: str | None
    gpus: int | None
    plan: PredictedStep | None
    other: str | None
    steps: tuple[int, ...] | None
    devices: tuple[int, ...] | None


def explain_files(paths: Sequence[Any], typed: Mapping[str, Any], progress: Callable[[float], None] | None) -> Result:
    """One file here, many ranks by the engine. Raises InputError."""
    given = {name: value for name, value in typed.items() if value is not None}
    names = [os.fspath(_path(each)) for each in paths]
    if len(names) > 1 or Path(names[0]).is_dir() or Path(names[0]).suffix == SUMMARY:
        return _many(names, given, progress)
    return _one(names[0], given, typed, progress)


def _path(value: Any) -> Any:
    if isinstance(value, str | os.PathLike) and os.fspath(value):  # an empty one would be the current folder
        gate.check_path(value, "TRACE")
        return value
    raise InputError(
        Fault(code="no_file", message="not a file", where="TRACE", got=shown(value), expected="the path of a trace")
    )


def _misplaced(names: Sequence[str], given: Mapping[str, Any], what: str, hint: str) -> None:
    """Raise InputError for options that change nothing here."""
    faults = [
        Fault(code="no_such_option", message=f"the option is for {what}", where="--" + name,
              got=shown(str(given[name])), hint=hint)
        for name in names if name in given
    ]  # fmt: skip
    if faults:
        raise InputError(*faults)


# --- many ranks ---------------------------------------------------------------------------------------------------


def _many(paths: Sequence[str], given: Mapping[str, Any], progress: Callable[[float], None] | None) -> Result:
    _misplaced(ONE_RANK, given, "one file", "Explain the file of one rank by itself.")
    try:
        folders = import_module("suanli.api.folders")  # with it come the engines
    except ImportError as problem:
        raise InputError(
            Fault(code="one_file_only", message="this version explains one file at a time", where="TRACE",
                  got=f"{len(paths)} paths" if len(paths) > 1 else shown(paths[0]), expected="the file of one rank")
        ) from problem  # fmt: skip
    options = {name: given[name] for name in ("gpu", *MANY_RANKS) if name in given}
    told = None if progress is None else lambda done, total, _: progress(done / max(total, 1))
    found: Result = folders.explain_folder(paths, **options, progress=told)
    return found


# --- one file -----------------------------------------------------------------------------------------------------


def _one(
    path: str, given: Mapping[str, Any], typed: Mapping[str, Any], progress: Callable[[float], None] | None
) -> Result:
    _misplaced(MANY_RANKS, given, "many ranks", "Give a folder, or several files.")
    request = Request()
    asked = _read(request, path, typed)
    trace = _opened(path, asked.devices, None if progress is None else lambda at, of: progress(at / max(of, 1)))
    found, whole, seen = _explained(trace, asked)
    notes = list(_part_notes(asked))
    if asked.arch is not None and asked.workload is not None and asked.rule is not None:
        found = replace(found, model=_model(request, found, asked, _phase(request, seen[1])))
        notes += length_notes(asked.arch, asked.workload, typed["seq"])
    if asked.plan is not None:
        found = replace(found, against=against_layout(found, asked.plan.account))
        notes.append(f"against: {asked.plan.name or 'the first layout'} of {Path(given['against']).name}")
    if asked.other is not None:
        other, _, _ = _explained(_opened(asked.other, None, None), replace(asked, steps=None))
        found = replace(found, compared=compare_traces(other, found))
        same = ", the same file" if Path(asked.other).samefile(path) else ""
        notes.append(f"compared with {Path(asked.other).name}{same}, which stands first")
    return Result(
        kind="explain",
        inputs={"trace": path, **{name: written(value) for name, value in given.items()}, "assumed": request.assumed},
        convention=None if asked.rule is None else asked.rule.name,
        result=found,
        sources=(*SOURCES, *_peak_sources(whole)),
        notes=(*assumed_line(request), *notes),
        asked={"measured": lambda: measured_kernels(seen[0], seen[1], asked.gpu), "gpu": asked.gpu},
    )


def _read(request: Request, path: str, typed: Mapping[str, Any]) -> _Asked:
    """Every option read and checked before the trace is. Raises InputError."""
    gpu = read_device(request, typed["gpu"])
    model = typed["model"]
    arch = workload = rule = gpus = dtype = None
    if model is not None:
        arch = request.attempt(lambda: read_model(model, where="--model"))
        rule = read_convention(request, typed["convention"])
        workload = read_workload(request, arch, {name: typed[name] for name in ("seq", "batch")}, {"phase": "train"})
        gpus = request.whole("gpus", typed["gpus"], low=1)
        dtype = None if typed["dtype"] is None else read_dtype(request, typed["dtype"])
    else:
        for name in ("seq", "batch", "gpus", "dtype", "convention"):
            if typed[name] is not None:
                request.fault("no_such_option", "the option is about a model", name, got=shown(typed[name]),
                              hint="Add --model.")  # fmt: skip
    against = typed["against"]
    plan = None if against is None else request.attempt(lambda: read_layout_answer(Path(against).expanduser()))
    asked = _Asked(
        path=path, gpu=gpu, arch=arch, workload=workload, rule=rule, dtype=dtype, gpus=gpus, plan=plan,
        other=None if typed["compare"] is None else os.fspath(_path(typed["compare"])),
        steps=request.attempt(lambda: read_places(typed["steps"], "--steps", low=1)),
        devices=request.attempt(lambda: read_places(typed["device"], "--device", low=0)),
    )  # fmt: skip
    request.check()
    return asked


def read_places(value: Any, where: str, *, low: int) -> tuple[int, ...] | None:
    """`2..4` or `1,3` as whole numbers; None where not given. Raises InputError."""
    if value is None:
        return None
    parts = [str(part).strip() for part in (value if isinstance(value, list | tuple) else str(value).split(","))]
    found: list[int] = []
    for part in parts:
        match = _RANGE.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if first < low or last < first or last - first >= MOST_LISTED:
            raise InputError(
                Fault(code="bad_places", message="these are no numbers", where=where, got=shown(value),
                      expected=f"numbers from {low}, like {low}..{low + 2} or {low},{low + 3}")
            )  # fmt: skip
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


def _opened(path: str, devices: tuple[int, ...] | None, progress: Callable[[int, int], None] | None) -> Trace:
    trace = read_trace(path, progress, cores())
    if devices is None:
        return trace
    there = devices_of(trace)
    if missing := [each for each in devices if each not in there]:
        raise InputError(
            Fault(code="no_device", message=f"the trace has no work of device {missing[0]}", where="--device",
                  got=shown(", ".join(map(str, devices))), expected=", ".join(map(str, there)) or "no device at all")
        )  # fmt: skip
    return only_devices(trace, devices)


def _explained(trace: Trace, asked: _Asked) -> tuple[Explained, Explained, tuple[Trace, Attribution]]:
    """The part asked for, the whole, and what was attributed."""
    kept: list[tuple[Trace, Attribution]] = []

    def attributed(of: Trace, classes: Any) -> Attribution:
        kept.append((of, attribute(of, classes)))
        return kept[0][1]

    whole = explain_trace(trace, attributed, asked.gpu)
    if asked.steps is None:
        return whole, whole, kept[0]
    most = most_steps(whole)
    if missing := [each for each in asked.steps if each > most]:
        raise InputError(
            Fault(code="no_step", message=f"the trace has no step {missing[0]}", where="--steps",
                  got=shown(missing[0]), expected=f"1 to {most}" if most else whole.steps_found)
        )  # fmt: skip
    return only_steps(whole, asked.steps), whole, kept[0]


def _phase(request: Request, found: Attribution) -> str:
    """Training where the trace has a backward pass."""
    phase = "train" if bool(found.backward.any() or found.recompute.any()) else "forward"
    request.assumed["phase"] = f"{phase} ({'a' if phase == 'train' else 'no'} backward pass in the trace)"
    return phase


def _model(request: Request, found: Explained, asked: _Asked, phase: str) -> Any:
    assert asked.arch is not None and asked.workload is not None and asked.rule is not None
    workload = replace(asked.workload, phase=phase)
    gpus = asked.gpus or max(len(found.devices), 1)
    if asked.gpus is None:
        request.assumed["gpus"] = gpus
    if asked.dtype is not None:
        request.given["dtype"] = asked.dtype
    ledger = build_ledger(asked.arch, workload, asked.rule)
    return model_use(
        found,
        ModelAsked(model=asked.arch.name, phase=phase, seq=workload.seq, batch=workload.batch, gpus=gpus,
                   convention=asked.rule.name, step_flops=float(ledger.model_flops)),
        asked.dtype,
    )  # fmt: skip


def _part_notes(asked: _Asked) -> list[str]:
    if asked.steps is None:
        return []
    return ["steps, account and model are of the steps asked for; all else is of the whole window"]


def _peak_sources(found: Explained) -> tuple[str, ...]:
    named = dict.fromkeys(each.catalogue for each in found.devices if each.catalogue)
    return tuple(f"peaks of {each}: catalogue, see suanli gpus {each}" for each in named)
