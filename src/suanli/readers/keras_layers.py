"""Leaves of each Keras 3 layer from its configuration and the shapes it is called with.

Kernels stand as leaves that multiply; what else a layer holds (biases, moving means) is added by the reader as raw
parameters, so that a layer always has as many as Keras counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from suanli.nouns.arch import SAMPLE, TOKENS
from suanli.nouns.layers import Attention, Conv, Embedding, Layer, Linear, Norm, Recurrent

Shape = tuple[int | None, ...]


class NoFormulaError(Exception):
    """The layer, or this way of calling it, has no formula here."""


@dataclass(frozen=True)
class Called:
    """A layer with the shapes of its inputs and output, and how it was called. `outer`: positions it is mapped over."""

    layer: Any
    inputs: tuple[Shape, ...]
    output: Shape
    keywords: Mapping[str, Any] = field(default_factory=dict)
    outer: int = 1

    @property
    def config(self) -> dict[str, Any]:
        """The layer's own configuration."""
        return self.layer.get_config()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Piece:
    """A leaf and the stream it stands on: positions of one sample, or `TOKENS` where they are the sequence."""

    layer: Layer
    positions: int | str
    copies: int = 1


def positions_of(shape: Shape, outer: int = 1) -> int | str:
    """Positions of one sample: all axes but batch and channels. Raises NoFormulaError where two are unknown."""
    axes = shape[1:-1]
    unknown = sum(axis is None for axis in axes)
    known = prod(axis for axis in axes if axis is not None) * outer
    if unknown == 0:
        return known
    if unknown > 1 or known != 1:
        raise NoFormulaError("its sizes are not known: have the factory return the model and the shape of its input")
    return TOKENS


def width(shape: Shape) -> int:
    """Size of the last axis. Raises NoFormulaError where unknown."""
    if not shape or shape[-1] is None:
        raise NoFormulaError("the width of its input is not known")
    return shape[-1]


def _known(shape: Shape) -> tuple[int, ...]:
    if any(axis is None for axis in shape):
        raise NoFormulaError("its sizes are not known: have the factory return the model and the shape of its input")
    return tuple(axis for axis in shape if axis is not None)


def _dense(call: Called) -> list[Piece]:
    shape = call.inputs[0]
    layer = Linear(name=call.layer.name, in_features=width(shape), out_features=width(call.output))
    return [Piece(layer, positions_of(shape, call.outer))]


def _kernel(dense: Any, shape: Shape, outer: int, name: str) -> Piece:
    """An EinsumDense by its equation: axes the kernel shares with input and output are so many matrices apart."""
    terms, _, result = dense.equation.replace(" ", "").partition("->")
    data, weights = terms.split(",")
    sizes = dict(zip(weights, map(int, dense.kernel.shape), strict=True))
    if "..." in data:
        head, _, tail = data.partition("...")
        spread = len(shape) - len(head) - len(tail)
        fill = "αβγδεζηθ"[:spread]
        data, result = data.replace("...", fill), result.replace("...", fill)
    inner = [c for c in weights if c in data and c not in result]
    apart = [c for c in weights if c in data and c in result]
    outside = [size for c, size in zip(data[1:], shape[1:], strict=True) if c not in weights]
    layer = Linear(
        name=name, in_features=prod(sizes[c] for c in inner),
        out_features=prod(size for c, size in sizes.items() if c not in data),
    )  # fmt: skip
    return Piece(layer, positions_of((None, *outside, 1), outer), prod(sizes[c] for c in apart))


def _einsum_dense(call: Called) -> list[Piece]:
    return [_kernel(call.layer, call.inputs[0], call.outer, call.layer.name)]


def _spatial(shape: Shape, data_format: str) -> tuple[int, tuple[int, ...]]:
    """Channels and spatial sizes."""
    sizes = _known(shape[1:])
    return (sizes[-1], sizes[:-1]) if data_format == "channels_last" else (sizes[0], sizes[1:])


def _conv(call: Called, name: str, channels: int, kernel: tuple[int, ...], groups: int, transposed: bool) -> Piece:
    config = call.config
    inputs, in_size = _spatial(call.inputs[0], config["data_format"])
    _, out_size = _spatial(call.output, config["data_format"])
    layer = Conv(
        name=name, in_channels=inputs, out_channels=channels, kernel=kernel, in_size=in_size, out_size=out_size,
        groups=groups, bias=False, transposed=transposed,
    )  # fmt: skip
    return Piece(layer, call.outer)


def _plain_conv(transposed: bool) -> Callable[[Called], list[Piece]]:
    def read(call: Called) -> list[Piece]:
        config = call.config
        groups = config.get("groups", 1)
        kernel = tuple(config["kernel_size"])
        return [_conv(call, call.layer.name, config["filters"], kernel, groups, transposed)]

    return read


def _depthwise(call: Called) -> list[Piece]:
    config = call.config
    inputs = _spatial(call.inputs[0], config["data_format"])[0]
    channels = inputs * config["depth_multiplier"]
    return [_conv(call, call.layer.name, channels, tuple(config["kernel_size"]), inputs, False)]


def _separable(call: Called) -> list[Piece]:
    config = call.config
    inputs = _spatial(call.inputs[0], config["data_format"])[0]
    _, size = _spatial(call.output, config["data_format"])
    between, name = inputs * config["depth_multiplier"], call.layer.name
    first = _conv(call, f"{name}.depthwise", between, tuple(config["kernel_size"]), inputs, False)
    second = Conv(
        name=f"{name}.pointwise", in_channels=between, out_channels=config["filters"], kernel=(1,) * len(size),
        in_size=size, out_size=size, bias=False,
    )  # fmt: skip
    return [first, Piece(second, call.outer)]


_CELLS = {
    "LSTM": "lstm",
    "LSTMCell": "lstm",
    "GRU": "gru",
    "GRUCell": "gru",
    "SimpleRNN": "rnn",
    "SimpleRNNCell": "rnn",
}


def _cell(cell: Any, name: str, inputs: int) -> Recurrent:
    kind = _CELLS.get(type(cell).__name__)
    if kind is None:
        raise NoFormulaError(f"no formula for its cell {type(cell).__name__}")
    return Recurrent(name=name, cell=kind, input_size=inputs, hidden_size=cell.units, bias=False)


def _recurrent(call: Called) -> list[Piece]:
    shape = call.inputs[0]
    cell = getattr(call.layer, "cell", call.layer)
    cells = list(getattr(cell, "cells", [cell]))  # StackedRNNCells
    pieces, inputs = [], width(shape)
    for index, each in enumerate(cells):
        name = call.layer.name if len(cells) == 1 else f"{call.layer.name}.cell_{index}"
        pieces.append(Piece(_cell(each, name, inputs), positions_of(shape, call.outer)))
        inputs = each.units
    return pieces


def _bidirectional(call: Called) -> list[Piece]:
    found: list[Piece] = []
    for layer in (call.layer.forward_layer, call.layer.backward_layer):
        inner = Called(layer, call.inputs, call.output, outer=call.outer)
        found.extend(_named(piece, call.layer.name) for piece in _recurrent(inner))
    return found


def _named(piece: Piece, prefix: str) -> Piece:
    from dataclasses import replace  # noqa: PLC0415

    return replace(piece, layer=replace(piece.layer, name=f"{prefix}.{piece.layer.name}"))


def _time_distributed(call: Called) -> list[Piece]:
    shape = call.inputs[0]
    steps = shape[1]
    if steps is None:
        raise NoFormulaError("the number of its steps is not known")
    inner = call.layer.layer
    without = Called(
        inner, ((shape[0], *shape[2:]),), (call.output[0], *call.output[2:]), outer=call.outer * steps,
    )  # fmt: skip
    reader = LAYERS.get(type(inner).__name__)
    if reader is None:
        raise NoFormulaError(f"no formula for the {type(inner).__name__} in it")
    return [_named(piece, call.layer.name) for piece in reader(without)]


def _attention_core(call: Called, heads: tuple[int, int], dims: tuple[int, int], shapes: tuple[Shape, Shape]) -> Piece:
    query, keys = (positions_of(shape, call.outer) for shape in shapes)
    if call.outer != 1 or any(len(shape) != 3 for shape in shapes):
        raise NoFormulaError("its inputs are no [batch, positions, width]")
    causal = bool(call.keywords.get("use_causal_mask")) and query == keys
    layer = Attention(
        name=f"{call.layer.name}.attention", heads=heads[0], kv_heads=heads[1], qk_dim=dims[0], v_dim=dims[1],
        mask="causal" if causal else "full", key_stream=None if query == keys else stream_name(keys),
    )  # fmt: skip
    return Piece(layer, query)


def _multi_head(call: Called) -> list[Piece]:
    layer, name = call.layer, call.layer.name
    if getattr(layer, "_sliding_window", None) or call.config.get("sliding_window"):
        raise NoFormulaError("sliding windows of this layer are not read")
    query, value = call.inputs[0], call.inputs[1]
    key = call.inputs[2] if len(call.inputs) > 2 else value
    config = call.config
    if "num_query_heads" in config:
        heads, groups, dims = config["num_query_heads"], config["num_key_value_heads"], (config["head_dim"],) * 2
    else:
        heads = groups = config["num_heads"]
        dims = (config["key_dim"], config["value_dim"] or config["key_dim"])
    pieces = [
        _kernel(layer._query_dense, query, call.outer, f"{name}.query"),
        _kernel(layer._key_dense, key, call.outer, f"{name}.key"),
        _kernel(layer._value_dense, value, call.outer, f"{name}.value"),
        _attention_core(call, (heads, groups), dims, (query, value)),
    ]
    gate = getattr(layer, "_gate_dense", None)
    if gate is not None:
        pieces.append(_kernel(gate, query, call.outer, f"{name}.gate"))
    context: Shape = (*query[:-1], heads, dims[1])
    return [*pieces, _kernel(layer._output_dense, context, call.outer, f"{name}.output")]


def _dot_attention(call: Called) -> list[Piece]:
    query, value = call.inputs[0], call.inputs[1]
    if call.config.get("score_mode", "dot") != "dot":
        raise NoFormulaError("only its dot scores have a formula")
    return [_attention_core(call, (1, 1), (width(query), width(value)), (query, value))]


def _embedding(call: Called) -> list[Piece]:
    config, shape = call.config, call.inputs[0]
    layer = Embedding(name=call.layer.name, num=config["input_dim"], dim=config["output_dim"])
    return [Piece(layer, positions_of((*shape, 1), call.outer))]


def _norm(call: Called) -> list[Piece]:
    """Scale and shift are added with the other parameters."""
    shape = call.inputs[0]
    layer = Norm(name=call.layer.name, dim=width(shape), weight=False)
    return [Piece(layer, positions_of(shape, call.outer))]


def stream_name(positions: int | str) -> str:
    """The stream of so many positions a sample."""
    if isinstance(positions, str):
        return positions
    return SAMPLE if positions == 1 else f"{positions} positions"


LAYERS: dict[str, Callable[[Called], list[Piece]]] = {
    "Dense": _dense,
    "EinsumDense": _einsum_dense,
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D"), _plain_conv(False)),
    **dict.fromkeys(("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"), _plain_conv(True)),
    **dict.fromkeys(("DepthwiseConv1D", "DepthwiseConv2D"), _depthwise),
    **dict.fromkeys(("SeparableConv1D", "SeparableConv2D"), _separable),
    **dict.fromkeys(("LSTM", "GRU", "SimpleRNN", "RNN"), _recurrent),
    "Bidirectional": _bidirectional,
    "TimeDistributed": _time_distributed,
    "MultiHeadAttention": _multi_head,
    "GroupedQueryAttention": _multi_head,
    "GroupQueryAttention": _multi_head,
    "Attention": _dot_attention,
    "Embedding": _embedding,
    **dict.fromkeys(
        ("LayerNormalization", "BatchNormalization", "GroupNormalization", "RMSNormalization", "UnitNormalization"),
        _norm,
    ),
}

# Layers of Keras that multiply no matrices; the groups by the word they begin or end with.
_PASSIVE_STARTS = (
    "ZeroPadding", "Cropping", "UpSampling", "Global", "MaxPool", "Average", "AvgPool", "Adaptive", "SpatialDropout",
    "Random", "Auto", "Gaussian",
)  # fmt: skip
_PASSIVE = {
    "InputLayer", "Activation", "ActivityRegularization", "Add", "Subtract", "Multiply", "Average", "Maximum",
    "Minimum", "Concatenate",
    "Dropout", "AlphaDropout", "Flatten", "Reshape", "Permute", "RepeatVector", "Masking", "Identity",
    "ReLU", "LeakyReLU", "PReLU", "ELU", "Softmax", "Rescaling", "Normalization", "Resizing", "CenterCrop",
    "CategoryEncoding", "Discretization", "Hashing", "HashedCrossing", "IntegerLookup", "StringLookup",
    "TextVectorization", "MaxNumBoundingBoxes", "CutMix", "MixUp", "AugMix", "Solarization", "Equalization",
}  # fmt: skip
# Operations of keras.ops that multiply, or that hide what they do.
_PRODUCTS = {
    "Matmul", "Dot", "Einsum", "Tensordot", "Inner", "Outer", "Vdot", "Kron", "Vecdot", "Conv", "DepthwiseConv",
    "SeparableConv", "ConvTranspose", "DotProductAttention", "Map", "Scan", "AssociativeScan", "WhileLoop", "ForiLoop",
    "Cond", "Switch", "VectorizedMap", "Correlate", "Convolve",
}  # fmt: skip
_PRODUCT_MODULES = ("keras.src.ops.linalg", "keras.src.ops.math")


def is_passive(operation: Any, is_layer: bool) -> bool:
    """Whether an operation is known to multiply no matrices."""
    name, module = type(operation).__name__, type(operation).__module__
    if not module.startswith("keras.src."):
        return False
    if is_layer:
        return name in _PASSIVE or name.startswith(_PASSIVE_STARTS)
    return name not in _PRODUCTS and not module.startswith(_PRODUCT_MODULES)
