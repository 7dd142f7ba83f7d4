"""`suanli.count`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suanli.adapters import parse_trainable, with_lora
from suanli.api.keeping import keeps_request
from suanli.api.parts import (
    as_asked,
    assumed_line,
    idle_notes,
    length_notes,
    read_convention,
    read_model_of,
    read_workload,
    sweep_notes,
)
from suanli.api.request import Request, read_time_limit
from suanli.count import count as count_books
from suanli.errors import Fault, InputError, shown
from suanli.nouns.result import Result
from suanli.nouns.workload import Workload
from suanli.readers.bounded import within
from suanli.readers.kinds import JAX, KERAS, is_source, is_traced

WORKLOAD = ("seq", "batch", "phase", "kv_len", "dtype", "kv_dtype", "optimizer", "recompute")


@keeps_request
def count(
    model: Any,
    *,
    seq: Any = None,
    batch: Any = None,
    phase: str | None = None,
    kv_len: Any = None,
    image: Any = None,
    frames: Any = None,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    optimizer: str | None = None,
    recompute: str | None = None,
    convention: str | None = None,
    by: str | None = None,
    trainable: str | None = None,
    params: Any = None,
    input: Any = None,
    trace: bool = False,
    strict: bool = False,
    symbolic: bool = False,
    sweep: str | None = None,
    time_limit: Any = None,
    like: str | None = None,
) -> Result:
    """Parameters, FLOPs, MACs and bytes of a model. Raises InputError listing every fault of the request.

    A module (`torch:package.module:factory`, or a live one) is run once, on `input`: tensors or a shape like
    `1x3x224x224`. `trace` runs a config or preset too. `strict`: not ok where an operator had no formula.
    `symbolic` adds every quantity as a polynomial in the lengths; `sweep`, like `seq=1024:131072:1024`, its values.
    `time_limit`: how long a factory or a forward may run, 300 s where not given. `like` gives the number another
    counter would give (calflops, megatron, …), with what makes it differ from convention full.

    >>> count("llama-3.1-8b", seq=8192, phase="train").params.total
    8030261248
    """
    typed = {name: value for name, value in locals().items() if name not in ("model", "time_limit", "strict", "like")}
    traced = is_traced(model, input, trace)
    source = is_source(model) and not trace
    if (symbolic or sweep is not None) and (traced or source):
        raise _no_polynomials(model)
    runs = traced or like is not None or (isinstance(model, str) and model.startswith((JAX, KERAS)))
    with within(_seconds(time_limit, runs)):
        if like is not None:
            return _like(model, like, typed)
        if source:
            return _of_source(model, typed, strict=strict)
        return _by_trace(model, typed, strict=strict) if traced else _by_formula(model, typed)


def _like(model: Any, like: str, typed: Mapping[str, Any]) -> Result:
    from suanli.api.liking import count_like  # noqa: PLC0415  loaded where it is needed

    named = {name: typed[name] for name in (*WORKLOAD, "trainable", "params", "image", "frames", "convention", "by")}
    more = {"symbolic": typed["symbolic"] or None, "sweep": typed["sweep"]}
    return count_like(model, like, input_=typed["input"], typed={**named, **more})


def _of_source(model: Any, typed: Mapping[str, Any], *, strict: bool) -> Result:
    """A weight file, a graph, a function of jax or a model of keras."""
    from suanli.api.sources import count_source  # noqa: PLC0415  loaded where it is needed

    named = {name: typed[name] for name in WORKLOAD}
    found = count_source(model, named, typed["convention"], typed["by"] or "module", typed["input"])
    return replace(found, ok=not (strict and found.result.lower_bound))


def _by_trace(model: Any, typed: Mapping[str, Any], *, strict: bool) -> Result:
    from suanli.api.tracing import count_by_trace  # noqa: PLC0415  loaded where it is needed

    named = {name: typed[name] for name in (*WORKLOAD, "trainable", "params", "image", "frames")}
    return count_by_trace(
        model, input_=typed["input"], typed=named, convention=typed["convention"], by=typed["by"] or "module",
        strict=strict,
    )  # fmt: skip


def _by_formula(model: Any, typed: Mapping[str, Any]) -> Result:
    request = Request()
    arch = read_model_of(request, model, typed["image"], typed["frames"])
    rule = read_convention(request, typed["convention"])
    n = request.whole("params", typed["params"], kind="count", low=1)
    lora = request.attempt(lambda: parse_trainable(request.word("trainable", typed["trainable"], "all", fold=False)))
    workload = read_workload(request, arch, {name: typed[name] for name in WORKLOAD})
    swept = _read_sweep(request, typed["sweep"], workload)
    request.check()
    assert arch is not None and rule is not None and workload is not None
    if lora is not None:
        arch = with_lora(arch, lora)
    books = count_books(arch, workload, rule, by=typed["by"] or "module", params=n)
    if typed["symbolic"] or swept is not None:
        from suanli.api.sweeping import with_polynomials  # noqa: PLC0415  loaded where it is needed

        books = with_polynomials(books, arch, workload, rule, symbolic=typed["symbolic"], sweep=swept)
    return Result(
        kind="count",
        inputs={"model": as_asked(model), **request.given, "assumed": request.assumed},
        convention=rule.name,
        result=books,
        uncounted=books.ledger_uncounted,
        sources=(*arch.sources, f"convention {rule.name}: {rule.source}"),
        notes=(
            *assumed_line(request),
            *arch.notes,
            *length_notes(arch, workload, typed["seq"]),
            *sweep_notes(arch, swept),
            *idle_notes(arch, workload, **{name: typed[name] for name in ("image", "kv_len", "kv_dtype", "frames")}),
        ),
        asked={"arch": arch, "workload": workload, "convention": rule},
    )


def _read_sweep(request: Request, sweep: str | None, workload: Workload | None) -> Any:
    if sweep is None:
        return None
    from suanli.api.sweeping import read_sweep  # noqa: PLC0415  loaded where it is needed

    return read_sweep(request, sweep, workload and workload.phase)


def _no_polynomials(model: Any) -> InputError:
    return InputError(
        Fault(
            code="no_closed_form",
            message="a run, a graph or a weight file is one set of lengths: polynomials are of formulas",
            where="--symbolic, --sweep",
            got=shown(model),
            hint="Give a preset, a config.json, a hub id or a layer expression, without --trace and --input.",
        )
    )


def _seconds(given: Any, runs: bool) -> float | None:
    """The bound of a run. Raises InputError where it is none, or where nothing is run."""
    if given is None:
        return None
    found = read_time_limit(given)
    if runs:
        return found
    raise InputError(
        Fault(code="bad_time_limit", message="nothing is run that a time limit could stop", where="--time-limit",
              got=shown(given), expected="a module or a function; or --trace")
    )  # fmt: skip
