"""FLOPs of each ONNX operator that multiplies, from its shapes; and which operators multiply nothing.

Operators: https://onnx.ai/onnx/operators, and for `com.microsoft` docs/ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from suanli.formulas import counting

Shape = tuple[int, ...]


class UnknownShapeError(Exception):
    """A shape or attribute that a formula needs is not known."""


@dataclass(frozen=True)
class Call:
    """An operator with the shapes of its inputs and outputs (None where unknown) and its attributes."""

    op: str
    inputs: tuple[Shape | None, ...]
    outputs: tuple[Shape | None, ...]
    attributes: Mapping[str, Any]

    def shape(self, index: int) -> Shape:
        """Shape of an input. Raises UnknownShapeError."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise UnknownShapeError(f"the shape of input {index + 1} is not known")
        return found

    def out(self, index: int = 0) -> Shape:
        """Shape of an output. Raises UnknownShapeError."""
        found = self.outputs[index] if index < len(self.outputs) else None
        if found is None:
            raise UnknownShapeError("the shape of the output is not known")
        return found

    def given(self, index: int) -> bool:
        """Whether an optional input is there with a known shape."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def attribute(self, name: str) -> int:
        """A whole-number attribute that must be there. Raises UnknownShapeError."""
        value = self.attributes.get(name)
        if not isinstance(value, int):
            raise UnknownShapeError(f"the attribute {name} is not there")
        return value


Product = tuple[str, int]  # id of the formula, FLOPs


def linear(tokens: int, in_features: int, out_features: int) -> Product:
    """A matrix product."""
    return "linear_flops", counting.linear_flops(tokens, in_features, out_features)


def _matmul(a: int = 0, b: int = 1) -> Callable[[Call], Product]:
    """Product of inputs `a` and `b`, batched and broadcast as numpy's matmul."""

    def count(call: Call) -> Product:
        left, right = call.shape(a), call.shape(b)
        if not left or not right or left[-1] != right[-2 if len(right) > 1 else 0]:
            raise UnknownShapeError("the shapes do not fit")
        batch = broadcast(left[:-2], right[:-2])
        rows = left[-2] if len(left) > 1 else 1
        return linear(prod(batch) * rows, left[-1], right[-1] if len(right) > 1 else 1)

    return count


def broadcast(a: Shape, b: Shape) -> Shape:
    """The common shape, numpy's rule."""
    size = max(len(a), len(b))
    left, right = (1,) * (size - len(a)) + a, (1,) * (size - len(b)) + b
    return tuple(max(x, y) for x, y in zip(left, right, strict=True))


def _fused_matmul(call: Call) -> Product:
    left, right = list(call.shape(0)), list(call.shape(1))
    for shape, name in ((left, "transA"), (right, "transB")):
        if call.attributes.get(name, 0) and len(shape) > 1:
            shape[-2:] = shape[:-3:-1]
    return _matmul()(Call(call.op, (tuple(left), tuple(right)), call.outputs, call.attributes))


def _gemm(a: int = 0, b: int = 1) -> Callable[[Call], Product]:
    def count(call: Call) -> Product:
        rows, inner = call.shape(a)[:: -1 if call.attributes.get("transA", 0) else 1]
        columns = call.shape(b)[0 if call.attributes.get("transB", 0) else 1]
        return linear(rows, inner, columns)

    return count


def _nbits(call: Call) -> Product:
    inner = call.attribute("K")
    return linear(prod(call.shape(0)) // inner, inner, call.attribute("N"))


def _conv(weight: int = 1) -> Callable[[Call], Product]:
    def count(call: Call) -> Product:
        kernel, out = call.shape(weight), call.out()
        flops = counting.conv_flops(out[0], prod(out[2:]), kernel[1], kernel[0], 1, prod(kernel[2:]))
        return "conv_flops", flops

    return count


def _conv_transpose(call: Call) -> Product:
    data, kernel = call.shape(0), call.shape(1)  # [B, C_in, …] and [C_in, C_out/g, …]
    return "conv_flops", counting.conv_flops(data[0], prod(data[2:]), data[1], kernel[1], 1, prod(kernel[2:]))


def _recurrent(gates: int) -> Callable[[Call], Product]:
    def count(call: Call) -> Product:
        data, weight = call.shape(0), call.shape(1)  # W: [directions, gates·u, I]
        hidden = call.attributes.get("hidden_size", weight[1] // gates)
        flops = counting.recurrent_flops(data[0] * data[1], weight[0], [weight[2]], gates, hidden, hidden, 0)
        return "recurrent_flops", flops

    return count


def _pairs(batch: int, queries: int, keys: int, heads: int, qk_dim: int, v_dim: int) -> Product:
    return "attention_flops", counting.attention_flops(batch * queries * keys, heads, qk_dim, v_dim)


def _attention(call: Call) -> Product:
    """`Attention` of opset 23: [B, H, S, d] or [B, S, H·d]; every pair, as the operator multiplies them."""
    query, key, value = call.shape(0), call.shape(1), call.shape(2)
    past = call.shape(4)[2] if call.given(4) else 0
    if len(query) == 4:
        return _pairs(query[0], query[2], key[2] + past, query[1], query[3], value[3])
    heads, groups = call.attribute("q_num_heads"), call.attribute("kv_num_heads")
    return _pairs(query[0], query[1], key[1] + past, heads, query[2] // heads, value[2] // groups)


def _packed_attention(call: Call) -> Product:
    """`com.microsoft.Attention`: one product for q, k and v, then the attention."""
    data, weight, heads = call.shape(0), call.shape(1), call.attribute("num_heads")
    sizes = call.attributes.get("qkv_hidden_sizes") or [weight[1] // 3] * 3
    past = call.shape(4)[3] if call.given(4) else 0
    projection = linear(data[0] * data[1], weight[0], weight[1])[1]
    pairs = _pairs(data[0], data[1], data[1] + past, heads, sizes[0] // heads, sizes[2] // heads)
    return "attention_flops", projection + pairs[1]


def _multi_head(call: Call) -> Product:
    """`com.microsoft.MultiHeadAttention` with separate [B, S, H·d] inputs."""
    query, key, value, heads = call.shape(0), call.shape(1), call.shape(2), call.attribute("num_heads")
    if len(query) != 3 or len(key) != 3 or len(value) != 3:
        raise UnknownShapeError("packed inputs")
    past = call.shape(6)[2] if call.given(6) else 0
    return _pairs(query[0], query[1], key[1] + past, heads, query[2] // heads, value[2] // heads)


def _grouped_query(call: Call) -> Product:
    """`com.microsoft.GroupQueryAttention`: keys as many as its present cache holds."""
    query, heads, groups = call.shape(0), call.attribute("num_heads"), call.attribute("kv_num_heads")
    width = query[2] // heads if call.given(1) else query[2] // (heads + 2 * groups)
    if len(call.outputs) > 1 and call.outputs[1] is not None:
        keys = call.out(1)[2]
    else:
        keys = query[1] + (call.shape(3)[2] if call.given(3) else 0)
    return _pairs(query[0], query[1], keys, heads, width, width)


def _einsum(call: Call) -> Product:
    equation = str(call.attributes.get("equation", "")).replace(" ", "")
    shapes = [call.shape(index) for index in range(len(call.inputs))]
    return einsum(equation, shapes)


_EQUATION = re.compile(r"[A-Za-z.,]+(->[A-Za-z.]*)?")


def einsum(equation: str, shapes: list[Shape]) -> Product:
    """Products of an einsum, left to right; one without a sum is elementwise. Raises UnknownShapeError."""
    equation = equation.replace(" ", "")
    if not _EQUATION.fullmatch(equation):
        raise UnknownShapeError("the equation cannot be read")
    terms, arrow, result = equation.partition("->")
    named = [_labelled(term, shape) for term, shape in zip(terms.split(","), shapes, strict=False)]
    if len(named) != len(shapes) or len(terms.split(",")) != len(shapes):
        raise UnknownShapeError("the equation does not fit the inputs")
    if not arrow:
        letters = [c for c in terms if c.isalpha()]
        result = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    kept_dots = {label for sizes in named for label in sizes if label.isdigit()} if "..." in result else set()
    final = {c for c in result if c.isalpha()} | kept_dots
    total, left = 0, named[0]
    for index, right in enumerate(named[1:], 2):
        later = set().union(final, *(sizes.keys() for sizes in named[index:]))
        both = set(left) & set(right) - later
        used = later | both  # what only one of them has and nothing keeps is summed beforehand
        sizes = {label: max(left.get(label, 1), right.get(label, 1)) for label in {**left, **right} if label in used}
        if both:
            inner = prod(sizes[label] for label in both)
            total += linear(prod(sizes.values()) // inner if inner else 0, inner, 1)[1]
        left = {label: size for label, size in sizes.items() if label in later}
    return "linear_flops", total


def _labelled(term: str, shape: Shape) -> dict[str, int]:
    """Label and size of each axis; the axes of an ellipsis are numbered from the right."""
    head, dots, tail = term.partition("...")
    spread = len(shape) - len(head) - len(tail)
    if spread < 0 or (spread and not dots):
        raise UnknownShapeError("the equation does not fit the inputs")
    labels = [*head, *(str(number) for number in range(spread, 0, -1)), *tail]
    return dict(zip(labels, shape, strict=True))


PRODUCTS: dict[tuple[str, str], Callable[[Call], Product]] = {
    ("", "MatMul"): _matmul(),
    ("", "MatMulInteger"): _matmul(),
    ("", "QLinearMatMul"): _matmul(0, 3),
    ("", "Gemm"): _gemm(),
    ("", "Conv"): _conv(),
    ("", "ConvInteger"): _conv(),
    ("", "QLinearConv"): _conv(3),
    ("", "DeformConv"): _conv(),
    ("", "ConvTranspose"): _conv_transpose,
    ("", "LSTM"): _recurrent(4),
    ("", "GRU"): _recurrent(3),
    ("", "RNN"): _recurrent(1),
    ("", "Attention"): _attention,
    ("", "Einsum"): _einsum,
    ("com.microsoft", "FusedMatMul"): _fused_matmul,
    ("com.microsoft", "TransposeMatMul"): _fused_matmul,
    ("com.microsoft", "FusedGemm"): _gemm(),
    ("com.microsoft", "QGemm"): _gemm(0, 3),
    ("com.microsoft", "FusedConv"): _conv(),
    ("com.microsoft", "MatMulNBits"): _nbits,
    ("com.microsoft", "MatMulBnb4"): _nbits,
    ("com.microsoft", "DynamicQuantizeMatMul"): _matmul(),
    ("com.microsoft", "MatMulIntegerToFloat"): _matmul(),
    ("com.microsoft", "DynamicQuantizeLSTM"): _recurrent(4),
    ("com.microsoft", "Attention"): _packed_attention,
    ("com.microsoft", "MultiHeadAttention"): _multi_head,
    ("com.microsoft", "GroupQueryAttention"): _grouped_query,
}

# Operators of the standard that multiply and have no formula with one agreed count.
NO_FORMULA = {"DFT", "STFT", "Det", "LinearAttention", "Inverse"}

# Operators of onnxruntime that multiply no matrices; their first output has the shape of their first input.
PASSIVE_CONTRIB = {
    "Gelu", "FastGelu", "QuickGelu", "BiasGelu", "LayerNormalization", "SimplifiedLayerNormalization",
    "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "RotaryEmbedding", "BiasAdd", "BiasSplitGelu",
    "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "GroupNorm", "SkipGroupNorm",
    "DequantizeLinear", "QuantizeLinear", "BiasDropout", "BiasSoftmax", "RelativePositionBias",
}  # fmt: skip
