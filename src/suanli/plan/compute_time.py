"""Seconds one rank spends on one micro-batch of one block, forward and backward, by what it spends them on.

The leaves of a block (`pieces`) become kernels as trainers run them: linears that share an input are one product,
experts grouped products, a norm comes with the residual addition beside it. What is a collective is timed here too,
since where it stands follows from how a leaf is cut; how much of it stays exposed is decided later (`step_time`).
Times are those of the device's curves; a stack's own factors come later as well, so that fitting them costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from suanli.nouns.layers import Attention, Elementwise, Embedding, Experts, Linear, Norm, Parameter
from suanli.nouns.profile import Traits
from suanli.plan.columns import ATTENTION, COLUMNS, LAUNCHES, MATMUL, MEMORY, PASSES
from suanli.plan.columns import EXPERTS as EXPERT_MATMUL
from suanli.plan.comm_time import exchange_tokens, reduce_tensor, ring_context
from suanli.plan.pieces import COLUMN, EXPERTS, HEADS, ROW, VOCAB, WHOLE, Piece, together
from suanli.plan.sharding import Degrees, Positions, rank_leaf
from suanli.work import layer_work

Array = Any
_HALF = 2  # bytes of an activation in 16 bit
_INNER = 128  # inner dimension at which layers without a curve of their own are charged as products

# Passes over a tensor, forward and backward: what is read and written, in tensors of the width named.
_NORM = (2, 3)  # read, write; read the gradient and the input, write
_RESIDUAL = (3, 2)  # read two, write one; read, write
_ACTIVATION = {True: (3, 5), False: (2, 3)}  # gated: two halves in, one out
_ROTARY = (2, 2)  # queries, keys and values read and written (rotation, or a change of layout)
_ROUTED = (8, 8)  # permute, unpermute on both sides of the exchange, weighted sum
_EXPERT_LAUNCHES = (4, 6)  # of one expert: its products, each with what it quantises
_SOFTMAX_BYTES = (4, 6)  # an unfused score in 16 bit: read, write; read two, write
_DROPOUT_BYTES = (5, 5)  # with one byte of mask
_LOSS_BYTES = {True: (10, 6), False: (24, 12)}  # a logit, fused or not: casts to fp32, maximum, exponential, sum


@dataclass(frozen=True)
class Local:
    """One rank's share of the work, as arrays over the layouts that differ in it, and what times it."""

    degrees: Degrees
    positions: Positions
    curves: Any
    fabric: Any
    traits: Traits
    dtype: str

    def __getattr__(self, name: str) -> Any:
        """A degree: tp, cp, ep, etp, sp, micro_batch."""
        return getattr(self.degrees, name)

    def tokens(self, stream: str) -> Array:
        """Positions of a micro-batch on one rank, not divided by sequence parallelism."""
        return self.positions.tokens(stream, self.micro_batch) / self.cp

    @property
    def outside(self) -> Array:
        """What divides positions outside the products: sequence parallelism."""
        return 1 + self.sp * (self.tp - 1)


class Tally:
    """An array [pass, column, layout] that pieces add to."""

    def __init__(self, length: int) -> None:
        import numpy as np  # noqa: PLC0415

        self.total = np.zeros((len(PASSES), len(COLUMNS), length))

    def add(self, column: int, forward: Array, backward: Array, again: Array = 0.0) -> None:
        """Add to one column of all passes."""
        for place, value in enumerate((forward, backward, again)):
            self.total[place, column] += value

    def memory(self, at: Local, forward_bytes: Array, backward_bytes: Array, kernels: tuple[int, int] = (1, 1)) -> None:
        """Add kernels that only move memory."""
        self.add(MEMORY, at.curves.memory_s(forward_bytes), at.curves.memory_s(backward_bytes))
        self.add(LAUNCHES, *kernels)


def block_time(pieces: Sequence[Piece], at: Local) -> Array:
    """Seconds [pass, column, layout] (launches: a count) of one micro-batch in one copy of the pieces."""
    tally = Tally(len(at.tp))
    for group in together(pieces):
        layer = group[0].layer
        if isinstance(layer, Linear):
            _linear(tally, group, at)
        elif isinstance(layer, Attention):
            _attention(tally, group[0], at)
        elif isinstance(layer, Experts):
            _experts(tally, group[0], at)
        elif isinstance(layer, Norm):
            _norm(tally, group[0], at)
        elif isinstance(layer, Elementwise):
            _elementwise(tally, group[0], at)
        elif isinstance(layer, Embedding):
            _embedding(tally, group[0], at)
        elif not isinstance(layer, Parameter):
            _other(tally, group[0], at)
    return tally.total


def _linear(tally: Tally, group: list[Piece], at: Local) -> None:
    first = group[0]
    layer, cut, stream = first.layer, first.cut, first.placed.stream
    head = layer.role == "lm_head"
    leaves: list[Any] = [rank_leaf(piece, at.degrees) for piece in group]
    m = at.tokens(stream) / (at.outside if cut == WHOLE else 1)
    n, k = sum(leaf.out_features for leaf in leaves), leaves[0].in_features
    dtype = "bf16" if head or layer.role == "router" else at.dtype
    product = at.curves.matmul_s
    backward = product(m, k, n, 1, dtype) + product(k, n, m, 1, dtype)
    tally.add(MATMUL, product(m, n, k, 1, dtype), backward)
    tally.add(LAUNCHES, 1, 2 + int(layer.bias))
    moved = at.tokens(stream) * _HALF
    if cut == ROW:
        reduce_tensor(tally, at, moved * layer.out_features, backward=False)
    elif cut in (COLUMN, VOCAB):
        reduce_tensor(tally, at, moved * layer.in_features, backward=True)
    if head:
        logits = at.tokens(stream) * n
        forward, back = _LOSS_BYTES[at.traits.fused_loss]
        tally.memory(at, logits * forward, logits * back, (6, 4))


def _attention(tally: Tally, piece: Piece, at: Local) -> None:
    layer, stream = piece.layer, piece.placed.stream
    queries, keys = (
        at.positions.sample.queries(stream),
        layer.keys or at.positions.sample.keys(layer.key_stream or stream),
    )
    batch = at.micro_batch * at.positions.sample.sequences(stream)
    leaf: Any = rank_leaf(piece, at.degrees)
    heads, kv_heads = leaf.heads, leaf.kv_heads
    causal = layer.mask == "causal" and layer.key_stream is None
    reach = (layer.window or layer.chunk) if causal else None
    if layer.window and not causal:  # a band: so many keys to either side
        keys = min(keys, 2 * layer.window + 1)
    held = queries * batch * (heads * layer.qk_dim + kv_heads * (layer.qk_dim + layer.v_dim)) / at.cp * _HALF
    tally.memory(at, _ROTARY[0] * held, _ROTARY[1] * held)
    if at.traits.fused_attention:
        sizes = (batch, heads, kv_heads, queries, keys, layer.qk_dim, layer.v_dim, causal)
        timed = [at.curves.attention_s(*sizes, backward, "bf16", reach) / at.cp for backward in (False, True)]
        tally.add(ATTENTION, *timed)
        tally.add(LAUNCHES, 1, 3)
    else:
        _unfused(tally, layer, at, batch * heads, queries, keys)
    keys_moved = at.tokens(stream) * kv_heads * (layer.qk_dim + layer.v_dim) * _HALF
    ring_context(tally, at, keys_moved)


def _unfused(tally: Tally, layer: Attention, at: Local, count: Array, queries: int, keys: int) -> None:
    """Scores written and read: every pair is computed, masked or not (`again`: selective recompute)."""
    product, d, v = at.curves.matmul_s, layer.qk_dim, layer.v_dim
    rows = queries / at.cp
    forward = product(rows, keys, d, count, "bf16") + product(rows, v, keys, count, "bf16")
    backward = (
        product(rows, d, keys, count, "bf16") + product(keys, d, rows, count, "bf16")
        + product(rows, keys, v, count, "bf16") + product(keys, v, rows, count, "bf16")
    )  # fmt: skip
    drop = [int(at.traits.dropout) * each for each in _DROPOUT_BYTES]
    pairs = count * rows * keys
    moved = [at.curves.memory_s(pairs * (soft + extra)) for soft, extra in zip(_SOFTMAX_BYTES, drop, strict=True)]
    tally.add(ATTENTION, forward, backward, forward)
    tally.add(MEMORY, moved[0], moved[1], moved[0])
    tally.add(LAUNCHES, 6, 9, 4)


def _experts(tally: Tally, piece: Piece, at: Local) -> None:
    """Routed tokens are spread over tp as well: a rank has its share of them, of `num / ep` experts, cut in `etp`."""
    layer = piece.layer
    routed = at.tokens(piece.placed.stream) * min(layer.top_k, layer.num) * at.etp / at.tp
    leaf: Any = rank_leaf(piece, at.degrees)
    groups, inner = leaf.num, leaf.ffn
    wide = (2 if layer.gated else 1) * inner
    product, rows = at.curves.matmul_s, routed / groups  # training runs experts with the kernels of dense products
    forward, backward = 0.0 * routed, 0.0 * routed
    for n, k in ((wide, layer.hidden), (layer.hidden, inner)):
        forward = forward + product(rows, n, k, groups, at.dtype)
        backward = backward + product(rows, k, n, groups, at.dtype) + product(k, n, rows, groups, at.dtype)
    tally.add(EXPERT_MATMUL, forward, backward)
    held = routed * layer.hidden * _HALF
    tally.memory(at, _ROUTED[0] * held, _ROUTED[1] * held, (10, 12))
    tally.add(
        LAUNCHES, *(each * groups for each in _EXPERT_LAUNCHES)
    )  # two products for each expert, each with what it quantises
    exchange_tokens(tally, at, held / at.etp)


def _norm(tally: Tally, piece: Piece, at: Local) -> None:
    layer = piece.layer
    held = at.tokens(piece.placed.stream) * layer.dim * layer.per * _HALF / (at.tp if piece.inner else at.outside)
    own = int(not piece.inner and layer.per == 1)  # a norm of the block's own width has an addition beside it
    passes = [norm + own * residual for norm, residual in zip(_NORM, _RESIDUAL, strict=True)]
    tally.memory(at, passes[0] * held, passes[1] * held, (1 + own, 2 + own))


def _elementwise(tally: Tally, piece: Piece, at: Local) -> None:
    layer, tokens = piece.layer, at.tokens(piece.placed.stream)
    shared = at.tp if piece.inner or piece.cut == EXPERTS else at.outside
    forward, backward = _ACTIVATION[layer.op == "gated"]
    held = tokens * layer.width * _HALF / shared
    tally.memory(at, forward * held, backward * held)


def _embedding(tally: Tally, piece: Piece, at: Local) -> None:
    held = at.tokens(piece.placed.stream) * piece.layer.dim * _HALF
    tally.memory(at, 2 * held, 2 * held)
    if piece.cut == VOCAB:
        reduce_tensor(tally, at, held, backward=False)


def _other(tally: Tally, piece: Piece, at: Local) -> None:
    """Scans, convolutions and the like: their operations as products of a short inner dimension, and their traffic."""
    work = layer_work(piece.placed, at.positions.sample)
    share = at.micro_batch / at.cp / (at.tp if piece.cut == HEADS or piece.inner else at.outside)
    rows = at.tokens(piece.placed.stream) + 0 * share
    wide = work.flops * share / (2 * _INNER * rows + (rows == 0))
    once = at.curves.matmul_s(rows, wide, _INNER, 1, "bf16")
    tally.add(MATMUL, once, 2 * once)
    moved = (work.reads + work.writes) * share * _HALF
    tally.memory(at, moved, 2 * moved)
