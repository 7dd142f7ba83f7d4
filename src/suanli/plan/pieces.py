"""A model taken apart for a layout: blocks in order, and how each leaf is cut by tensor and expert parallelism.

How a leaf is cut follows from its neighbours, as in Megatron (arXiv:1909.08053 §3): what reads the block's width is
cut by columns, what comes after an attention, an activation or a scan by rows; a low rank that a norm follows is whole
on every rank (MLA's compressions), and so are routers and norms. Experts are spread, tables and heads cut by
vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

from suanli.nouns.arch import Arch, Module, Placed
from suanli.nouns.layers import (
    Attention,
    Buffer,
    CausalConv,
    Elementwise,
    Embedding,
    Experts,
    KeptState,
    Layer,
    Linear,
    Norm,
    Parameter,
    Scan,
)

COLUMN, ROW, HEADS, EXPERTS, VOCAB, WHOLE = "column", "row", "heads", "experts", "vocab", "whole"
CUTS = (COLUMN, ROW, HEADS, EXPERTS, VOCAB, WHOLE)


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One leaf of one copy of a block, and how ranks share it."""

    path: str = field(metadata={"unit": "", "doc": "where the leaf is"})
    placed: Placed = field(metadata={"hidden": True})
    cut: str = field(metadata={"unit": "", "doc": "column, row, heads, experts, vocab or whole"})
    inner: bool = field(metadata={"unit": "", "doc": "its positions are whole and its width is cut over tp"})
    groups: int | None = field(
        default=None, metadata={"unit": "heads", "doc": "key/value heads it makes: below tp they are copied, not cut"}
    )
    grouped: int = field(default=0, metadata={"unit": "features", "doc": "of its outputs, those of key/value heads"})

    @property
    def layer(self) -> Any:
        """The leaf."""
        return self.placed.layer


@dataclass(frozen=True, kw_only=True)
class Block:
    """A kind of block and the numbers of the layers that are of it."""

    label: str
    layers: tuple[int, ...]
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A model as what the first stage has beside its layers, the kinds of blocks, and what the last stage has."""

    before: tuple[Piece, ...]
    blocks: tuple[Block, ...]
    after: tuple[Piece, ...]

    @property
    def num_layers(self) -> int:
        """Blocks in all."""
        return sum(len(block.layers) for block in self.blocks)

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """Kind of every block, in order."""
        return tuple(
            kind for _, kind in sorted((at, kind) for kind, block in enumerate(self.blocks) for at in block.layers)
        )

    @cached_property
    def before_each(self) -> Any:
        """For each kind, how many blocks of it stand before each place [kind, place]."""
        import numpy as np  # noqa: PLC0415

        return np.array(self._before, dtype=np.float64)

    @cached_property
    def ranks(self) -> dict[tuple[int, int, int], Any]:
        """What ranks of pipelines asked for before hold, by stages, chunks and layers recomputed (`rank_counts`)."""
        return {}

    @cached_property
    def _before(self) -> tuple[tuple[int, ...], ...]:
        """For each kind, how many blocks of it stand before each place."""
        return tuple((0, *accumulate(int(each == kind) for each in self.kinds)) for kind in range(len(self.blocks)))

    def counts(self, sizes: Sequence[int], first: int | None = None, since: int = 0) -> list[tuple[int, ...]]:
        """For each chunk of a pipeline, how many blocks of each kind it holds: of its `first` ones, and of those
        that are number `since` of the model or later."""
        found, start = [], 0
        for size in sizes:
            end = start + (size if first is None else min(first, size))
            low = min(max(start, since), end)
            found.append(tuple(before[end] - before[low] for before in self._before))
            start += size
        return found


def parts_of(arch: Arch) -> Parts:
    """The parts of an architecture, one copy of each kind of block; taken apart once."""
    cached: Parts | None = arch.__dict__.get("_parts")
    if cached is None:
        cached = _taken_apart(arch)
        object.__setattr__(arch, "_parts", cached)
    return cached


def _taken_apart(arch: Arch) -> Parts:
    leaves = arch.leaves()
    numbers = _layer_numbers(arch.root)
    first = next((at for at, placed in enumerate(leaves) if placed.block), len(leaves))
    held: dict[str, list[Placed]] = {}
    for placed in leaves:
        if placed.block:
            held.setdefault(placed.block, []).append(placed)
    return Parts(
        before=tuple(_pieces([placed for placed in leaves[:first] if not placed.block])),
        blocks=tuple(
            Block(label=label, layers=numbers[label], pieces=tuple(_pieces(each))) for label, each in held.items()
        ),
        after=tuple(_pieces([placed for placed in leaves[first:] if not placed.block])),
    )


def _layer_numbers(root: Module) -> dict[str, tuple[int, ...]]:
    """Place in the whole model of each copy of each kind of block; a second stack goes on where the first ended."""
    found: dict[str, tuple[int, ...]] = {}
    start, length, stack = 0, 0, None
    for path, block in _blocks(root, ""):
        here = path.removesuffix(block.label) + block.name
        if here != stack:
            start, length, stack = start + length, 0, here
        indices = block.indices if block.indices is not None else range(1)
        length = max(length, max(indices) + 1)
        found[path] = tuple(start + index for index in indices)
    return found


def _blocks(node: Module, path: str) -> Iterator[tuple[str, Module]]:
    here = f"{path}.{node.label}".strip(".")
    if node.block:
        yield here, node
        return
    for child in node.children:
        if isinstance(child, Module):
            yield from _blocks(child, here)


def together(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Pieces with linears that read the same input, one after another, taken as one product."""
    held: list[Piece] = []
    for piece in pieces:
        joins = held and isinstance(piece.layer, Linear) and piece.layer.shares_input and piece.cut == held[0].cut
        if joins and isinstance(held[0].layer, Linear):
            held.append(piece)
            continue
        if held:
            yield held
        held = [piece]
    if held:
        yield held


# --- how a leaf is cut --------------------------------------------------------------------------------------------


def _pieces(leaves: Sequence[Placed]) -> Iterator[Piece]:
    heads = next((placed.layer for placed in leaves if isinstance(placed.layer, Attention)), None)
    opened, made = False, 0  # columns were cut and not closed by rows; the width made of them since, over all ranks
    for at, placed in enumerate(leaves):
        layer = placed.layer
        cut = _cut(leaves, at, made=made)
        passive = isinstance(layer, Norm | Elementwise) and cut == WHOLE
        grouped = _key_features(layer, heads) if heads is not None and cut == COLUMN else 0
        groups = heads.kv_heads if heads is not None and grouped else None
        inner = cut in (ROW, HEADS) or (passive and opened)
        yield Piece(path=placed.path, placed=placed, cut=cut, inner=inner, groups=groups, grouped=grouped)
        if cut == COLUMN:
            opened = True
        elif cut == HEADS:
            opened, made = True, _width(layer) or made
        elif passive:
            made = layer.width if opened and isinstance(layer, Elementwise) else made
        elif not isinstance(layer, Parameter | Buffer | KeptState):
            opened, made = False, 0


def _width(layer: Layer) -> int:
    """Features a leaf that is cut by heads gives to a position; 0 for a raw tensor."""
    if isinstance(layer, Attention):
        return layer.heads * layer.v_dim
    if isinstance(layer, Scan):
        return layer.heads * layer.value_dim
    return layer.channels if isinstance(layer, CausalConv) else 0


def _cut(leaves: Sequence[Placed], at: int, *, made: int) -> str:
    layer = leaves[at].layer
    if isinstance(layer, Attention | Scan | CausalConv) or _of_heads(leaves, layer):
        return HEADS
    if isinstance(layer, Experts) or (isinstance(layer, Elementwise) and _of_experts(leaves, at)):
        return EXPERTS
    if isinstance(layer, Embedding):
        return VOCAB if layer.role == "token" else WHOLE
    if not isinstance(layer, Linear) or layer.role in ("router", "lora"):
        return WHOLE
    if layer.role == "lm_head":
        return VOCAB
    if layer.in_features == made and not layer.shares_input and not layer.reads_block:
        return ROW
    return WHOLE if _compresses(leaves, at) else COLUMN


def _of_heads(leaves: Sequence[Placed], layer: Layer) -> bool:
    """Whether a raw tensor has a row for each head of the block (Mamba's A, D and dt biases, attention's sinks)."""
    headed = [placed.layer for placed in leaves if isinstance(placed.layer, Scan | Attention)]
    return isinstance(layer, Parameter) and any(layer.shape[:1] == (each.heads,) for each in headed)


def _of_experts(leaves: Sequence[Placed], at: int) -> bool:
    """Whether an activation is that of the experts just before it."""
    return at > 0 and isinstance(leaves[at - 1].layer, Experts)


def _compresses(leaves: Sequence[Placed], at: int) -> bool:
    """Whether a norm follows whose result another linear reads: a low rank, whole on every rank (MLA)."""
    layer = leaves[at].layer
    following = [placed.layer for placed in leaves[at + 1 : at + 3]]
    if not isinstance(layer, Linear) or len(following) < 2:
        return False
    norm, reader = following
    if not isinstance(norm, Norm) or not isinstance(reader, Linear):
        return False
    return norm.dim == reader.in_features <= layer.out_features < layer.in_features


def _key_features(layer: Layer, heads: Attention) -> int:
    """Of a linear's outputs, those that are keys or values of fewer heads than there are queries'."""
    if not isinstance(layer, Linear) or heads.latent_dim is not None or heads.kv_heads == heads.heads:
        return 0  # nothing that is not cut like any other
    queries, keys, values = heads.heads * heads.qk_dim, heads.kv_heads * heads.qk_dim, heads.kv_heads * heads.v_dim
    made = {keys: keys, values: values, keys + values: keys + values, queries + keys + values: keys + values}
    return made.get(layer.out_features, 0)
