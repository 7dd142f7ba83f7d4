"""FLOPs of the fused operators a trace meets, forward and backward, built from the products of `counting`."""

from __future__ import annotations

import math

from suanli.formulas.counting import conv_flops, linear_flops
from suanli.formulas.registry import formula
from suanli.units import FLOPS_PER_MAC

_COMPLEX = 4  # real multiply-adds of one complex multiply-add
_FLASH_AGAIN = "a fused kernel computes the scores once more (arXiv:2205.14135 §3.1): five products for four"


@formula(
    unit="FLOPs",
    expression="8·T·I·O",
    source="definition: a complex multiply-add is four real ones",
)
def complex_linear_flops(tokens: int, in_features: int, out_features: int) -> int:
    """Product of a complex [T, I] tensor with a complex [I, O] matrix."""
    return _COMPLEX * linear_flops(tokens, in_features, out_features)


@formula(
    unit="FLOPs",
    expression="2·nnz·O",
    source="definition: only stored elements are multiplied",
    legend={"nonzeros": "nnz: stored elements of the sparse matrix"},
)
def sparse_product_flops(nonzeros: int, out_features: int) -> int:
    """Product of a sparse matrix with a dense one of O columns."""
    return linear_flops(nonzeros, 1, out_features)


_GRADIENTS = {
    "to_query": "q: 1 where the queries' gradient is needed, else 0",
    "to_key": "k: the same for keys",
    "to_value": "v: the same for values",
}


@formula(
    unit="FLOPs",
    expression="v·2PHd_v + max(q, k)·2PHd_v + (q + k)·2PHd_qk",
    source="chain rule through softmax(QKᵀ)V: dV, dP, dQ and dK; four products where all three are needed",
    legend=_GRADIENTS,
)
def attention_backward_flops(
    pairs: int, heads: int, qk_dim: int, v_dim: int, to_query: int = 1, to_key: int = 1, to_value: int = 1
) -> int:
    """Gradients of attention, by what needs one."""
    scores = linear_flops(pairs, heads, qk_dim)
    context = linear_flops(pairs, heads, v_dim)
    return (to_value + max(to_query, to_key)) * context + (to_query + to_key) * scores


@formula(unit="FLOPs", expression="2·P·H·d_qk", source=_FLASH_AGAIN)
def attention_scores_flops(pairs: int, heads: int, qk_dim: int) -> int:
    """The scores QKᵀ alone, which fused backward kernels compute again."""
    return linear_flops(pairs, heads, qk_dim)


@formula(
    unit="FLOPs",
    expression="n·(forward)",
    source="the input's and the kernel's gradient each take as many products as the forward, groups kept",
    legend={
        "gradients": "n: 1 or 2, the gradients needed of input and kernel",
        "positions": "positions: output positions of one sample (input positions of a transposed convolution)",
        "in_channels": "C_in: input channels",
        "out_channels": "C_out: output channels",
        "groups": "g: groups",
        "kernel_size": "ΠK: elements of the kernel window",
    },
)
def conv_backward_flops(
    batch: int, positions: int, in_channels: int, out_channels: int, groups: int, kernel_size: int, gradients: int
) -> int:
    """Gradients of a convolution, by what needs one."""
    return gradients * conv_flops(batch, positions, in_channels, out_channels, groups, kernel_size)


@formula(
    unit="FLOPs",
    expression="(w_x + x)·2TGuI + w_h·2TGuO + 2T_h·GuO + w_p·2Tup + 2T_p·up",
    source="backpropagation through time: every product of the forward has a gradient for each side that needs one",
    legend={
        "gates": "G: LSTM 4, GRU 3, RNN 1",
        "width": "I: width of the layer's input",
        "hidden": "u: hidden units",
        "out_size": "O: width of the state fed back",
        "proj_size": "p: projection, 0 for none",
        "input_products": "w_x + x: gradients needed of input weights and input",
        "state_products": "w_h: 1 where the state weights' gradient is needed",
        "state_rows": "T_h: positions whose earlier state needs a gradient (not the first, unless h₀ does)",
        "proj_products": "w_p: 1 where the projection's gradient is needed",
        "proj_rows": "T_p: positions whose unprojected state needs a gradient",
    },
)
def recurrent_backward_flops(
    tokens: int, gates: int, width: int, hidden: int, out_size: int, proj_size: int, input_products: int,
    state_products: int, state_rows: int, proj_products: int, proj_rows: int,
) -> int:  # fmt: skip
    """Gradients of one direction of one recurrent layer, by what needs one."""
    gated = gates * hidden
    return (
        input_products * linear_flops(tokens, width, gated)
        + linear_flops(state_products * tokens + state_rows, out_size, gated)
        + linear_flops(proj_products * tokens + proj_rows, hidden, proj_size)
    )


@formula(
    unit="FLOPs",
    expression="5·B·n·log₂n complex, half of it where input or output is real",
    source="the customary count of a fast Fourier transform (radix 2), whatever the kernel does",
    legend={"points": "n: points transformed", "real": "1 where one side is real, else 0"},
)
def fft_flops(batch: int, points: int, real: int) -> int:
    """Fast Fourier transforms of n points."""
    return round(5 * batch * points * math.log2(points) / (1 + real)) if points > 1 else 0


@formula(
    unit="FLOPs",
    expression="2·B·R·C·d",
    source="definition: one multiply and one add for each pair of rows and coordinate",
    legend={"rows": "R: rows of the first set", "columns": "C: rows of the second", "dim": "d: coordinates"},
)
def distance_flops(batch: int, rows: int, columns: int, dim: int) -> int:
    """Distances between every two rows of two sets."""
    return linear_flops(batch * rows, dim, columns)


@formula(
    unit="FLOPs",
    expression="B·n²·m",
    source="forward substitution: n²/2 multiply-adds a column; the diagonal's divisions are in it",
    legend={"rows": "n: rows of the triangle", "columns": "m: columns solved for"},
)
def triangular_solve_flops(batch: int, rows: int, columns: int) -> int:
    """Triangular systems of n unknowns for m right-hand sides."""
    return linear_flops(batch * rows, rows, columns) // FLOPS_PER_MAC


@formula(
    unit="FLOPs",
    expression="2·(first product) + 2·(second product)",
    source="definition: three tensors contracted pairwise, as torch's bilinear layer does it",
    legend={"first": "multiply-adds of the first two tensors", "second": "multiply-adds with the third"},
)
def trilinear_flops(first: int, second: int) -> int:
    """A bilinear layer: two contractions one after the other."""
    return linear_flops(first, 1, 1) + linear_flops(second, 1, 1)


@formula(
    unit="FLOPs",
    expression="8·T·h² + 4·P·h + 4·T·h·f",
    source="projections, attention and MLP of torch.nn.TransformerEncoderLayer; f = 0 for attention alone",
    legend={"ffn": "f: inner width of the MLP, 0 for none"},
)
def encoder_layer_flops(tokens: int, pairs: int, hidden: int, ffn: int) -> int:
    """A transformer encoder layer run as one operator."""
    projections = 4 * linear_flops(tokens, hidden, hidden)
    return projections + 2 * linear_flops(pairs, 1, hidden) + 2 * linear_flops(tokens, hidden, ffn)
