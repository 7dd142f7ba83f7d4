"""FLOPs of single operations, forward. Ints stay exact; float64 arrays pass through unchanged.

Counted are multiply-adds of matrix products and convolutions, two FLOPs each. Biases, norms, activations and
softmax are not (about 0.1–1 % of a transformer); the ledger lists them as uncounted.
"""

from __future__ import annotations

from fractions import Fraction

from suanli.formulas.registry import formula
from suanli.units import FLOPS_PER_MAC


@formula(unit="FLOPs", expression="2·T·I·O", source="definition: one multiply and one add per weight and position")
def linear_flops(tokens: int, in_features: int, out_features: int) -> int:
    """Product of a [T, I] tensor with an [I, O] matrix."""
    return FLOPS_PER_MAC * tokens * in_features * out_features


def _smaller(a: int, b: int) -> int:
    """min(a, b) for ints and arrays alike."""
    return a - (a - b) * (a > b)


def _triangle(n: int) -> int:
    return n * (n + 1) // 2


@formula(unit="pairs", expression="T·S", source="every query sees every key")
def full_pairs(queries: int, keys: int) -> int:
    """Pairs when nothing is masked."""
    return queries * keys


@formula(unit="pairs", expression="T·(2S − T)/2;  S²/2 when T = S", source="a causal mask without its diagonal's half")
def half_pairs(queries: int, keys: int) -> Fraction | float:
    """Half of the square, as trainers halve it; half a pair where S is odd, so exact only as a fraction."""
    twice = queries * (2 * keys - queries)
    return Fraction(twice, 2) if isinstance(twice, int) else twice / 2


@formula(
    unit="pairs",
    expression="Σ min(w, i) for i = S−T+1 … S;  S(S+1)/2 when T = S and w ≥ S",
    source="a causal mask: position i sees itself and the w−1 before it",
)
def causal_pairs(queries: int, keys: int, window: int) -> int:
    """Pairs a causal mask leaves, for the last T of S positions, each seeing at most w."""

    def up_to(n: int) -> int:
        near = _smaller(n, window)
        return _triangle(near) + (n - near) * window

    return up_to(keys) - up_to(keys - queries)


@formula(
    unit="pairs",
    expression="r(r+1)/2 + (T − r)·S, r = min(T, S)",
    source="torch's is_causal: query i sees keys 0 … i, whatever their number",
)
def first_aligned_pairs(queries: int, keys: int) -> int:
    """Pairs a causal mask leaves where the first query stands at the first key."""
    reach = _smaller(queries, keys)
    return causal_pairs(reach, reach, reach) + (queries - reach) * keys


@formula(
    unit="pairs",
    expression="causal_pairs(min(T, S), S, S)",
    source="flash attention (from 2.1): the last query sees every key; queries before the first key see nothing",
)
def last_aligned_pairs(queries: int, keys: int) -> int:
    """Pairs a causal mask leaves where the last query stands at the last key."""
    return causal_pairs(_smaller(queries, keys), keys, keys)


@formula(
    unit="pairs",
    expression="S + m·(2S − m − 1), m = min(r, S−1)",
    source="a two-sided window: a position sees itself and r to either side, fewer at the ends",
    legend={"positions": "S: positions", "reach": "r: how far a position sees to either side"},
)
def band_pairs(positions: int, reach: int) -> int:
    """Pairs within `reach` of each other."""
    near = _smaller(reach, positions - 1)
    return positions + near * (2 * positions - near - 1)


@formula(
    unit="pairs",
    expression="Σ (1 + (i−1) mod c) for i = S−T+1 … S",
    source="chunked attention (Llama 4): a position sees its own chunk up to itself",
)
def chunked_pairs(queries: int, keys: int, chunk: int) -> int:
    """Pairs when positions see only their own chunk, causally."""

    def up_to(n: int) -> int:
        return n // chunk * _triangle(chunk) + _triangle(n % chunk)

    return up_to(keys) - up_to(keys - queries)


@formula(
    unit="FLOPs",
    expression="2·P·H·d_qk + 2·P·H·d_v",
    source="two products: scores QKᵀ and context AV; with grouped queries every query head still multiplies",
)
def attention_flops(pairs: int, heads: int, qk_dim: int, v_dim: int) -> int:
    """Scores and context of all heads over the attended pairs."""
    return linear_flops(pairs, heads, qk_dim) + linear_flops(pairs, heads, v_dim)


@formula(
    unit="FLOPs",
    expression="2·T·k·m·h·f",
    source="each token passes k experts of m matrices; active, not held, parameters",
)
def experts_flops(tokens: int, experts_per_token: int, matrices: int, hidden: int, ffn: int) -> int:
    """The routed experts' matrices."""
    return matrices * linear_flops(tokens * experts_per_token, hidden, ffn)


@formula(
    unit="FLOPs",
    expression="2·B·positions·C_out·(C_in/g)·ΠK",
    source="kernel weights used once for each output position (each input position when transposed)",
    legend={
        "positions": "positions: output positions of one sample (input positions of a transposed convolution)",
        "in_channels": "C_in: input channels",
        "out_channels": "C_out: output channels",
        "groups": "g: groups",
        "kernel_size": "ΠK: elements of the kernel window",
    },
)
def conv_flops(batch: int, positions: int, in_channels: int, out_channels: int, groups: int, kernel_size: int) -> int:
    """A convolution of any rank, dilated, grouped or transposed."""
    return linear_flops(batch * positions, in_channels // groups * kernel_size, out_channels)


@formula(
    unit="FLOPs",
    expression="D·Σ_layers (2·T·G·u·(I_l + O) + 2·T·u·p)",
    source="input and state products of every gate at every step; projection p as in torch's LSTM",
    legend={
        "directions": "D: 2 when bidirectional",
        "depth_inputs": "I_l: input width of each layer of the stack",
        "gates": "G: LSTM 4, GRU 3, RNN 1",
        "hidden": "u: hidden units",
        "out_size": "O: width of the state fed back (p where projected, else u)",
        "proj_size": "p: projection, 0 for none",
    },
)
def recurrent_flops(
    tokens: int,
    directions: int,
    depth_inputs: list[int],
    gates: int,
    hidden: int,
    out_size: int,
    proj_size: int,
) -> int:
    """A recurrent stack over its whole sequence."""
    steps = [
        linear_flops(tokens, width + out_size, gates * hidden) + linear_flops(tokens, hidden, proj_size)
        for width in depth_inputs
    ]
    return directions * sum(steps)


@formula(
    unit="FLOPs",
    expression="2·T·H·d_k·d_v + 2·T·H·d_k·d_v",
    source="the recurrence: the state gains kᵀv, the output is q times the state; chunked kernels compute more",
    legend={"key_dim": "d_k: width of a key", "value_dim": "d_v: width of a value"},
)
def linear_attention_flops(tokens: int, heads: int, key_dim: int, value_dim: int) -> int:
    """Attention with a running state instead of pairs."""
    return 2 * linear_flops(tokens * heads, key_dim, value_dim)


@formula(
    unit="FLOPs",
    expression="k·N·T",
    source="6, 8 or 2 FLOPs per parameter and token: training, with full recompute, inference (arXiv:2001.08361 §2.1)",
    legend={"multiple": "k: 2 inference, 6 training, 8 training with full recompute"},
)
def ideal_flops(multiple: int, params: int, tokens: int) -> int:
    """The ideal form: parameters times tokens, attention left out."""
    return multiple * params * tokens
