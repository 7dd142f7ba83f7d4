"""`suanli.count` for a weight file, an ONNX file or a JAX function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from suanli.api.parts import as_asked, assumed_line, read_convention, read_workload
from suanli.api.request import Request
from suanli.errors import Fault, InputError, shown
from suanli.nouns.graph import Graph
from suanli.nouns.result import Result
from suanli.nouns.tensors import TensorTable
from suanli.readers.sources import read_source
from suanli.tally import CONVENTION, count_graph, count_table, integer_note


def count_source(model: str | Path, typed: Mapping[str, Any], convention: str | None, by: str, inputs: Any) -> Result:
    """Parameters, bytes and FLOPs as far as the file or function tells them. Raises InputError."""
    request = Request()
    bindings = request.attempt(lambda: read_inputs(inputs))
    if inputs is not None:
        request.given["input"] = inputs
    found = None
    if bindings is not None:
        lengths = {name: typed[name] for name in ("batch", "seq") if typed.get(name) is not None}
        found = request.attempt(lambda: read_source(model, {**lengths, **bindings}))
    if isinstance(found, Graph):
        return _graph_result(request, model, found, typed, convention, by)
    request.check()
    assert isinstance(found, TensorTable)
    return _table_result(request, model, found, typed, convention)


def _graph_result(
    request: Request, model: str | Path, graph: Graph, typed: Mapping[str, Any], convention: str | None, by: str
) -> Result:
    idle = [name for name, value in typed.items() if value is not None and name not in ("batch", "seq")]
    for name in idle:
        request.fault("no_effect", "a program is counted as it stands", name, got=shown(typed[name]))
    if convention not in (None, CONVENTION):
        request.fault("convention_impossible", "a program shows no masks", "convention", expected=CONVENTION)
    request.check()
    books = count_graph(graph, by)
    return Result(
        kind="count",
        inputs={"model": as_asked(str(model)), **request.given},
        convention=CONVENTION,
        result=books,
        uncounted=graph.missing,
        sources=graph.sources,
        notes=(f"convention {CONVENTION}: every pair that the program multiplies is counted", *graph.notes),
    )


def _table_result(
    request: Request, model: str | Path, table: TensorTable, typed: Mapping[str, Any], convention: str | None
) -> Result:
    from suanli.nouns.workload import Workload  # noqa: PLC0415

    rule = read_convention(request, convention)
    workload = Workload() if table.arch is None else read_workload(request, table.arch, dict(typed))
    request.check()
    assert rule is not None and workload is not None
    notes = (*integer_note(table), *table.notes)
    if table.arch is not None:
        notes = (*assumed_line(request), *table.arch.notes, *notes)
    return Result(
        kind="count",
        inputs={"model": str(model), **request.given, "assumed": request.assumed if table.arch else {}},
        convention=rule.name if table.arch else None,
        result=count_table(table, workload, rule),
        sources=("the header of the file",),
        notes=notes,
        asked={"arch": table.arch, "workload": workload, "convention": rule} if table.arch else {},
    )


def read_inputs(given: Any) -> dict[str, Any]:
    """`name:1x3x224x224` and `axis=4`, in one text with commas, a list of them, or a mapping. Raises InputError."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): tuple(size) if isinstance(size, list | tuple) else size for name, size in given.items()}
    texts: Iterable[Any] = given if isinstance(given, list | tuple) else [given]
    found: dict[str, Any] = {}
    for part in (part.strip() for text in texts for part in str(text).split(",")):
        name, mark, size = part.rpartition(":") if ":" in part and "=" not in part.rpartition(":")[2] else ("", "", "")
        axis, equals, length = part.rpartition("=")
        if mark and name and all(_is_length(side) for side in size.lower().split("x")):
            found[name] = tuple(map(int, size.lower().split("x")))
        elif equals and axis and _is_length(length):
            found[axis] = int(length)
        else:
            raise InputError(
                Fault(
                    code="bad_input", message="the size cannot be read", where="--input", got=shown(part),
                    expected="name:1x3x224x224 for an input, or axis=4 for a named axis",
                )
            )  # fmt: skip
    return found


def _is_length(text: str) -> bool:
    return text.isdecimal() and 1 <= len(text) <= 12
