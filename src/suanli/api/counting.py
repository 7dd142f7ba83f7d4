"""`suanli.count`."""

from __future__ import annotations

from typing import Any

from suanli.adapters import parse_trainable, with_lora
from suanli.api.parts import as_asked, assumed_line, length_notes, read_convention, read_model_of, read_workload
from suanli.api.request import Request
from suanli.api.sources import count_source
from suanli.count import count as count_books
from suanli.errors import shown
from suanli.nouns.result import Result
from suanli.readers.sources import is_source


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
    by: str = "module",
    trainable: str | None = None,
    params: Any = None,
    input: Any = None,
) -> Result:
    """Parameters, FLOPs, MACs and bytes of a model. Raises InputError listing every fault of the request.

    >>> count("llama-3.1-8b", seq=8192, phase="train").params.total
    8030261248
    """
    typed = {
        "seq": seq, "batch": batch, "phase": phase, "kv_len": kv_len, "dtype": dtype, "kv_dtype": kv_dtype,
        "optimizer": optimizer, "recompute": recompute,
    }  # fmt: skip
    if is_source(model):
        return count_source(model, typed, convention, by, input)
    request = Request()
    arch = read_model_of(request, model, image)
    rule = read_convention(request, convention)
    n = request.whole("params", params)
    lora = request.attempt(lambda: parse_trainable(request.word("trainable", trainable, "all")))
    if input is not None:
        request.fault("no_effect", "a model of layers takes --seq, --batch and --image", "input", got=shown(input))
    workload = read_workload(request, arch, typed)
    request.check()
    assert arch is not None and rule is not None and workload is not None
    if lora is not None:
        arch = with_lora(arch, lora)
    books = count_books(arch, workload, rule, by=by, params=n)
    return Result(
        kind="count",
        inputs={"model": as_asked(model), **request.given, "assumed": request.assumed},
        convention=rule.name,
        result=books,
        uncounted=books.ledger_uncounted,
        sources=(*arch.sources, f"convention {rule.name}: {rule.source}"),
        notes=(*assumed_line(request), *arch.notes, *length_notes(arch, workload, seq)),
        asked={"arch": arch, "workload": workload, "convention": rule},
    )
