"""What one rank of a served model runs for a token: products, experts, caches read, passes, collectives, as terms.

The terms know nothing of a device or of how many tokens there are; `times` gives them seconds. How leaves are cut is
the planner's (`plan.pieces`, `plan.sharding`): the same model laid over the same ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Attention, CausalConv, Elementwise, Experts, Linear, Norm, Scan
from suanli.nouns.serving import ServingLayout
from suanli.plan.pieces import ROW, VOCAB, Piece, parts_of, together
from suanli.plan.serving.precision import Precision, Stored
from suanli.plan.sharding import Degrees, rank_leaf

TOKEN, SEQUENCE = "token", "sequence"  # what a row stands for; an lm head sees one a sequence


@dataclass(frozen=True, kw_only=True)
class Product:
    """A matrix [k, n] that rows pass through, `count` copies."""

    n: int
    k: int
    count: int
    stored: Stored
    row: str = TOKEN


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Experts of `count` layers: the rank's share of `num`, each token choosing `chosen` of them."""

    num: int
    chosen: int
    matrices: tuple[tuple[int, int], ...] = field(metadata={"doc": "n and k of an expert's products on this rank"})
    count: int
    stored: Stored


@dataclass(frozen=True, kw_only=True)
class Attending:
    """Attention of `count` layers on one rank. `width` numbers of a position are read from the cache."""

    heads: int
    width: int
    inner: int = field(metadata={"doc": "multiply-adds of one head for one query and key in decode"})
    inner_prefill: int = field(metadata={"doc": "the same in prefill, where a latent is expanded"})
    window: int | None
    count: int


@dataclass(frozen=True, kw_only=True)
class Passing:
    """A pass over memory: numbers read and written for a token, or for a sequence (a state)."""

    width: float
    count: int
    row: str = TOKEN


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A collective over `ranks` GPUs of `width` numbers a row."""

    kind: str
    width: float
    ranks: int
    count: int
    row: str = TOKEN
    everyone: bool = field(default=False, metadata={"doc": "rows are those of all attention groups"})


@dataclass(frozen=True, kw_only=True)
class RankWork:
    """All terms of one rank over all stages, and how many layers there are."""

    layers: int
    products: tuple[Product, ...]
    mixtures: tuple[Mixture, ...]
    attending: tuple[Attending, ...]
    passes: tuple[Passing, ...]
    exchanges: tuple[Exchange, ...]
    hidden: int


def rank_work(arch: Arch, layout: ServingLayout, precision: Precision) -> RankWork:
    """The terms of a decoder-only model under a layout; a recurrent leaf is a pass over its state."""
    parts = parts_of(arch)
    leaves = [piece for block in parts.blocks for piece in block.pieces]
    ranks = layout.tp * layout.dp_attention
    at = Degrees(tp=layout.tp, ep=layout.ep, etp=max(ranks // layout.ep, 1))
    found: dict[type, list[Any]] = {Product: [], Mixture: [], Attending: [], Passing: [], Exchange: []}
    runs = [(parts.before, 1), *((block.pieces, len(block.layers)) for block in parts.blocks), (parts.after, 1)]
    for pieces, count in runs:
        for term in _terms(pieces, count, _Context(at, layout, precision)):
            found[type(term)].append(term)
    return RankWork(
        layers=parts.num_layers,
        products=tuple(found[Product]), mixtures=tuple(found[Mixture]), attending=tuple(found[Attending]),
        passes=tuple(found[Passing]), exchanges=tuple(found[Exchange]),
        hidden=_hidden(leaves),
    )  # fmt: skip


@dataclass(frozen=True)
class _Context:
    at: Degrees
    layout: ServingLayout
    precision: Precision


def _hidden(leaves: Sequence[Piece]) -> int:
    """Width of what a stage hands to the next."""
    rows = [piece.layer.out_features for piece in leaves if isinstance(piece.layer, Linear) and piece.cut == ROW]
    return max(rows, default=0)


def _terms(pieces: Sequence[Piece], count: int, how: _Context) -> Iterator[Any]:
    for group in together(pieces):
        layer = group[0].layer
        if isinstance(layer, Linear):
            yield from _linear(group, count, how)
        elif isinstance(layer, Attention):
            yield _attention(group[0], pieces, count, how)
        elif isinstance(layer, Experts):
            yield from _experts(group[0], count, how)
        elif isinstance(layer, Norm | Elementwise):
            width = layer.width if isinstance(layer, Elementwise) else layer.dim * layer.per
            yield Passing(width=3 * width / (how.layout.tp if group[0].inner else 1), count=count)  # two in, one out
        elif isinstance(layer, Scan | CausalConv):
            yield Passing(width=2 * _state(rank_leaf(group[0], how.at)), count=count, row=SEQUENCE)  # read, written


def _linear(group: list[Piece], count: int, how: _Context) -> Iterator[Any]:
    first = group[0]
    layer: Any = first.layer
    leaves: list[Any] = [rank_leaf(piece, how.at) for piece in group]
    row = SEQUENCE if layer.role == "lm_head" else TOKEN
    stored = how.precision.stored(leaves[0])
    yield Product(
        n=sum(leaf.out_features for leaf in leaves), k=leaves[0].in_features, count=count, stored=stored, row=row
    )
    tp = how.layout.tp
    if first.cut == ROW and tp > 1:
        yield Exchange(kind="all_reduce", width=layer.out_features, ranks=tp, count=count, row=row)
    elif first.cut == VOCAB and tp > 1:
        yield Exchange(kind="all_gather", width=layer.out_features, ranks=tp, count=count, row=row)


def _attention(piece: Piece, pieces: Sequence[Piece], count: int, how: _Context) -> Attending:
    layer: Any = piece.layer
    leaf: Any = rank_leaf(piece, how.at)
    expanded = layer.qk_dim + layer.v_dim
    if layer.latent_dim is None:
        width, inner = max(leaf.kv_heads, 1) * expanded, expanded
    else:  # queries are taken into the latent's space: scores over all of it, values over what is not rotary
        norms = [p.layer.dim for p in pieces if isinstance(p.layer, Norm) and p.layer.dim < layer.latent_dim]
        width, inner = layer.latent_dim, layer.latent_dim + max(norms, default=layer.latent_dim)
    return Attending(
        heads=leaf.heads,
        width=width,
        inner=inner,
        inner_prefill=expanded,
        window=layer.window or layer.chunk,
        count=count,
    )


def _experts(piece: Piece, count: int, how: _Context) -> Iterator[Any]:
    layer: Any = piece.layer
    leaf: Any = rank_leaf(piece, how.at)
    wide = (2 if layer.gated else 1) * leaf.ffn
    yield Mixture(
        num=layer.num, chosen=min(layer.top_k, layer.num), count=count,
        matrices=((wide, layer.hidden), (layer.hidden, leaf.ffn)),
        stored=how.precision.stored(leaf),
    )  # fmt: skip
    ranks = how.layout.tp * how.layout.dp_attention
    if ranks == 1:
        return
    if how.layout.ep == 1 or how.layout.dp_attention == 1:  # every rank has every token: partial results are added up
        yield Exchange(kind="all_reduce", width=layer.hidden, ranks=ranks, count=count, everyone=True)
    else:  # tokens travel to their experts and back
        share = min(layer.top_k, layer.num) / ranks
        yield Exchange(
            kind="all_to_all", width=layer.hidden * share, ranks=how.layout.ep, count=2 * count, everyone=True
        )


def _state(leaf: Any) -> float:
    """Numbers of the state that a scan or a short convolution keeps for one sequence."""
    return leaf.state_elements if isinstance(leaf, Scan) else leaf.channels * (leaf.kernel - 1)
