"""Seconds of kernels on one device: matrix products, attention, passes over memory.

Every function takes numbers or float64 arrays, which broadcast. What a device is enters as fitted numbers of its curve
(`catalog/curves`): an attained rate, how much a part-filled wave costs, how slowly a short inner dimension starts.
"""

from __future__ import annotations

from typing import Any

from suanli.formulas.registry import formula
from suanli.units import FLOPS_PER_MAC

# Numbers and numpy arrays pass alike; numpy itself stays out of the formulas, so nothing loads it.
Numbers = Any

# Output tiles that libraries choose from; the fastest for a shape is taken, as their heuristics try to.
TILES = ((256, 256), (256, 128), (128, 256), (128, 128), (64, 128), (128, 64))
_TILE = 128  # the side to which the cost of a smaller tile is referred, and the queries of an attention block
_NOTHING = 1e-30  # keeps 0/0 out where nothing is computed

_FITTED = "fitted by scripts/fit_curves.py to measured kernel times; the form is this project's own"
_CURVE = {
    "m": "m: rows of the output",
    "n": "n: columns of the output",
    "k": "k: inner dimension",
    "count": "c: products of this shape in one kernel",
    "units": "U: multiprocessors of the device",
    "flop_per_s": "X: attained rate of a product without edges [FLOP/s]",
    "wave_exponent": "a: part of the time lost in part-filled waves, 0..1",
    "short_k": "k₀: inner dimension that only fills the pipeline",
    "small_tile": "e: cost of a tile's edges against its area",
    "sharpness": "p: how sharply the slower of arithmetic and memory wins",
    "bytes_per_s": "W: attained memory rate [B/s]",
    "floor_s": "t₀: time of an empty kernel [s]",
    "operand_bytes": "b: bytes of one number of the operands",
    "output_bytes": "b_o: bytes of one number of the output",
}


def ceiling(a: Numbers, b: Numbers) -> Numbers:
    """`a / b` rounded up, for numbers and arrays alike."""
    return -(-a // b)


def smaller(a: Numbers, b: Numbers) -> Numbers:
    """min(a, b) for numbers and arrays alike, exact."""
    return a * (a <= b) + b * (a > b)


def larger(a: Numbers, b: Numbers) -> Numbers:
    """max(a, b) for numbers and arrays alike, exact."""
    return a * (a >= b) + b * (a < b)


@formula(
    unit="s",
    expression="(a^p + b^p)^(1/p)",
    source="between the slower of the two (p → ∞: perfect overlap) and their sum (p = 1: none)",
    legend={"first_s": "a: one time [s]", "second_s": "b: the other [s]", "sharpness": _CURVE["sharpness"]},
)
def joined_s(first_s: Numbers, second_s: Numbers, sharpness: float) -> Numbers:
    """Time of two activities of one kernel that overlap partly."""
    slow, fast = larger(first_s, second_s), smaller(first_s, second_s)
    return slow * (1 + (fast / (slow + _NOTHING)) ** sharpness) ** (1 / sharpness)


@formula(
    unit="ratio",
    expression="⌈⌈m/t_m⌉·⌈n/t_n⌉·c/U⌉·U·t_m·t_n/(m·n·c)",
    source="definition: one tile a multiprocessor at a time, all waves as long as a full one",
    legend={**_CURVE, "tile_m": "t_m: rows of a tile", "tile_n": "t_n: columns of a tile"},
)
def wave_loss(m: Numbers, n: Numbers, count: Numbers, units: float, tile_m: int, tile_n: int) -> Numbers:
    """How much more output the waves of tiles could hold than is asked for, 1 or more."""
    tiles = ceiling(m, tile_m) * ceiling(n, tile_n) * count
    return ceiling(tiles, units) * (units * tile_m * tile_n) / (m * n * count + _NOTHING)


@formula(
    unit="s",
    expression="min over tiles of 2·m·n·k·c/X·loss^a·(1 + k₀/k)·(1 + e·(t/t_m + t/t_n)/2), t = 128",
    source=_FITTED,
    legend=_CURVE,
)
def tiled_product_s(
    m: Numbers,
    n: Numbers,
    k: Numbers,
    count: Numbers,
    units: float,
    flop_per_s: float,
    wave_exponent: float,
    short_k: float,
    small_tile: float,
) -> Numbers:
    """Time of the arithmetic of `count` products [m, k] × [k, n], by the best of TILES."""
    plain_s = FLOPS_PER_MAC * m * n * count * (k + short_k) / flop_per_s
    best: Numbers = None
    for tile_m, tile_n in TILES:
        edges = 1 + small_tile * (_TILE / tile_m + _TILE / tile_n) / 2
        loss = wave_loss(m, n, count, units, tile_m, tile_n) ** wave_exponent * edges
        best = loss if best is None else smaller(best, loss)
    return plain_s * best


@formula(
    unit="bytes",
    expression="c·(b·(m·k + k·n) + b_o·m·n)",
    source="every operand read once, the output written once",
    legend=_CURVE,
)
def product_bytes(
    m: Numbers, n: Numbers, k: Numbers, count: Numbers, operand_bytes: float, output_bytes: float
) -> Numbers:
    """Least memory traffic of `count` products."""
    return count * (operand_bytes * (m * k + k * n) + output_bytes * m * n)


@formula(
    unit="s",
    expression="(arithmetic^p + (bytes/W)^p)^(1/p) + t₀ + quantising",
    source=_FITTED,
    legend={
        **_CURVE,
        "quantise_bytes": "b_q: traffic of quantising one number of the activations; 0 for 16-bit products",
    },
)
def matmul_s(
    m: Numbers,
    n: Numbers,
    k: Numbers,
    count: Numbers,
    units: float,
    flop_per_s: float,
    wave_exponent: float,
    short_k: float,
    small_tile: float,
    sharpness: float,
    bytes_per_s: float,
    floor_s: float,
    operand_bytes: float,
    output_bytes: float,
    quantise_bytes: float,
) -> Numbers:
    """Time of one kernel of `count` products [m, k] × [k, n]; 0 where there is nothing to multiply."""
    arithmetic_s = tiled_product_s(m, n, k, count, units, flop_per_s, wave_exponent, short_k, small_tile)
    memory_s = product_bytes(m, n, k, count, operand_bytes, output_bytes) / bytes_per_s
    quantise_s = count * m * k * quantise_bytes / bytes_per_s
    return (joined_s(arithmetic_s, memory_s, sharpness) + quantise_s + floor_s) * (m * n * k * count > 0)


@formula(
    unit="bytes",
    expression="b·B·(T·H·(d_qk + d_v) + S·K·(d_qk + d_v))",
    source="queries, keys and values read once, the context written once; fused attention stores no scores",
    legend={"operand_bytes": _CURVE["operand_bytes"]},
)
def attention_bytes(
    batch: Numbers,
    heads: Numbers,
    kv_heads: Numbers,
    queries: Numbers,
    keys: Numbers,
    qk_dim: Numbers,
    v_dim: Numbers,
    operand_bytes: float,
) -> Numbers:
    """Least memory traffic of one fused attention, forward."""
    return operand_bytes * batch * (qk_dim + v_dim) * (queries * heads + keys * kv_heads)


@formula(
    unit="s",
    expression="(2·B·H·(P + T·q₀)·(d_qk + d_v)/X·(1 + d₀/d)·(1 + g·max(0, d − 128)/128)·loss^a)^p + (bytes/W)^p, "
    "root p, + t₀; loss of ⌈T/128⌉·B·H blocks; d = (d_qk + d_v)/2",
    source=_FITTED,
    legend={
        **_CURVE,
        "pairs": "P: pairs attended by one head of one sequence",
        "longest_row": "w: most keys that one query attends to",
        "edge_pairs": "q₀: pairs computed and masked away, for each query",
        "narrow_head": "d₀: width of a head that the softmax costs as much as",
        "wide_head": "g: slowing of heads wider than 128",
    },
)
def attention_s(
    batch: Numbers,
    heads: Numbers,
    kv_heads: Numbers,
    queries: Numbers,
    keys: Numbers,
    pairs: Numbers,
    longest_row: Numbers,
    qk_dim: Numbers,
    v_dim: Numbers,
    units: float,
    flop_per_s: float,
    wave_exponent: float,
    edge_pairs: float,
    narrow_head: float,
    wide_head: float,
    sharpness: float,
    bytes_per_s: float,
    floor_s: float,
    operand_bytes: float,
) -> Numbers:
    """Time of one fused attention, forward; 0 where there is nothing to attend to."""
    width = (qk_dim + v_dim) / 2
    per_width = width + narrow_head
    wide = 1 + wide_head * larger(width - _TILE, 0 * width) / _TILE
    work = 2 * FLOPS_PER_MAC * batch * heads * (pairs + edge_pairs * queries) * per_width * wide
    loss = wave_loss(queries, 1, batch * heads, units, _TILE, 1) ** wave_exponent
    longest = 2 * FLOPS_PER_MAC * _TILE * smaller(keys, longest_row) * per_width * wide * units
    work = larger(work * loss, longest)
    moved_s = attention_bytes(batch, heads, kv_heads, queries, keys, qk_dim, v_dim, operand_bytes) / bytes_per_s
    return (joined_s(work / flop_per_s, moved_s, sharpness) + floor_s) * (batch * heads * queries > 0)


@formula(
    unit="s",
    expression="t_forward·2.5/r",
    source="five products instead of two: scores again, and gradients of Q, K, V and of the scores (arXiv:2205.14135)",
    legend={
        "forward_s": "t_forward: time of the forward kernel [s]",
        "backward_rate": "r: rate of the backward kernel over that of the forward one",
    },
)
def attention_backward_s(forward_s: Numbers, backward_rate: float) -> Numbers:
    """Time of the backward pass of fused attention."""
    return forward_s * 5 / 2 / backward_rate


@formula(
    unit="s",
    expression="t₀ + n/W",
    source="fitted to products that stream a large matrix past a few rows",
    legend={
        "moved_bytes": "n: bytes read and written",
        "bytes_per_s": _CURVE["bytes_per_s"],
        "floor_s": _CURVE["floor_s"],
    },
)
def memory_pass_s(moved_bytes: Numbers, bytes_per_s: float, floor_s: float) -> Numbers:
    """Time of a kernel that only moves memory; 0 where it moves nothing."""
    return (moved_bytes / bytes_per_s + floor_s) * (moved_bytes > 0)
