"""What one operator of torch's dispatcher multiplies, from the shapes it is called with. Knows names, not torch.

`COSTS` maps an operator's name (`aten::mm`) to a function of its named arguments and outputs. Tensors are asked for
their shape, dtype and layout only, so the answer is the same on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from suanli.formulas import counting, operators
from suanli.readers.torch_module import recurrent
from suanli.readers.torch_module.masks import Pairs, batch_heads, dense_pairs, packed_pairs

Named = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """FLOPs of one call: `flops` over every pair, `masked` over the pairs the mask leaves (the same elsewhere).

    `extra` and `extra_masked` are what the kernel executes beyond what the model needs.
    """

    kind: str
    formula: str
    flops: int
    masked: int
    extra: int = 0
    extra_masked: int = 0
    backward: bool = False


def cost(kind: str, formula: Callable[..., int], *values: int, backward: bool = False) -> Cost:
    """The cost of a call whose formula has these arguments."""
    flops = formula(*values)
    return Cost(kind, formula.__name__, flops, flops, backward=backward)


# --- matrix products ----------------------------------------------------------------------------------------------


def _is_sparse(tensor: Any) -> bool:
    return "sparse" in str(tensor.layout)


def product_cost(left: Any, right: Any, kind: str = "linear") -> Cost:
    """[…, T, I] by […, I, O]: plain, complex or sparse."""
    for sparse, other, inner in ((left, right, -2), (right, left, -1)):
        if _is_sparse(sparse):
            columns = other.shape[-1] if inner == -2 else prod(other.shape[:-1])
            return cost("sparse", operators.sparse_product_flops, _stored(sparse), columns)
    columns = right.shape[-1] if right.dim() > 1 else 1
    rows = prod(left.shape[:-1]) if left.dim() > 1 else 1
    formula = operators.complex_linear_flops if left.dtype.is_complex else counting.linear_flops
    return cost(kind, formula, rows, left.shape[-1], columns)


def _stored(sparse: Any) -> int:
    """Elements a sparse tensor stores: values, blocks counted whole."""
    return int(sparse.values().numel()) if "coo" not in str(sparse.layout) else int(sparse._values().numel())


def _two(left: str, right: str, kind: str = "linear") -> Callable[[Named, Any], Cost]:
    return lambda at, _: product_cost(at[left], at[right], kind)


def _linear(at: Named, _: Any) -> Cost:
    """x by the transpose of a weight of [O, I], or of [I]."""
    x, weight = at["input"], at["weight"]
    if _is_sparse(weight):
        return cost("sparse", operators.sparse_product_flops, _stored(weight), prod(x.shape[:-1]))
    outputs = weight.shape[0] if weight.dim() > 1 else 1
    formula = operators.complex_linear_flops if x.dtype.is_complex else counting.linear_flops
    return cost("linear", formula, prod(x.shape[:-1]), x.shape[-1], outputs)


def by_output(first: str) -> Callable[[Named, Any], Cost]:
    """Packed weights: inputs from the argument, outputs from the result."""

    def found(at: Named, out: Any) -> Cost:
        x, result = at[first], out[0] if isinstance(out, tuple | list) else out
        return cost("linear", counting.linear_flops, prod(x.shape[:-1]), x.shape[-1], result.shape[-1])

    return found


def _semi_structured(at: Named, _: Any) -> Cost:
    """Half of a 2:4 sparse matrix is stored, but it stands for the whole; the dense side says how wide it is."""
    x, weight = at.get("input", at.get("mat2")), at.get("weight", at.get("mat1"))
    if "input" in at:
        return cost("linear", counting.linear_flops, prod(x.shape[:-1]), x.shape[-1], weight.shape[0])
    return cost("linear", counting.linear_flops, weight.shape[0], x.shape[-2], x.shape[-1])


def _grouped(at: Named, _: Any) -> Cost:
    """Groups of rows by their own matrices (2-D by 3-D), or groups of inner columns summed apart (2-D by 2-D)."""
    left, right = at["self"], at["mat2"]
    if left.dim() == 2 and right.dim() == 3:
        return cost("experts", counting.linear_flops, left.shape[0], left.shape[1], right.shape[2])
    if left.dim() == 3 and right.dim() == 2:
        return cost("experts", counting.linear_flops, left.shape[1], left.shape[2], right.shape[1])
    if left.dim() == 3:
        return cost("experts", counting.linear_flops, left.shape[0] * left.shape[1], left.shape[2], right.shape[2])
    return cost("experts", counting.linear_flops, left.shape[0], left.shape[1], right.shape[1])


def _vectors(at: Named, _: Any) -> Cost:
    x = at["self"]
    formula = operators.complex_linear_flops if x.dtype.is_complex else counting.linear_flops
    return cost("matmul", formula, 1, x.numel(), 1)


def _trilinear(at: Named, _: Any) -> Cost:
    """Three tensors, unsqueezed and contracted pairwise; what only the third has is not in the first product."""
    expands = [set(at[f"expand{i}"]) for i in (1, 2, 3)]
    tensors = [at[f"i{i}"] for i in (1, 2, 3)]
    rank = tensors[0].dim() + len(expands[0])
    sizes = [_unsqueezed(tensor.shape, expand, rank) for tensor, expand in zip(tensors, expands, strict=True)]
    summed = set(at["sumdim"])
    early = {dim for dim in summed if dim in expands[2]}
    first = [max(sizes[0][dim], sizes[1][dim]) for dim in range(rank)]
    kept = [1 if dim in early else first[dim] for dim in range(rank)]
    second = [max(kept[dim], sizes[2][dim]) for dim in range(rank)]
    return cost(
        "linear",
        operators.trilinear_flops,
        prod(first) if early else 0,
        prod(second) if summed - early else 0,
    )


def _unsqueezed(shape: Sequence[int], expand: set[int], rank: int) -> list[int]:
    rest = iter(shape)
    return [1 if dim in expand else next(rest) for dim in range(rank)]


# --- convolutions -------------------------------------------------------------------------------------------------


def _conv_arguments(x: Any, weight: Any, out_size: Sequence[int], transposed: bool, groups: int) -> tuple[int, ...]:
    """Batch, positions, channels in and out, groups, kernel size: kernels of a transposed one are used per input."""
    unbatched = x.dim() == weight.dim() - 1
    batch = 1 if unbatched else x.shape[0]
    spatial = x.shape[1:] if unbatched else x.shape[2:]
    channels_in = weight.shape[0] if transposed else weight.shape[1] * groups
    channels_out = weight.shape[1] * groups if transposed else weight.shape[0]
    positions = prod(spatial) if transposed else prod(out_size)
    return batch, positions, channels_in, channels_out, groups, prod(weight.shape[2:])


def _spatial(tensor: Any, weight: Any) -> Sequence[int]:
    return tuple(tensor.shape[-(weight.dim() - 2) :])


def _conv(at: Named, out: Any) -> Cost:
    x, weight = at.get("input", at.get("self")), at["weight"]
    size = _spatial(out, weight)
    return _complex_conv(x, "conv", counting.conv_flops, *_conv_arguments(x, weight, size, *_conv_kind(at)))


def _conv_kind(at: Named) -> tuple[bool, int]:
    return bool(at.get("transposed", False)), int(at.get("groups", 1))


def _complex_conv(x: Any, kind: str, formula: Callable[..., int], *values: int, backward: bool = False) -> Cost:
    found = cost(kind, formula, *values, backward=backward)
    if not x.dtype.is_complex:
        return found
    flops = operators.complex_linear_flops(1, 1, found.flops) // counting.linear_flops(1, 1, 1)
    return replace(found, flops=flops, masked=flops)


def _conv_transposed(at: Named, out: Any) -> Cost:
    return _conv({**at, "transposed": True}, out)


def _conv_backward(at: Named, _: Any) -> Cost:
    """By the output mask: gradients of input and kernel, each as much as the forward; the bias is a sum."""
    x, weight, grad = at.get("input", at.get("self")), at["weight"], at["grad_output"]
    values = _conv_arguments(x, weight, _spatial(grad, weight), *_conv_kind(at))
    gradients = sum(map(bool, at["output_mask"][:2]))
    return _complex_conv(x, "conv", operators.conv_backward_flops, *values, gradients, backward=True)


# --- attention ----------------------------------------------------------------------------------------------------


def attention_cost(pairs: Pairs, heads: int, qk_dim: int, v_dim: int) -> Cost:
    """Scores and context."""
    every, left = (counting.attention_flops(n, heads, qk_dim, v_dim) for n in (pairs.every, pairs.left))
    return Cost("attention", counting.attention_flops.__name__, every, left)


def attention_backward_cost(
    pairs: Pairs, heads: int, qk_dim: int, v_dim: int, needed: tuple[bool, bool, bool] = (True, True, True),
    fused: bool = True,
) -> Cost:  # fmt: skip
    """Gradients of attention; a fused kernel computes the scores again."""
    wanted = tuple(map(int, needed))
    every, left = (
        operators.attention_backward_flops(n, heads, qk_dim, v_dim, *wanted) for n in (pairs.every, pairs.left)
    )
    again, again_left = (
        operators.attention_scores_flops(n, heads, qk_dim) if fused else 0 for n in (pairs.every, pairs.left)
    )
    name = operators.attention_backward_flops.__name__
    return Cost("attention", name, every, left, again, again_left, backward=True)


def _names(at: Named) -> tuple[Any, Any, Any]:
    """Query, key and value under whichever names the operator has."""
    return (at.get("query", at.get("q")), at.get("key", at.get("k")), at.get("value", at.get("v")))


def _sdpa(at: Named, _: Any) -> Cost:
    """[…, H, T, d] by […, K, S, d]."""
    query, key, value = _names(at)
    batch, heads = batch_heads(query)
    pairs = dense_pairs(batch, query.shape[-2], key.shape[-2], bool(at.get("is_causal")))
    return attention_cost(pairs, heads, query.shape[-1], value.shape[-1])


def _sdpa_backward(at: Named, _: Any) -> Cost:
    query, key, value = _names(at)
    batch, heads = batch_heads(query)
    pairs = dense_pairs(batch, query.shape[-2], key.shape[-2], bool(at.get("is_causal")))
    return attention_backward_cost(pairs, heads, query.shape[-1], value.shape[-1])


def _packed(at: Named) -> tuple[Pairs, int, int, int]:
    """[B, T, H, d], or [ΣT, H, d] with the lengths of the sequences beside it."""
    query, key, value = _names(at)
    return packed_pairs(at, query, key), query.shape[-2], query.shape[-1], value.shape[-1]


def _packed_attention(at: Named, _: Any) -> Cost:
    return attention_cost(*_packed(at))


def _packed_attention_backward(at: Named, _: Any) -> Cost:
    return attention_backward_cost(*_packed(at))


def _native_attention(at: Named, _: Any) -> Cost:
    """Projections and attention of torch.nn.MultiheadAttention as one operator."""
    query, key, hidden = at["query"], at["key"], at["embed_dim"]
    tokens, keys = prod(query.shape[:-1]), prod(key.shape[:-1])
    pairs = tokens * key.shape[-2]
    products = counting.linear_flops(2 * (tokens + keys), hidden, hidden)  # q and out for queries, k and v for keys
    flops = products + counting.attention_flops(pairs, 1, hidden, hidden)
    return Cost("attention", operators.encoder_layer_flops.__name__, flops, flops)


def _encoder_layer(at: Named, _: Any) -> Cost:
    x = at["src"]
    tokens = prod(x.shape[:-1])
    values = tokens, tokens * x.shape[-2], at["embed_dim"], at["ffn_weight_1"].shape[0]
    return cost("encoder_layer", operators.encoder_layer_flops, *values)


# --- the rest -----------------------------------------------------------------------------------------------------


def _fft(at: Named, out: Any) -> Cost:
    """By the larger side: a real transform's other side holds half of the points."""
    x, dims = at["self"], at["dim"]
    real = not (x.dtype.is_complex and out.dtype.is_complex)
    whole = x if not x.dtype.is_complex or out.dtype.is_complex else out
    points = prod(whole.shape[dim] for dim in dims)
    batch = whole.numel() // points if points else 0
    return cost("fft", operators.fft_flops, batch, points, int(real))


def _distances(at: Named, _: Any) -> Cost:
    left, right = at["x1"], at["x2"]
    batch = max(prod(left.shape[:-2]), prod(right.shape[:-2]))
    values = batch, left.shape[-2], right.shape[-2], left.shape[-1]
    return cost("distance", operators.distance_flops, *values, backward="grad" in at)


def _triangular(at: Named, _: Any) -> Cost:
    """AX = B, or XA = B where A stands on the right."""
    triangle, known = (at["self"], at["B"]) if "B" in at else (at["A"], at["self"])
    rows = triangle.shape[-1]
    batch = max(prod(triangle.shape[:-2]), prod(known.shape[:-2]))
    columns = known.shape[-1] if at.get("left", True) else known.shape[-2]
    return cost("solve", operators.triangular_solve_flops, batch, rows, columns)


def _recurrent(at: Named, out: Any) -> Cost:
    call = recurrent.read_call(at, out)
    return cost("recurrent", counting.recurrent_flops, *recurrent.forward_arguments(call))


def _recurrent_backward(at: Named, out: Any) -> Cost:
    """What the fused kernel's backward has to give: every gradient, at every position but the first."""
    call = recurrent.read_call(at, out)
    flops = recurrent.backward_flops(call)
    return Cost("recurrent", operators.recurrent_backward_flops.__name__, flops, flops, backward=True)


CostOf = Callable[[Named, Any], Cost]

_LINEAR: dict[str, CostOf] = {
    "mm": _two("self", "mat2"), "_int_mm": _two("self", "mat2"), "_scaled_mm": _two("self", "mat2"),
    "_scaled_mm_v2": _two("self", "mat2"), "_sparse_mm": _two("sparse", "dense"),
    "_sparse_sparse_matmul": _two("self", "other"), "addmm": _two("mat1", "mat2"),
    "_addmm_activation": _two("mat1", "mat2"), "_sparse_addmm": _two("mat1", "mat2"),
    "sparse_sampled_addmm": _two("mat1", "mat2"), "sspaddmm": _two("mat1", "mat2"), "hspmm": _two("mat1", "mat2"),
    "linear": _linear, "mkldnn_linear": _linear, "_mkl_linear": _linear,
    "_sparse_semi_structured_linear": _semi_structured, "_sparse_semi_structured_mm": _semi_structured,
    "_sparse_semi_structured_addmm": _semi_structured, "_cslt_sparse_mm": by_output("dense_B"),
    "_weight_int8pack_mm": by_output("self"), "_weight_int4pack_mm": by_output("self"),
    "_weight_int4pack_mm_for_cpu": by_output("self"), "_weight_int4pack_mm_with_scales_and_zeros": by_output("self"),
    "_dyn_quant_matmul_4bit": by_output("inp"), "_wrapped_quantized_linear_prepacked": by_output("input"),
    "fbgemm_linear_int8_weight": by_output("input"), "fbgemm_linear_fp16_weight": by_output("input"),
    "fbgemm_linear_fp16_weight_fp32_activation": by_output("input"),
    "fbgemm_linear_int8_weight_fp32_activation": by_output("input"),
    "_grouped_mm": _grouped, "_scaled_grouped_mm": _grouped, "_scaled_grouped_mm_v2": _grouped,
    "_trilinear": _trilinear,
}  # fmt: skip
_MATMUL: dict[str, CostOf] = {
    "bmm": _two("self", "mat2", "matmul"), "baddbmm": _two("batch1", "batch2", "matmul"),
    "addbmm": _two("batch1", "batch2", "matmul"), "mv": _two("self", "vec", "matmul"),
    "addmv": _two("mat", "vec", "matmul"), "dot": _vectors, "vdot": _vectors,
}  # fmt: skip
_CONV: dict[str, CostOf] = dict.fromkeys(
    ("convolution", "_convolution", "convolution_overrideable", "cudnn_convolution", "mkldnn_convolution",
     "miopen_convolution", "thnn_conv2d", "_slow_conv2d_forward", "slow_conv3d", "slow_conv3d_forward",
     "slow_conv_dilated2d", "slow_conv_dilated3d", "conv_depthwise3d", "_conv_depthwise2d", "mps_convolution",
     "_nnpack_spatial_convolution", "cudnn_convolution_relu", "cudnn_convolution_add_relu",
     "miopen_depthwise_convolution"), _conv,
)  # fmt: skip
_CONV |= dict.fromkeys(("cudnn_convolution_transpose", "miopen_convolution_transpose", "slow_conv_transpose2d",
                        "slow_conv_transpose3d"), _conv_transposed)  # fmt: skip
_CONV |= dict.fromkeys(("convolution_backward", "convolution_backward_overrideable"), _conv_backward)
_DENSE = ("flash_attention", "efficient_attention", "cudnn_attention", "fused_attention_overrideable")
_ATTENTION: dict[str, CostOf] = {f"_scaled_dot_product_{name}": _sdpa for name in _DENSE}
_ATTENTION |= {f"_scaled_dot_product_{name}_backward": _sdpa_backward for name in _DENSE}
_ATTENTION |= {
    "_scaled_dot_product_flash_attention_for_cpu": _sdpa,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _sdpa_backward,
    "_scaled_dot_product_attention_math": _sdpa, "_scaled_dot_product_attention_math_for_mps": _sdpa,
    "scaled_dot_product_attention": _sdpa,
    "_flash_attention_forward": _packed_attention, "_efficient_attention_forward": _packed_attention,
    "_cudnn_attention_forward": _sdpa, "_cudnn_attention_backward": _sdpa_backward,
    "_flash_attention_backward": _packed_attention_backward,
    "_efficient_attention_backward": _packed_attention_backward,
    "_native_multi_head_attention": _native_attention, "_transformer_encoder_layer_fwd": _encoder_layer,
}  # fmt: skip
_OTHER: dict[str, CostOf] = dict.fromkeys(("_fft_c2c", "_fft_r2c", "_fft_c2r"), _fft)
_OTHER |= dict.fromkeys(("_cdist_forward", "_cdist_backward", "_euclidean_dist"), _distances)
_OTHER |= dict.fromkeys(("linalg_solve_triangular", "triangular_solve"), _triangular)
_OTHER |= dict.fromkeys(recurrent.FORWARD_OPERATORS, _recurrent)
_OTHER |= dict.fromkeys(recurrent.BACKWARD_OPERATORS, _recurrent_backward)

COSTS: dict[str, CostOf] = {f"aten::{name}": found for name, found in
                            (_LINEAR | _MATMUL | _CONV | _ATTENTION | _OTHER).items()}  # fmt: skip

# Operators of other packages, known by name and argument names alone; none has to be installed.
for _package in ("flash_attn", "flash_attn_2", "flash_attn_3", "flash_attn_4"):
    COSTS |= {
        f"{_package}::{_name}": _found
        for _found, _names_ in (
            (_packed_attention, ("_flash_attn_forward", "_flash_attn_varlen_forward", "fwd", "varlen_fwd")),
            (_packed_attention_backward, ("_flash_attn_backward", "_flash_attn_varlen_backward", "bwd", "varlen_bwd")),
        )
        for _name in _names_
    }


def _quantized_linear(at: Named, out: Any) -> Cost:
    return by_output("X" if "X" in at else "input")(at, out)


def _quantized_conv(at: Named, out: Any) -> Cost:
    """The packed kernel says its own shape."""
    weight, groups = at["packed_weight"].unpack()[0], at["packed_weight"].groups()
    values = _conv_arguments(at["qx"], weight, _spatial(out, weight), False, groups)
    return cost("conv", counting.conv_flops, *values)


for _name in ("linear", "linear_relu", "linear_dynamic", "linear_relu_dynamic", "linear_dynamic_fp16",
              "linear_unpacked_dynamic_fp16", "linear_leaky_relu", "linear_tanh"):  # fmt: skip
    COSTS[f"quantized::{_name}"] = _quantized_linear
for _name in ("conv1d", "conv2d", "conv3d", "conv1d_relu", "conv2d_relu", "conv3d_relu"):
    COSTS[f"quantized::{_name}"] = _quantized_conv
COSTS["onednn::qlinear_pointwise"] = by_output("qx")
COSTS["mkldnn::_linear_pointwise"] = by_output("X")
COSTS["mkl::_mkl_linear"] = by_output("X")
