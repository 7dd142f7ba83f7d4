"""What one operator of torch's dispatcher multiplies, from the shapes it is called with. Knows names, not torch.

`COSTS` maps an operator's name (`aten::mm`) to a function of its named arguments and outputs. Tensors are asked for
their shape, dtype and layout only, so the answer is the same on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from suanli.formulas import counting, operators
from suanli.readers.torch_module import products as of
from suanli.readers.torch_module import recurrent
from suanli.readers.torch_module.masks import Pairs, batch_heads, dense_pairs, packed_pairs
from suanli.readers.torch_module.products import Cost, Named, by_output, cost, two

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


def _conv_time_first(at: Named, out: Any) -> Cost:
    """[T, B, C_in] by a kernel of [K, C_in, C_out]."""
    kernel, wide, outer = at["weight"].shape
    return cost("conv", counting.conv_flops, out.shape[1], out.shape[0], wide, outer, 1, kernel)


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


def _own_distances(at: Named, _: Any) -> Cost:
    """Every two rows of one set, once."""
    rows, dim = at["self"].shape
    return cost("distance", operators.distance_flops, 1, rows * (rows - 1) // 2, 1, dim, backward="grad" in at)


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


def _quantized_stack(at: Named, _: Any) -> Cost:
    """A dynamically quantised LSTM or GRU: weights are packed, widths those of its input and state."""
    x, first = at.get("input", at.get("data")), at["hx"][0] if isinstance(at["hx"], list | tuple) else at["hx"]
    hidden, directions = first.shape[-1], 2 if at["bidirectional"] else 1
    widths = [x.shape[-1]] + [directions * hidden] * (at["num_layers"] - 1)
    gates = recurrent.GATES[at["operator"]]
    values: tuple[Any, ...] = (prod(x.shape[:-1]), directions, widths, gates, hidden, hidden, 0)
    return cost("recurrent", counting.recurrent_flops, *values)


def _quantized_cell(at: Named, _: Any) -> Cost:
    """One step of a quantised cell."""
    x, first = at["input"], at["hx"][0] if isinstance(at["hx"], list | tuple) else at["hx"]
    gates = next(gates for name, gates in _CELL_GATES.items() if name in at["operator"])
    values: tuple[Any, ...] = (prod(x.shape[:-1]), 1, [x.shape[-1]], gates, first.shape[-1], first.shape[-1], 0)
    return cost("recurrent", counting.recurrent_flops, *values)


_CELL_GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def _recurrent_backward(at: Named, out: Any) -> Cost:
    """What the fused kernel's backward has to give: every gradient, at every position but the first."""
    call = recurrent.read_call(at, out)
    flops = recurrent.backward_flops(call)
    return Cost("recurrent", operators.recurrent_backward_flops.__name__, flops, flops, backward=True)


CostOf = Callable[[Named, Any], Cost]

_LINEAR: dict[str, CostOf] = {
    "mm": two("self", "mat2"), "_int_mm": two("self", "mat2"), "_scaled_mm": two("self", "mat2"),
    "_scaled_mm_v2": two("self", "mat2"), "_sparse_mm": two("sparse", "dense"),
    "_sparse_sparse_matmul": two("self", "other"), "addmm": two("mat1", "mat2"),
    "_addmm_activation": two("mat1", "mat2"), "_sparse_addmm": two("mat1", "mat2"),
    "sparse_sampled_addmm": of.sampled, "_sparse_mm_reduce_impl": of.reduced,
    "_sparse_mm_reduce_impl_backward": of.reduced_backward, "sspaddmm": two("mat1", "mat2"),
    "hspmm": two("mat1", "mat2"),
    "linear": of.linear, "mkldnn_linear": of.linear,
    "_sparse_semi_structured_linear": of.semi_structured, "_sparse_semi_structured_mm": of.semi_structured,
    "_sparse_semi_structured_addmm": of.semi_structured, "_cslt_sparse_mm": by_output("dense_B"),
    "_weight_int8pack_mm": by_output("self"), "_weight_int4pack_mm": by_output("self"),
    "_weight_int4pack_mm_for_cpu": by_output("self"), "_weight_int4pack_mm_with_scales_and_zeros": by_output("self"),
    "_dyn_quant_matmul_4bit": by_output("inp"), "_wrapped_quantized_linear_prepacked": by_output("input"),
    "fbgemm_linear_int8_weight": by_output("input"), "fbgemm_linear_fp16_weight": by_output("input"),
    "fbgemm_linear_fp16_weight_fp32_activation": by_output("input"),
    "fbgemm_linear_int8_weight_fp32_activation": by_output("input"),
    "_grouped_mm": of.grouped, "_scaled_grouped_mm": of.grouped, "_scaled_grouped_mm_v2": of.grouped,
    "_trilinear": of.trilinear,
}  # fmt: skip
_MATMUL: dict[str, CostOf] = {
    "bmm": two("self", "mat2", "matmul"), "baddbmm": two("batch1", "batch2", "matmul"),
    "addbmm": two("batch1", "batch2", "matmul"), "mv": two("self", "vec", "matmul"),
    "addmv": two("mat", "vec", "matmul"), "dot": of.vectors, "vdot": of.vectors,
    "addr": of.rank_one,
}  # fmt: skip
_CONV: dict[str, CostOf] = dict.fromkeys(
    ("convolution", "_convolution", "convolution_overrideable", "cudnn_convolution", "mkldnn_convolution",
     "miopen_convolution", "thnn_conv2d", "_slow_conv2d_forward", "slow_conv3d", "slow_conv3d_forward",
     "slow_conv_dilated2d", "slow_conv_dilated3d", "conv_depthwise3d", "_conv_depthwise2d", "_mps_convolution",
     "_nnpack_spatial_convolution", "cudnn_convolution_relu", "cudnn_convolution_add_relu",
     "miopen_depthwise_convolution"), _conv,
)  # fmt: skip
_CONV |= dict.fromkeys(("cudnn_convolution_transpose", "miopen_convolution_transpose", "slow_conv_transpose2d",
                        "slow_conv_transpose3d"), _conv_transposed)  # fmt: skip
_CONV["conv_tbc"] = _conv_time_first
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
_OTHER |= dict.fromkeys(("_pdist_forward", "_pdist_backward"), _own_distances)
_OTHER |= dict.fromkeys(("quantized_lstm", "quantized_gru"), _quantized_stack)
_CELLS = [f"quantized_{cell}_cell" for cell in ("lstm", "gru", "rnn_tanh", "rnn_relu")]
_OTHER |= dict.fromkeys(_CELLS, _quantized_cell)
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

COSTS |= dict.fromkeys(("torch_attn::_varlen_attn", "torch_attn::_varlen_attn_out"), _packed_attention)
COSTS["torch_attn::_varlen_attn_backward"] = _packed_attention_backward
COSTS |= {f"quantized::{_name}_dynamic": _quantized_cell for _name in _CELLS}


def cost_of(name: str) -> CostOf | None:
    """The formula of an operator by its name; an in-place one multiplies what its plain form does."""
    return COSTS.get(name) or COSTS.get(name.rstrip("_"))


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
