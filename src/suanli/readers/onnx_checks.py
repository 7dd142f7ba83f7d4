"""What an ONNX file must keep to before anything is worked out: names, sizes, dtypes, and how far functions unfold."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from suanli.errors import shown
from suanli.readers.binary import Faults, refuse

MAX_NODES = 30_000  # of the largest exported models there are a third as many; shapes of these take seconds
MAX_GRAPHS = 300  # bodies and branches, each of which needs shapes of its own
MAX_NESTING = 50
MAX_ELEMENTS = 2**63  # of one tensor

DOMAINS = {"ai.onnx": ""}


def domain_of(node: Any) -> str:
    """The domain of an operator, the standard one by its short name."""
    return str(DOMAINS.get(node.domain, node.domain))


def subgraphs(node: Any) -> Iterator[tuple[str, Any]]:
    """Bodies and branches of a node, by the attribute's name."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for graph in attribute.graphs:
            yield attribute.name, graph


def all_initializers(graph: Any) -> Iterator[Any]:
    """Stored tensors of a graph and of those inside it."""
    yield from graph.initializer
    for node in graph.node:
        for _, inner in subgraphs(node):
            yield from all_initializers(inner)


def check_model(model: Any, path: Path) -> int:
    """How many operations a model unfolds to. Raises UnreadableFileError for one that cannot be worked out."""
    if not model.graph.node:
        refuse(path, "not_onnx", "the file holds no operations", hint="Is it an ONNX model, and whole?")
    nodes, graphs = sizes_of(model.graph)
    if nodes <= MAX_NODES:
        nodes = _unfolded(model, path)
    if nodes > MAX_NODES:
        refuse(path, "too_many_nodes", "too many operations", got=f"{nodes:,}", expected=f"at most {MAX_NODES:,}")
    if graphs > MAX_GRAPHS:
        refuse(path, "too_many_graphs", "too many loops and branches", got=f"{graphs:,}", expected=f"≤ {MAX_GRAPHS}")
    check_order(model.graph, path)
    _check_tensors(model.graph, path)
    return nodes


def sizes_of(graph: Any) -> tuple[int, int]:
    """Operations, those of bodies and branches among them, and how many of these there are."""
    total, graphs, level = 0, 0, [graph]
    while level and total <= MAX_NODES:
        total += sum(len(each.node) for each in level)
        graphs += len(level)
        level = [inner for each in level for node in each.node for _, inner in subgraphs(node)]
    return total, graphs


# --- functions ----------------------------------------------------------------------------------------------------

_Key = tuple[str, str]


def _unfolded(model: Any, path: Path) -> int:
    """Operations with every call of the file's own functions replaced by what that function does, counted, not done."""
    functions = {(function.domain, function.name): function for function in model.functions}
    known: dict[_Key, int] = {}

    def size(nodes: Any, callers: tuple[_Key, ...]) -> int:
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key in functions:
                total += of(key, callers)
            else:
                total += 1 + sum(size(inner.node, callers) for _, inner in subgraphs(node))
        return total

    def of(key: _Key, callers: tuple[_Key, ...]) -> int:
        if key in callers:
            refuse(path, "cycle", f"the function {shown(key[1])} calls itself", got=" → ".join(k[1] for k in callers))
        if len(callers) > MAX_NESTING:
            refuse(path, "too_deep", "functions are nested too deep", expected=f"at most {MAX_NESTING}")
        if key not in known:
            known[key] = size(functions[key].node, (*callers, key))
        return known[key]

    return size(model.graph.node, ())


# --- names --------------------------------------------------------------------------------------------------------


def check_order(graph: Any, path: Path, outer: tuple[set[str], ...] = ()) -> None:
    """Every value is made once, and before it is used. Raises UnreadableFileError for cycles and values of nowhere."""
    if len(outer) > MAX_NESTING:
        refuse(path, "too_deep", "loops and branches are nested too deep")
    known = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    known |= {tensor.values.name for tensor in graph.sparse_initializer}
    reach = (known, *outer)  # not one set: a graph of many branches would copy it for each
    made = {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        at = f"{node.op_type} {shown(node.name)}"
        for name in node.input:
            if name and not any(name in names for names in reach):
                what = (
                    "is used before it is made: the graph has a cycle or is not sorted"
                    if name in made
                    else "is made nowhere"
                )
                refuse(path, "cycle" if name in made else "unknown_value", f"{shown(name)} {what}", got=at)
        for _, inner in subgraphs(node):
            check_order(inner, path, reach)
        twice = next((name for name in node.output if name and name in known), None)
        if twice is not None:
            refuse(path, "made_twice", f"{shown(twice)} is made twice", got=at)
        known.update(node.output)


# --- tensors ------------------------------------------------------------------------------------------------------


def _check_tensors(graph: Any, path: Path) -> None:
    """Stored tensors have sizes and dtypes that can be; all that have not are listed."""
    import onnx  # noqa: PLC0415

    dtypes = set(onnx.TensorProto.DataType.values())
    faults = Faults(path)
    for tensor in all_initializers(graph):
        sizes = list(tensor.dims)
        if any(size < 0 for size in sizes) or prod(sizes) >= MAX_ELEMENTS:
            faults.add("bad_shape", "a size that cannot be", shown(tensor.name), got=shown(sizes))
        if tensor.data_type not in dtypes:
            faults.add("bad_dtype", "unknown dtype", shown(tensor.name), got=str(tensor.data_type))
    faults.raise_if_any()
