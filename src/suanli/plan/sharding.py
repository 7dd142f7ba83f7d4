"""What one rank has of a model: each leaf made smaller, the positions that pass it, the bytes it keeps.

A rank's part of a leaf is a leaf: `rank_leaf` gives a smaller one, so that parameters, kept bytes and work are counted
by the functions that count a whole model. Degrees may be whole numbers or arrays of them (a grid of layouts at once).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suanli.errors import FaultList, InputError
from suanli.formulas.parallel import expert_positions, larger, padded_vocab, rank_part, smaller
from suanli.kept import kept_bytes, kept_elements, logits_bytes, scores_bytes, statistics_bytes
from suanli.nouns.arch import SAMPLE, Arch
from suanli.nouns.convention import Convention
from suanli.nouns.layers import (
    Attention,
    CausalConv,
    Elementwise,
    Embedding,
    Experts,
    Layer,
    Linear,
    Norm,
    Parameter,
    Scan,
)
from suanli.nouns.layout import Layout
from suanli.nouns.workload import Workload
from suanli.plan.pieces import COLUMN, EXPERTS, HEADS, ROW, VOCAB, Parts, Piece
from suanli.work import Setting

_MASK = Convention(name="-", doc="", source="")  # positions only; no convention changes how many there are


@dataclass(frozen=True, kw_only=True)
class Degrees:
    """The degrees of a layout that decide what a rank holds: numbers, or arrays of one shape."""

    tp: Any = 1
    cp: Any = 1
    dp: Any = 1
    ep: Any = 1
    etp: Any = 1
    sp: Any = False
    zero: Any = 0
    shards: Any = field(default=None, metadata={"unit": "ranks", "doc": "that share states; None or 0: all replicas"})
    micro_batch: Any = 1
    vocab_multiple: int = field(default=1, metadata={"unit": "rows", "doc": "tables are padded to this times tp"})
    imbalance: float = field(default=1, metadata={"unit": "", "doc": "tokens of the busiest expert rank over the mean"})

    @property
    def outer_cut(self) -> Any:
        """Ranks that positions are cut over between the columns and rows of two blocks."""
        return self.cp * (1 + (self.tp - 1) * self.sp)

    @property
    def state_ranks(self) -> Any:
        """Ranks over which ZeRO shards a parameter that is no expert's."""
        if self.shards is None:
            return self.dp * self.cp
        return self.shards + (self.shards == 0) * self.dp * self.cp

    @property
    def expert_state_ranks(self) -> Any:
        """Ranks over which ZeRO shards an expert: its replicas, or as many of them as `shards` allows."""
        replicas = -(-self.tp * self.cp * self.dp // (self.ep * self.etp))
        if self.shards is None:
            return replicas
        return replicas + (self.shards > 0) * (smaller(self.shards, replicas) - replicas)

    def take(self, places: Any) -> Degrees:
        """Of arrays some; numbers are of every layout."""
        return replace(self, **{name: taken(getattr(self, name), places) for name in _ARRAYS})


_ARRAYS = ("tp", "cp", "dp", "ep", "etp", "sp", "zero", "shards", "micro_batch")


def taken(value: Any, places: Any) -> Any:
    """Of an array some; a number is of every place."""
    return value[places] if getattr(value, "ndim", 0) else value


def degrees_of(layout: Layout, *, vocab_multiple: int = 1, imbalance: float = 1) -> Degrees:
    """The degrees of one layout."""
    return Degrees(
        **{name: getattr(layout, name) for name in _ARRAYS}, vocab_multiple=vocab_multiple, imbalance=imbalance
    )


def check_layout(parts: Parts, layout: Layout, seq: int) -> None:
    """Raise InputError listing what of the model the layout cannot cut."""
    faults = FaultList(InputError)
    pieces = [piece for block in parts.blocks for piece in block.pieces]
    for name, ranks, sizes in (
        ("tp", layout.tp, {p.layer.heads for p in pieces if p.cut == HEADS and isinstance(p.layer, Attention | Scan)}),
        ("ep", layout.ep, {p.layer.num for p in pieces if isinstance(p.layer, Experts)}),
    ):
        what = "attention heads" if name == "tp" else "experts"
        for size in sorted(size for size in sizes if size % ranks):
            faults.add(code="not_divisible", message=f"{what} cannot be cut evenly", where=f"--{name}",
                       got=f"{size} {what} over {ranks}", expected=f"a divisor of {size}")  # fmt: skip
    for groups in sorted({p.groups for p in pieces if p.groups and p.groups % layout.tp and layout.tp % p.groups}):
        faults.add(code="not_divisible", message="key and value heads cannot be cut or copied evenly", where="--tp",
                   got=f"{groups} heads over {layout.tp}", expected=f"a divisor or a multiple of {groups}")  # fmt: skip
    if seq % layout.cp:
        faults.add(code="not_divisible", message="a sequence cannot be cut evenly", where="--cp",
                   got=f"{seq:,} positions over {layout.cp}", expected="a divisor of the length")  # fmt: skip
    if layout.ep > 1 and not any(isinstance(piece.layer, Experts) for piece in pieces):
        faults.add(code="no_experts", message="the model has no experts to spread", where="--ep",
                   got=str(layout.ep), expected="1")  # fmt: skip
    faults.raise_if_any()


# --- a rank's leaf ------------------------------------------------------------------------------------------------


def rank_leaf(piece: Piece, at: Degrees) -> Layer:
    """The part of a leaf that one rank holds, as a leaf."""
    layer: Layer = piece.layer
    if isinstance(layer, Linear) and piece.cut in (COLUMN, ROW, VOCAB):
        return _linear(layer, piece, at)
    if isinstance(layer, Experts):
        return replace(layer, num=rank_part(layer.num, at.ep), ffn=rank_part(layer.ffn, at.etp))
    if isinstance(layer, Embedding) and piece.cut == VOCAB:
        return replace(layer, num=rank_part(padded_vocab(layer.num, at.vocab_multiple, at.tp), at.tp))
    if isinstance(layer, Elementwise) and (piece.inner or piece.cut == EXPERTS):
        ranks = at.etp if piece.cut == EXPERTS else at.tp
        names = ("width", "saved", "mask_bytes")
        return replace(layer, **{name: rank_part(getattr(layer, name), ranks) for name in names})
    if isinstance(layer, Norm) and piece.inner:
        name = "dim" if layer.per == 1 else "per"
        return replace(layer, **{name: rank_part(getattr(layer, name), at.tp)})
    return _heads(layer, at.tp) if piece.cut == HEADS else layer


def _linear(layer: Linear, piece: Piece, at: Degrees) -> Linear:
    if piece.cut == ROW:
        return replace(layer, in_features=rank_part(layer.in_features, at.tp))
    if piece.cut == VOCAB:
        rows = padded_vocab(layer.out_features, at.vocab_multiple, at.tp)
        return replace(layer, out_features=rank_part(rows, at.tp))
    own = rank_part(layer.out_features - piece.grouped, at.tp)
    copied = rank_part(piece.grouped, smaller(at.tp, piece.groups)) if piece.groups else 0
    return replace(layer, out_features=own + copied)


def _heads(layer: Layer, tp: Any) -> Layer:
    if isinstance(layer, Attention):
        return replace(layer, heads=rank_part(layer.heads, tp), kv_heads=rank_part(layer.kv_heads, tp))
    if isinstance(layer, Scan):
        groups = None if layer.groups is None else rank_part(layer.groups, tp)
        return replace(layer, heads=rank_part(layer.heads, tp), groups=groups)
    if isinstance(layer, CausalConv):
        groups = None if layer.groups is None else rank_part(layer.groups, tp)
        return replace(layer, channels=rank_part(layer.channels, tp), groups=groups)
    assert isinstance(layer, Parameter), layer
    return replace(layer, shape=(rank_part(layer.shape[0], tp), *layer.shape[1:]))


# --- a rank's positions -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Positions:
    """Positions of each stream in one micro-batch of a replica, before ranks share them."""

    sample: Setting  # a batch of one

    def keys(self, stream: str) -> int:
        """Keys a query meets in one sequence."""
        return self.sample.keys(stream)

    def tokens(self, stream: str, micro_batch: Any) -> Any:
        """Positions of a micro-batch."""
        once = stream != SAMPLE and self.sample.arch.stream(stream).once
        return self.sample.tokens(stream) * (1 if once else micro_batch)


def positions_of(arch: Arch, workload: Workload) -> Positions:
    """Positions of a training step's micro-batches."""
    return Positions(Setting(arch, replace(workload, phase="train", batch=1), _MASK))


def rank_positions(piece: Piece, tokens: Any, at: Degrees) -> Any:
    """Of a micro-batch's positions, those whose input this rank keeps for a leaf."""
    if piece.cut == EXPERTS:
        return expert_positions(tokens, at.etp, at.imbalance, at.cp, at.tp)
    return rank_part(tokens, at.cp if piece.inner else at.outer_cut)


# --- what is kept -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """Bytes that a run of leaves keeps for one micro-batch on one rank."""

    linear: Any = 0  # all but the scores and statistics of attention, and the logits
    scores: Any = 0
    statistics: Any = 0
    logits: Any = 0
    first: Any = 0  # the input of the first leaf that keeps one: what full recompute leaves
    attention: Any = 0  # results of attention and their statistics: what op-level recompute leaves beside `first`
    products: Any = 0  # results of every second product, which it leaves too
    light: Any = 0  # what recompute of norms, gates and latent up-projections leaves
    widest: Any = 0  # a maximum: gradients of the widest leaf's inputs and results, alive while it is in backward

    def policy(self, recompute: str, flash: bool) -> Any:
        """Bytes under a policy: none, scores, attention (op-level, without its products), light, full."""
        if recompute == "none":
            return self.linear + (self.statistics if flash else self.scores)
        left = {"scores": self.linear, "attention": self.first + self.attention, "light": self.light}
        return left.get(recompute, self.first)


_SUMMED = ("linear", "scores", "statistics", "logits", "first", "attention", "products", "light")


@dataclass(frozen=True, kw_only=True)
class Storage:
    """How activations are stored: bytes of an element, of a quantised matmul input, and whether gates are fused."""

    size: int
    matmul_size: int
    fused_gate: bool = False


def kept(pieces: Iterable[Piece], positions: Positions, at: Degrees, how: Storage, copies: int = 1) -> Kept:
    """What the leaves of one block (or of what lies outside the blocks) keep; `copies` blocks stand for each leaf."""
    total, seen, entered, normed, before = Kept(), 0, False, set[int](), None
    for piece in pieces:
        times = piece.placed.times // copies
        one = _kept_of(piece, positions, at, how)
        if isinstance(piece.layer, Linear) and _made_again(piece, before, normed):
            one = replace(one, light=0)
        normed |= {piece.layer.dim} if isinstance(piece.layer, Norm) else set()
        before = piece.layer
        if kept_elements(piece.layer) and not entered:  # the block's input
            entered, one = True, replace(one, first=one.linear)
        if isinstance(piece.layer, Linear) and piece.layer.role in ("matmul", "router"):
            seen += 1
            if seen % 2:
                one = replace(one, products=_result_bytes(piece, positions, at, how.size))
        sums = {name: getattr(total, name) + times * getattr(one, name) for name in _SUMMED}
        total = Kept(**sums, widest=larger(total.widest, one.widest))
    return total


def _made_again(piece: Piece, before: Layer | None, normed: set[int]) -> bool:
    """Whether a linear's input is cheap to make: a norm of this width came before, or just now a gate."""
    return isinstance(before, Elementwise) if piece.cut == ROW else piece.layer.in_features in normed


def _kept_of(piece: Piece, positions: Positions, at: Degrees, how: Storage) -> Kept:
    leaf, stream = rank_leaf(piece, at), piece.placed.stream
    seen = getattr(leaf, "key_stream", None) or stream
    micro_batch = positions.tokens(stream, at.micro_batch)
    tokens, whole = rank_positions(piece, micro_batch, at), rank_part(micro_batch, at.cp)
    if how.fused_gate and isinstance(leaf, Elementwise) and leaf.op == "gated":
        leaf = replace(leaf, saved=2 * leaf.width)  # the gate and what it gates; the gate's activation is made again
    size = how.matmul_size if isinstance(leaf, Experts) or _quantised(leaf) else how.size
    statistics = statistics_bytes(leaf, tokens)
    results = tokens * how.size * leaf.heads * leaf.v_dim if isinstance(leaf, Attention) else 0
    linear = kept_bytes(leaf, tokens, rank_part(positions.tokens(seen, at.micro_batch), at.cp), size)
    return Kept(
        linear=linear,
        light=statistics + _light_bytes(leaf, tokens, how.matmul_size, linear),
        scores=scores_bytes(leaf, tokens, positions.keys(seen), how.size),
        statistics=statistics,
        logits=logits_bytes(leaf, whole),
        attention=statistics + results,
        widest=tokens * how.size * leaf.saved if isinstance(leaf, Elementwise) else 0,
    )


def _light_bytes(leaf: Layer, tokens: Any, size: int, linear: Any) -> Any:
    """What is left of a leaf when cheap things are made again: of latent attention nothing (its input is there), of a
    gate its two inputs as the matrices gave them, of experts what was sent to them."""
    if isinstance(leaf, Attention) and leaf.latent_dim is not None:
        return 0
    if isinstance(leaf, Elementwise) and leaf.op == "gated":
        return tokens * size * 2 * leaf.width
    return tokens * size * leaf.top_k * leaf.hidden if isinstance(leaf, Experts) else linear


def _quantised(leaf: Layer) -> bool:
    return isinstance(leaf, Linear) and leaf.role == "matmul"


def _result_bytes(piece: Piece, positions: Positions, at: Degrees, size: int) -> Any:
    """Bytes of a product's result: of whole positions where it is cut by columns, else of this rank's."""
    tokens, leaf = positions.tokens(piece.placed.stream, at.micro_batch), rank_leaf(piece, at)
    assert isinstance(leaf, Linear)
    return rank_part(tokens, at.cp if piece.cut == COLUMN else at.outer_cut) * size * leaf.out_features


# --- parameters ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """Parameters of one rank: those cut or copied with the model, and those of experts."""

    dense: Any = 0
    experts: Any = 0
    trained_dense: Any = 0
    trained_experts: Any = 0
    matrices: Any = 0  # elements of the matmul weights, experts among them
    buffers: Any = 0  # elements of saved tensors that are no parameters

    def __add__(self, other: Held) -> Held:
        return Held(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def times(self, count: int) -> Held:
        """So many of these."""
        return Held(*(count * getattr(self, name) for name in self.__dataclass_fields__))

    def take(self, places: Any) -> Held:
        """Of arrays some; numbers are of every layout."""
        return Held(*(taken(getattr(self, name), places) for name in self.__dataclass_fields__))


def held(pieces: Sequence[Piece], at: Degrees, copies: int = 1, untied: bool = False) -> Held:
    """Parameters a rank holds of a run of leaves. `untied`: tables shared with another stage are held here too."""
    total, seen = Held(), False
    for piece in pieces:
        leaf = rank_leaf(piece, at)
        if untied and getattr(leaf, "tied", False) and not seen:
            leaf, seen = replace(leaf, tied=False), True  # type: ignore[call-arg]
        times, params = piece.placed.held // copies, leaf.params
        experts = isinstance(leaf, Experts)
        trained = params if leaf.trainable else 0
        matrix = leaf.weight_params if _quantised(leaf) else params if experts else 0  # type: ignore[attr-defined]
        total += Held(
            dense=0 if experts else times * params,
            experts=times * params if experts else 0,
            trained_dense=0 if experts else times * trained,
            trained_experts=times * trained if experts else 0,
            matrices=times * matrix,
            buffers=times * getattr(leaf, "elements", 0) if leaf.kind == "buffer" else 0,
        )
    return total
