"""`suanli.count`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from suanli.adapters import parse_trainable, with_lora
from suanli.api.parts import (
    as_asked,
    assumed_line,
    idle_notes,
    length_notes,
    read_convention,
    read_model_of,
    read_workload,
)
from suanli.api.request import Request
from suanli.count import count as count_books
from suanli.nouns.result import Result
from suanli.readers.kinds import is_source, is_traced


def count(
    model: Any,
    *,
    seq: Any = None,
    batch: Any = None,
    phase: str | None = None,
    kv_len: Any = None,
    image: Any = None,
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
    like: str | None = None,
) -> Result:
    """Parameters, FLOPs, MACs and bytes of a model. Raises InputError listing every fault of the request.

    A module (`torch:package.module:factory`, or a live one) is run once, on `input`: tensors or a shape like
    `1x3x224x224`. `trace` runs a config or preset too. `strict`: not ok where an operator had no formula. `like` gives
    the number another counter would give (calflops, megatron, …), with what makes it differ from convention full.

    >>> count("llama-3.1-8b", seq=8192, phase="train").params.total
    8030261248
    """
    typed = {
        "seq": seq, "batch": batch, "phase": phase, "kv_len": kv_len, "dtype": dtype, "kv_dtype": kv_dtype,
        "optimizer": optimizer, "recompute": recompute,
    }  # fmt: skip
    more = {"trainable": trainable, "params": params, "image": image}
    if like is not None:
        from suanli.api.liking import count_like  # noqa: PLC0415  loaded where it is needed

        return count_like(model, like, input_=input, typed={**typed, **more, "convention": convention, "by": by})
    if is_source(model) and not trace:
        from suanli.api.sources import count_source  # noqa: PLC0415

        found = count_source(model, typed, convention, by or "module", input)
        return replace(found, ok=not (strict and found.result.lower_bound))
    if is_traced(model, input, trace):
        from suanli.api.tracing import count_by_trace  # noqa: PLC0415

        return count_by_trace(
            model, input_=input, typed={**typed, **more}, convention=convention, by=by or "module", strict=strict
        )
    request = Request()
    arch = read_model_of(request, model, image)
    rule = read_convention(request, convention)
    n = request.whole("params", params, kind="count", low=1)
    lora = request.attempt(lambda: parse_trainable(request.word("trainable", trainable, "all", fold=False)))
    workload = read_workload(request, arch, typed)
    request.check()
    assert arch is not None and rule is not None and workload is not None
    if lora is not None:
        arch = with_lora(arch, lora)
    books = count_books(arch, workload, rule, by=by or "module", params=n)
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
            *length_notes(arch, workload, seq),
            *idle_notes(arch, workload, image=image, kv_len=kv_len, kv_dtype=kv_dtype),
        ),
        asked={"arch": arch, "workload": workload, "convention": rule},
    )
