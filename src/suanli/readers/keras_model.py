"""A Keras 3 model as a tree of layers: its graph of calls, each layer by its configuration and shapes.

`keras:package.module:factory`: the factory returns a functional or sequential model, or the model and the shape of its
input (without the batch) where that leaves sizes open. An axis left open in a sequence is the one `--seq` measures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from suanli.errors import ConfigError, Fault
from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Stream
from suanli.nouns.graph import Missing
from suanli.nouns.layers import Elementwise, Layer, Linear, Parameter
from suanli.readers.factory import call_factory, missing_extra, run_theirs
from suanli.readers.keras_layers import LAYERS, Called, NoFormulaError, Piece, Shape, is_passive, stream_name
from suanli.readers.kinds import KERAS

PREFIX = KERAS


def read_keras_model(text: str) -> Arch:
    """The architecture of what a factory returns. Raises ConfigError for what is no Keras model, MissingExtraError."""
    try:
        import keras  # noqa: PLC0415  an optional extra
    except ImportError as problem:
        raise missing_extra(
            "keras", "a Keras model (with a backend: KERAS_BACKEND=jax, torch or tensorflow)"
        ) from problem
    found, shape = call_factory(text, PREFIX), None
    if isinstance(found, tuple | list) and len(found) == 2:
        found, shape = found
    if not isinstance(found, keras.Model):
        _refuse("bad_factory", "the factory returned no Keras model", type(found).__name__, "a keras.Model")
    return read_keras(found, shape)


def read_keras(model: Any, shape: Any = None) -> Arch:
    """The architecture of a live model. Raises ConfigError for a model without a graph of calls."""
    graph = _graph_of(model)
    if graph is None:
        _refuse("no_graph", f"{type(model).__name__} {model.name} shows no graph of its layers", type(model).__name__,
                "a functional or sequential model; a subclassed one can be counted as jax:")  # fmt: skip
    if shape is not None:
        graph = run_theirs(_with_shape, "building the model for the given shape", graph, shape)
    tree = _Tree()
    nodes = tuple(tree.children(graph))
    missing = tree.missing.listed()
    streams = (*tree.streams.values(),)
    uses_tokens = TOKENS in tree.streams
    arch = Arch(
        name=model.name,
        root=Module(name="", children=nodes),
        streams=streams,
        main_stream=TOKENS if uses_tokens else SAMPLE,
        unit="token" if uses_tokens else "sample",
        notes=tuple(f"lower bound: {item.op} {item.shapes}, {item.calls}×: {item.why}" for item in missing),
        sources=("the graph and the configurations of the Keras model",),
    )
    assert arch.params_total == graph.count_params(), "a layer's parameters stand once"
    return arch


def _with_shape(graph: Any, shape: Any) -> Any:
    import keras  # noqa: PLC0415

    tensor = keras.Input(tuple(shape), dtype=graph.inputs[0].dtype)
    tensors = [tensor] if isinstance(graph.input, list) else tensor
    return _graph_of(keras.models.clone_model(graph, input_tensors=tensors))


def _refuse(code: str, message: str, got: str, expected: str) -> None:
    raise ConfigError(Fault(code=code, message=message, where="MODEL", got=got, expected=expected))


def _graph_of(model: Any) -> Any:
    """The model whose calls are known: itself, or what a sequential one holds."""
    inner = getattr(model, "_functional", None) or model
    return inner if hasattr(inner, "_nodes_by_depth") else None


def _calls(graph: Any) -> Iterator[Any]:
    """Calls of a graph in order of execution."""
    for depth in sorted(graph._nodes_by_depth, reverse=True):
        yield from graph._nodes_by_depth[depth]


@dataclass
class _Tree:
    """Builds the tree: streams met so far, what has no formula, layers already placed."""

    streams: dict[str, Stream] = field(default_factory=dict)
    missing: Missing = field(default_factory=Missing)
    placed: set[int] = field(default_factory=set)

    def children(self, graph: Any) -> Iterator[Module | Layer]:
        """Modules and leaves of a graph's calls."""
        calls = list(_calls(graph))
        repeats: dict[int, list[Any]] = {}
        for call in calls:
            repeats.setdefault(id(call.operation), []).append(call)
        for call in calls:
            operation = call.operation
            inner = _graph_of(operation)
            if inner is not None:
                yield from self._nested(operation, inner)
            elif id(operation) not in self.placed:
                self.placed.add(id(operation))
                yield from self._operation(operation, [_called(each) for each in repeats[id(operation)]])
            elif len(repeats[id(operation)]) and call is repeats[id(operation)][0]:
                self.missing.add(type(operation).__name__, operation.name, 1, "called again in another model")

    def _nested(self, operation: Any, inner: Any) -> Iterator[Module]:
        if id(operation) in self.placed:
            self.missing.add(type(operation).__name__, operation.name, 1, "a model called again")
            return
        self.placed.add(id(operation))
        yield Module(name=operation.name, children=tuple(self.children(inner)))

    def _operation(self, operation: Any, calls: list[Called]) -> Iterator[Module | Layer]:
        is_layer = hasattr(operation, "count_params")
        pieces: list[Piece] = []
        known = type(operation).__module__.startswith("keras.src.")
        reader = LAYERS.get(type(operation).__name__) if known else None
        if reader is not None:
            try:
                pieces = _joined([reader(call) for call in calls])
            except NoFormulaError as problem:
                self._list(operation, calls, str(problem))
        elif not is_passive(operation, is_layer):
            self._list(operation, calls, "no formula")
        elif is_layer and calls[0].inputs:
            pieces = [Piece(_elementwise(operation, calls[0].output), len(calls))]
        for piece in pieces:
            yield self._placed(piece, operation)
        if is_layer:
            held = sum(piece.layer.params * piece.copies for piece in pieces)
            yield from _rest(operation, held)

    def _list(self, operation: Any, calls: list[Called], why: str) -> None:
        shapes = ", ".join(str(list(shape)) for shape in calls[0].inputs[:4])
        self.missing.add(type(operation).__name__, f"{operation.name} {shapes}".strip(), len(calls), why)

    def _placed(self, piece: Piece, operation: Any) -> Module:
        """A leaf on its stream, trainable as the layer is."""
        name = stream_name(piece.positions)
        length = None if name == TOKENS else int(piece.positions)
        keys = getattr(piece.layer, "key_stream", None)
        self._stream(name, length)
        if keys is not None:
            self._stream(keys, None if keys == TOKENS else int(keys.split()[0]) if keys != SAMPLE else 1)
        layer = replace(piece.layer, trainable=bool(getattr(operation, "trainable", True)))
        indices = None if piece.copies == 1 else range(piece.copies)
        return Module(name="" if indices is None else "part", children=(layer,), stream=name, indices=indices)

    def _stream(self, name: str, length: int | None) -> None:
        if name != SAMPLE:
            self.streams.setdefault(name, Stream(name=name, length=length))


def _joined(calls: list[list[Piece]]) -> list[Piece]:
    """The pieces of a layer that is called several times: parameters once, positions added up.

    Raises NoFormulaError where the calls differ in more than their positions.
    """
    first = calls[0]
    if len(calls) == 1:
        return first
    joined: list[Piece] = []
    for place, piece in enumerate(first):
        again = [pieces[place] for pieces in calls]
        if piece.layer.params == 0:
            joined.extend(again)
            continue
        if not isinstance(piece.layer, Linear) and any(each.layer != piece.layer for each in again):
            raise NoFormulaError("called with several sizes")
        counts = [each.positions for each in again if isinstance(each.positions, int)]
        if len(counts) != len(again):
            raise NoFormulaError("called several times on a sequence of open length")
        joined.append(replace(piece, positions=sum(counts)))
    return joined


def _called(node: Any) -> Called:
    """The call of a node: shapes as they are in the graph."""
    inputs = tuple(tuple(tensor.shape) for tensor in node.input_tensors)
    output: Shape = tuple(node.output_tensors[0].shape) if node.output_tensors else ()
    keywords = {name: value for name, value in node.arguments.kwargs.items() if isinstance(value, bool)}
    return Called(node.operation, inputs, output, keywords)


def _elementwise(operation: Any, output: Shape) -> Layer:
    """A layer without products; its width is the output of one sample as far as it is known."""
    size = prod(axis for axis in output[1:] if axis is not None)
    return Elementwise(name=operation.name, op=type(operation).__name__, width=size)


def _rest(layer: Any, held: int) -> Iterator[Layer]:
    """What a layer holds beside its kernels: biases, scales and moving means, those that are not trained apart."""
    total = int(layer.count_params())
    if total < held:
        raise AssertionError(f"{layer.name} holds {total}, its leaves {held}")
    frozen = sum(prod(weight.shape) for weight in layer.non_trainable_weights) if layer.trainable else 0
    for name, count, trainable in (
        ("rest", total - held - frozen, bool(layer.trainable)), ("not_trained", frozen, False),
    ):  # fmt: skip
        if count:
            yield Parameter(name=f"{layer.name}.{name}", shape=(count,), trainable=trainable)
