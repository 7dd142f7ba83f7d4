"""What one rank of a served model runs for a token: products, experts, caches read, passes, collectives, as terms.

The terms know nothing of a device or of how many tokens there are; `times` gives them seconds. How leaves are cut is
the planner's (`plan.pieces`, `plan.sharding`): the same model laid over the same ranks. What runs once a prompt beside
the positions that decode (an encoder, a picture's tower, keys and values of cross-attention) is a `Side`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Attention, CausalConv, Elementwise, Experts, Linear, Norm, Scan
from suanli.nouns.serving import ServingLayout
from suanli.plan.pieces import ROW, VOCAB, Parts, Piece, parts_of, together
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
    keys: float | None = field(
        default=None, metadata={"doc": "of another stream or a fixed many; None: the sequence's"}
    )


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
class Side:
    """What one rank runs once for a prompt, over positions that do not decode."""

    rows: float = field(metadata={"doc": "positions of a prompt"})
    keys: float = field(metadata={"doc": "that each of them sees"})
    products: tuple[Product, ...]
    mixtures: tuple[Mixture, ...]
    attending: tuple[Attending, ...]
    passes: tuple[Passing, ...]
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, kw_only=True)
class RankWork:
    """All terms of one rank over all stages, and how many layers decode."""

    layers: int
    products: tuple[Product, ...]
    mixtures: tuple[Mixture, ...]
    attending: tuple[Attending, ...]
    passes: tuple[Passing, ...]
    exchanges: tuple[Exchange, ...]
    hidden: int
    extra: int = field(default=0, metadata={"doc": "positions of a prompt beside its tokens: a picture's"})
    sides: tuple[Side, ...] = ()


def rank_work(arch: Arch, layout: ServingLayout, precision: Precision, encoded: float = 0.0) -> RankWork:
    """The terms of a model under a layout; a recurrent leaf is a pass over its state. `encoded`: positions of an
    encoder that takes inputs of any length."""
    parts = parts_of(arch)
    ranks = layout.tp * layout.dp_attention
    at = Degrees(tp=layout.tp, ep=layout.ep, etp=max(ranks // layout.ep, 1))
    how = _Context(at, layout, precision, arch, encoded)
    decoding = [block for block in parts.blocks if any(how.decodes(piece) for piece in block.pieces)]
    leaves = [piece for block in decoding for piece in block.pieces if how.decodes(piece)]
    others = dict.fromkeys(
        piece.placed.stream for pieces, _ in _runs(parts) for piece in pieces if not how.decodes(piece)
    )
    return RankWork(
        layers=sum(len(block.layers) for block in decoding), hidden=_hidden(leaves),
        extra=max((stream.extra for stream in arch.streams if stream.decodes), default=0),
        sides=tuple(Side(rows=how.rows(name), keys=how.keys(name), **_of_stream(parts, how, name)) for name in others),
        **_of_stream(parts, how, None),
    )  # fmt: skip


def _runs(parts: Parts) -> list[tuple[tuple[Piece, ...], int]]:
    return [(parts.before, 1), *((block.pieces, len(block.layers)) for block in parts.blocks), (parts.after, 1)]


def _of_stream(parts: Parts, how: _Context, stream: str | None) -> dict[str, Any]:
    """Terms of one stream; None: of those that decode."""
    found: dict[type, list[Any]] = {Product: [], Mixture: [], Attending: [], Passing: [], Exchange: []}
    for pieces, count in _runs(parts):
        own = [each for each in pieces if (how.decodes(each) if stream is None else each.placed.stream == stream)]
        for term in _terms(own, count, how):
            found[type(term)].append(term)
    names = ("products", "mixtures", "attending", "passes", "exchanges")
    return {name: tuple(terms) for name, terms in zip(names, found.values(), strict=True)}


@dataclass(frozen=True)
class _Context:
    at: Degrees
    layout: ServingLayout
    precision: Precision
    arch: Arch
    encoded: float

    def decodes(self, piece: Piece) -> bool:
        """Whether a leaf runs for every new token."""
        return self.arch.stream(piece.placed.stream).decodes

    def keys(self, stream: str) -> float:
        """Positions of one sequence of a stream that does not decode."""
        return float(self.arch.stream(stream).length or self.encoded)

    def rows(self, stream: str) -> float:
        """Its positions in a prompt."""
        return self.arch.stream(stream).copies * self.keys(stream)


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
        keys=_fixed_keys(layer, piece, how),
    )


def _fixed_keys(layer: Attention, piece: Piece, how: _Context) -> float | None:
    """How many keys a query meets where that is not the sequence's length."""
    if layer.keys is not None:
        return float(layer.keys)
    stream = layer.key_stream or piece.placed.stream
    return None if how.arch.stream(stream).decodes else how.rows(stream) if layer.key_stream else how.keys(stream)


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
