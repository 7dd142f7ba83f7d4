"""What one layer of a model keeps for a sequence, on the whole model or on one rank of it.

The bytes are `footprint.cache_product`'s, as `count` has them; here they are told apart by kind and cut over ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from suanli.footprint import cache_product
from suanli.nouns.convention import Convention
from suanli.nouns.formats import Format
from suanli.nouns.layers import Attention
from suanli.nouns.layout import stage_sizes
from suanli.plan.pieces import Block, Parts, Piece
from suanli.plan.sharding import Degrees, rank_leaf
from suanli.units import BITS_PER_BYTE
from suanli.work import Setting

MASK = Convention(name="-", doc="", source="")  # positions only; no convention changes how many there are
ATTENTION, LATENT, WINDOW, STATE, CROSS, INDEXER = "attention", "latent", "window", "state", "cross", "indexer"
GROWING = (ATTENTION, LATENT, INDEXER)


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One leaf's cache for one sequence; `copies` equal leaves of a layer stand for each."""

    kind: str
    window: int | None = None
    positions: int = field(default=0, metadata={"unit": "tokens", "doc": "of the sequence, a picture's among them"})
    token_bytes: Fraction = Fraction(0)
    total_bytes: int = 0
    copies: int = 1
    replicas: int = 1
    formula: str = ""

    @property
    def grows(self) -> bool:
        """Whether every position stays."""
        return self.kind in GROWING


@dataclass(frozen=True, kw_only=True)
class Cached:
    """How the cache is stored: its format, whether MLA keeps whole keys and values, and over how many heads' ranks."""

    format: Format
    expanded: bool = False
    tp: int = 1


def leaf_kept(piece: Piece, at: Setting, how: Cached) -> Kept | None:
    """What a leaf keeps on one rank; None where it keeps nothing, or another layer's."""
    layer: Any = rank_leaf(piece, Degrees(tp=how.tp))
    indexer = "indexer" in piece.path
    if isinstance(layer, Attention) and how.expanded and not indexer:
        layer = replace(layer, latent_dim=None)
    found = cache_product(replace(piece.placed, layer=layer), at, how.format)
    if found is None or not found.value:
        return None
    if not isinstance(layer, Attention):
        whole = isinstance(piece.layer, type(layer)) and layer == piece.layer
        return Kept(kind=STATE, total_bytes=found.value, replicas=how.tp if whole else 1, formula=found.formula)
    window = layer.window or layer.chunk
    latent = layer.latent_dim is not None
    kind = CROSS if layer.key_stream else WINDOW if window else INDEXER if indexer else LATENT if latent else ATTENTION
    token = Fraction(found.inputs["width"] * found.inputs["bits"], BITS_PER_BYTE)
    return Kept(
        kind=kind,
        window=window,
        positions=at.workload.keys + at.arch.stream(piece.placed.stream).extra,
        token_bytes=Fraction(0) if kind == CROSS else token,
        total_bytes=found.value,
        replicas=how.tp if latent else how.tp // min(how.tp, piece.layer.kv_heads),
        formula=found.formula,
    )


def block_kept(block: Block, at: Setting, how: Cached) -> tuple[Kept, ...]:
    """What one layer of a kind keeps."""
    found = ((piece, leaf_kept(piece, at, how)) for piece in block.pieces)
    return tuple(replace(kept, copies=piece.placed.times // len(block.layers)) for piece, kept in found if kept)


def stages(parts: Parts, pp: int) -> list[tuple[int, ...]]:
    """Layers of each kind on every stage of a pipeline."""
    return parts.counts(stage_sizes(parts.num_layers, pp) if pp > 1 else (parts.num_layers,))


@dataclass(frozen=True)
class Held:
    """The layers of one stage: for each kind of block what a layer keeps, and how many there are."""

    layers: tuple[tuple[tuple[Kept, ...], int], ...]

    def leaves(self) -> Iterator[tuple[Kept, int]]:
        """Each kept thing with its copies on the stage."""
        return ((kept, kept.copies * count) for layer, count in self.layers for kept in layer)

    @property
    def total_bytes(self) -> int:
        """One sequence."""
        return sum(times * kept.total_bytes for kept, times in self.leaves())


def held(kinds: Iterable[tuple[Kept, ...]], counts: Iterable[int]) -> Held:
    """A stage of so many layers of each kind."""
    return Held(tuple((layer, count) for layer, count in zip(kinds, counts, strict=True) if layer and count))
