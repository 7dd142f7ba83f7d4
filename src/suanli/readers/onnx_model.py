"""An ONNX file as a program: shapes inferred, dynamic axes bound, loops multiplied by their trips. Weights unread."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from suanli.errors import Fault, FaultList, InputError, UnreadableFileError, nearest_names, shown
from suanli.nouns.graph import Graph
from suanli.readers.binary import opened, refuse
from suanli.readers.factory import missing_extra
from suanli.readers.onnx_checks import MAX_ELEMENTS, check_model
from suanli.readers.onnx_graph import Walk, stored_weights, strip_weights
from suanli.units import GIGA

MAX_FILE = 2 * GIGA  # protobuf's own bound
SOURCE = "https://onnx.ai/onnx/operators: shapes by onnx.shape_inference"

# What --batch and --seq are usually called in exported files.
AXES = {
    "batch": ("batch", "batch_size", "N", "B", "bs"),
    "seq": ("seq", "sequence", "sequence_length", "seq_len", "seq_length", "S", "T"),
}


def read_onnx(path: Path, inputs: Mapping[str, Any]) -> Graph:
    """The operations of a file under the given sizes of inputs and axes.

    Raises MissingExtraError without `onnx`, UnreadableFileError for a file that is none, InputError for axes unbound.
    """
    try:
        import onnx  # noqa: PLC0415  an optional extra
        from onnx import inliner  # noqa: PLC0415
    except ImportError as problem:
        raise missing_extra("onnx", "an ONNX file") from problem
    model = _parsed(path, onnx)
    nodes = check_model(model, path)
    stored = stored_weights(model.graph)
    params = sum(entry.elements for entry in stored.values())
    strip_weights(model.graph)
    if model.functions:
        try:
            model = inliner.inline_local_functions(model)
        except (RuntimeError, ValueError, onnx.checker.ValidationError) as problem:
            _refuse_shapes(path, problem, "the model's own functions cannot be unfolded")
    _bind(model.graph, inputs)
    walk = Walk(model)
    try:
        walk.graph(model.graph, "", 1, ChainMap())
    except RecursionError:
        refuse(path, "too_deep", "loops and branches are nested too deep")
    except (RuntimeError, ValueError, onnx.shape_inference.InferenceError) as problem:  # shapes that contradict
        _refuse_shapes(path, problem)
    return Graph(
        name=path.stem,
        format=f"onnx, {nodes:,} operations",
        rows=tuple(walk.rows),
        missing=walk.missing.listed(),
        params=params,
        stored=stored,
        notes=tuple(walk.notes),
        sources=(SOURCE,),
    )


def _parsed(path: Path, onnx: Any) -> Any:
    with opened(path) as (stream, size):
        if size > MAX_FILE:
            refuse(path, "too_large", "the file is too large for ONNX", got=f"{size:,} bytes", expected="at most 2 GB")
        content = stream.read(MAX_FILE + 1)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as problem:
        fault = Fault(
            code="not_onnx", message="the file is no ONNX model, or is cut off", where=str(path),
            got=f"{type(problem).__name__}, {size:,} bytes",
        )  # fmt: skip
        raise UnreadableFileError(fault) from problem
    return model


def _refuse_shapes(
    path: Path, problem: Exception, message: str = "the shapes of the model contradict each other"
) -> None:
    text = " ".join(str(problem).split())[:300]
    fault = Fault(
        code="bad_shapes",
        message=message,
        where=str(path),
        got=shown(text, 300),
    )
    raise UnreadableFileError(fault) from problem


def _bind(graph: Any, given: Mapping[str, Any]) -> None:
    """Give every axis of every input its size. Raises InputError listing what is unbound, unknown or contradictory."""
    weights = {tensor.name for tensor in graph.initializer}
    free = [value for value in graph.input if value.name not in weights]
    names = {value.name for value in free}
    axes = {dim.dim_param for value in free for dim in value.type.tensor_type.shape.dim if dim.dim_param}
    sizes = _axis_sizes(given, axes)
    faults = FaultList(InputError)
    for name, size in given.items():
        if name not in names | axes and name not in AXES:
            near = nearest_names(name, names | axes)
            faults.add(code="unknown_input", message=f"no input or axis {shown(name)}", where="--input", nearest=near)
        elif name in names and not isinstance(size, tuple):
            faults.add(code="bad_input", message=f"{name} is an input", where="--input", expected=f"{name}:1x3x224x224")
    for value in free:
        _bind_input(value, given.get(value.name), sizes, faults)
        dims = value.type.tensor_type.shape.dim
        if prod(dim.dim_value for dim in dims) >= MAX_ELEMENTS:
            got = "x".join(str(dim.dim_value) for dim in dims)
            faults.add(code="too_large", message=f"input {value.name} is too large", where="--input", got=got)
    faults.raise_if_any()
    for value in (*graph.output, *graph.value_info):  # inferred anew with the sizes that are known now
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")


def _axis_sizes(given: Mapping[str, Any], axes: set[str]) -> dict[str, int]:
    sizes = {name: size for name, size in given.items() if name in axes and not isinstance(size, tuple)}
    for option, usual in AXES.items():
        if option in given and option not in axes:
            sizes |= {name: int(given[option]) for name in usual if name in axes}
    return {name: int(size) for name, size in sizes.items()}


def _bind_input(value: Any, given: Any, sizes: dict[str, int], faults: FaultList) -> None:
    if not value.type.HasField("tensor_type"):
        return
    kind = value.type.tensor_type
    dims = kind.shape.dim
    if isinstance(given, tuple):
        if kind.HasField("shape") and len(dims) != len(given):
            faults.add(
                code="bad_input", message=f"input {value.name} has another number of axes", where="--input",
                got=str(len(given)), expected=str(len(dims)),
            )  # fmt: skip
            return
        while len(dims) < len(given):
            dims.add()
    elif not kind.HasField("shape"):
        faults.add(code="unbound_input", message=f"input {value.name} has no shape", where="--input", hint=_HINT)
        return
    for index, dim in enumerate(dims):
        size = given[index] if isinstance(given, tuple) else sizes.get(dim.dim_param)
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            if size is not None and size != dim.dim_value:
                faults.add(
                    code="bad_input", message=f"axis {index} of input {value.name} is fixed", where="--input",
                    got=str(size), expected=str(dim.dim_value),
                )  # fmt: skip
        elif size is None:
            axis = dim.dim_param or index
            expected = f"{dim.dim_param}=4" if dim.dim_param else f"{value.name}:1x3x…"
            message = f"axis {axis} of input {value.name} has no size"
            faults.add(code="unbound_axis", message=message, where="--input", expected=expected, hint=_HINT)
        else:
            sizes.setdefault(dim.dim_param, size) if dim.dim_param else None
            dim.dim_value = size


_HINT = "Give sizes as --input name:1x3x224x224 or --input axis=4."
