"""A decoder from its specification: embedding, stack of layers, last norm, head. Every causal family ends here."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.arch import Arch, Module, Shape
from suanli.nouns.layers import Embedding, Linear
from suanli.readers.blocks import Node, norm, stack


@dataclass(frozen=True, kw_only=True)
class DecoderNames:
    """Where the outer parts of a decoder live."""

    embed: str = "model.embed_tokens"
    positions: str = "model.embed_positions"
    layers: str = "model.layers"
    norm: str = "model.norm"
    head: str = "lm_head"


@dataclass(frozen=True, kw_only=True)
class DecoderSpec:
    """What makes a decoder: `kinds` has one entry a layer, `make` builds a layer of a kind."""

    shape: Shape
    kinds: tuple[Hashable, ...]
    make: Callable[[Any], tuple[Node, ...]]
    names: DecoderNames = field(default_factory=DecoderNames)
    tied: bool = False
    norm_kind: str | None = "rms"
    learned_positions: int = 0
    embed_dim: int | None = None
    head_bias: bool = False
    embedding_offset: int = 0  # rows of the embedding that the head lacks
    after_embedding: tuple[Node, ...] = ()
    before_head: tuple[Node, ...] = ()
    max_positions: int | None = None
    notes: tuple[str, ...] = ()


def decoder(name: str, spec: DecoderSpec) -> Arch:
    """The tree of a decoder with one stream of tokens."""
    shape, names = spec.shape, spec.names
    embed_dim = spec.embed_dim or shape.hidden
    nodes: list[Node] = [Embedding(name=names.embed, num=shape.vocab + spec.embedding_offset, dim=embed_dim)]
    if spec.learned_positions:
        nodes.append(Embedding(name=names.positions, num=spec.learned_positions, dim=shape.hidden, role="position"))
    nodes.extend(spec.after_embedding)
    nodes.extend(stack(names.layers, spec.kinds, spec.make))
    if spec.norm_kind is not None:
        nodes.append(norm(names.norm, shape.hidden, spec.norm_kind))
    nodes.extend(spec.before_head)
    nodes.append(
        Linear(
            name=names.head, in_features=embed_dim, out_features=shape.vocab, bias=spec.head_bias, role="lm_head",
            tied=spec.tied,
        )
    )  # fmt: skip
    return Arch(
        name=name,
        root=Module(name="", children=tuple(nodes)),
        shape=shape,
        max_positions=spec.max_positions,
        task="causal-lm",
        notes=spec.notes,
    )
