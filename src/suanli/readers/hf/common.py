"""What most decoder configs have in common: widths, heads, windows, and the standard layer.

A family passes only where it differs (`Traits`); shapes always come from its config.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from suanli.nouns.arch import Arch, Shape
from suanli.nouns.layers import Linear, Parameter
from suanli.readers.blocks import (
    FUSED_GATES,
    AttentionNames,
    AttentionSpec,
    Node,
    attention,
    dropped,
    mlp,
    norm,
    reading_block,
)
from suanli.readers.config import Config
from suanli.readers.decoder import DecoderNames, DecoderSpec, decoder

FULL, SLIDING, CHUNKED, LINEAR = (
    "full_attention",
    "sliding_attention",
    "chunked_attention",
    "linear_attention",
)


Over = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class LayerKind:
    """What tells one layer from another: its reach, whether its MLP is a mixture, and numbers of its own."""

    attention: str = FULL
    sparse: bool = False
    over: Over = ()


@dataclass(frozen=True, kw_only=True)
class Extra:
    """A raw tensor of a layer. Its extents are numbers, or fields of `Widths`."""

    name: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True, kw_only=True)
class Projection:
    """A matrix of a layer beside the usual ones. Its widths are fields of `Widths`, or numbers a family derives."""

    name: str
    into: str
    out: str
    bias: bool = False
    role: str = "matmul"


@dataclass(frozen=True, kw_only=True)
class Traits:
    """How a family differs from the plain Llama shape. Norm names are those before attention, between, and after."""

    tied: bool = False
    norm_kind: str = "rms"
    final_norm: str | None = "same"
    before: tuple[str, ...] = ("input_layernorm",)
    between: tuple[str, ...] = ("post_attention_layernorm",)
    after: tuple[str, ...] = ()
    parallel: bool | None = None  # MLP beside the attention; where not said, when no norm stands between them
    attention_names: AttentionNames = field(default_factory=AttentionNames)
    qkv_bias: bool = False
    o_bias: bool = False
    qk_norm: str | None = None
    qk_norm_kind: str = "rms"
    qk_norm_names: tuple[str, str] = ("q_norm", "k_norm")
    sinks: bool = False
    mlp_names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    mlp_at: str = "mlp"
    mlp_bias: bool = False
    mlp_fused: bool = False
    dropout: bool = False
    head_bias: bool = False
    names: DecoderNames = field(default_factory=DecoderNames)
    learned_positions: int = 0
    k_bias: bool = True
    differential: bool = False
    gate: str | None = None
    gate_per_head: bool = False
    sub_norm: str | None = None
    mlp_sub_norm: str | None = None
    extras: tuple[Extra, ...] = ()
    projections: tuple[Projection, ...] = ()

    @property
    def gated(self) -> bool:
        """Whether the MLP has a gate."""
        return len(self.mlp_names) == 3 or self.mlp_fused or self.mlp_names[0] in FUSED_GATES


@dataclass(frozen=True)
class Widths:
    """The numbers of a decoder config."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    max_positions: int | None
    v_dim: int | None = None  # width of a value head where it is not `head_dim`
    derived: tuple[tuple[str, int], ...] = ()  # numbers of a family's own

    def extent(self, word: str | int) -> int:
        """The number a word stands for."""
        if isinstance(word, int):
            return word
        return dict(self.derived).get(word) or int(getattr(self, word))

    @property
    def key(self) -> int:
        """Width of all key heads together."""
        return self.kv_heads * self.head_dim

    @property
    def query(self) -> int:
        """Width of all heads together."""
        return self.heads * self.head_dim

    def shape(self, gated: bool) -> Shape:
        """The letters of the formulas."""
        return Shape(
            num_layers=self.layers, hidden=self.hidden, heads=self.heads, kv_heads=self.kv_heads,
            head_dim=self.head_dim, ffn=self.ffn, vocab=self.vocab, gated=gated,
        )  # fmt: skip


HIDDEN = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
FFN = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "dff")
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx")


def read_widths(
    config: Config, *, ffn: int | None = None, kv_heads: int | None = None, grouped: bool = True,
    layers: int | None = None,
) -> Widths:  # fmt: skip
    """Widths under their usual spellings. `ffn`, `kv_heads`, `layers` are given where a family derives them; a family
    that is not `grouped` has as many key/value heads as heads, whatever its config says.
    """
    hidden = config.need(*HIDDEN)
    layers = config.layers(*LAYERS) if layers is None else layers
    heads = config.need(*HEADS, high=1_000_000)
    return Widths(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads or (config.kv_heads(heads) if grouped else heads),
        head_dim=config.head_dim(hidden, heads),
        ffn=config.need(*FFN) if ffn is None else ffn,
        vocab=config.need("vocab_size"),
        max_positions=config.maybe(*POSITIONS),
    )


def layer_kinds(
    config: Config,
    widths: Widths,
    pattern: Callable[[int], str],
    sparse: Callable[[int], bool],
    known: tuple[str, ...],
    over: Callable[[int], Over] | None = None,
) -> tuple[LayerKind, ...]:
    """One kind a layer: the config's own `layer_types` where given, else the family's pattern."""
    types = config.names("layer_types", widths.layers, known)
    if config.faults.faults:  # a bad count of layers must not be built
        return ()
    kinds = (LayerKind(types[i] if types else pattern(i), sparse(i)) for i in range(widths.layers))
    return tuple(kinds if over is None else (replace(kind, over=over(i)) for i, kind in enumerate(kinds)))


def all_full(_: int) -> str:
    """Every layer sees everything."""
    return FULL


def never(_: int) -> bool:
    """No layer is a mixture."""
    return False


class HasReach(Protocol):
    """A kind of layer, as far as its attention asks."""

    @property
    def attention(self) -> str:
        """Full, sliding or chunked."""
        ...


def self_attention(
    widths: Widths, traits: Traits, kind: HasReach, window: int | None, chunk: int | None = None
) -> tuple[Node, ...]:
    """The attention of a layer of `kind`."""
    return attention(
        AttentionSpec(
            hidden=widths.hidden,
            heads=widths.heads,
            kv_heads=widths.kv_heads,
            head_dim=widths.head_dim,
            names=traits.attention_names,
            qkv_bias=traits.qkv_bias,
            o_bias=traits.o_bias,
            qk_norm=traits.qk_norm,
            qk_norm_kind=traits.qk_norm_kind,
            qk_norm_names=traits.qk_norm_names,
            window=window if kind.attention == SLIDING else None,
            chunk=chunk if kind.attention == CHUNKED else None,
            sinks=traits.sinks,
            dropout=traits.dropout,
            k_bias=traits.k_bias,
            v_dim=widths.v_dim,
            differential=traits.differential,
            gate=traits.gate,
            gate_per_head=traits.gate_per_head,
            sub_norm=traits.sub_norm,
        )
    )


def standard_layer(
    widths: Widths, traits: Traits, attend: tuple[Node, ...], feed: tuple[Node, ...]
) -> tuple[Node, ...]:
    """Norms, attention, norms, MLP, norms, in the order they run."""

    def norms(names: tuple[str, ...]) -> tuple[Node, ...]:
        return tuple(norm(name, widths.hidden, traits.norm_kind) for name in names)

    drop = dropped(f"{traits.attention_names.at}.dropout", widths.hidden) if traits.dropout else ()
    extras = more_parts(traits.extras, traits.projections, widths)
    if not traits.between if traits.parallel is None else traits.parallel:
        feed = reading_block(feed)
    return (*extras, *norms(traits.before), *attend, *drop, *norms(traits.between), *feed, *norms(traits.after))


def more_parts(extras: tuple[Extra, ...], projections: tuple[Projection, ...], widths: Widths) -> tuple[Node, ...]:
    """Raw tensors and matrices that a family has besides."""
    tensors = (Parameter(name=extra.name, shape=tuple(map(widths.extent, extra.shape))) for extra in extras)
    matrices = (
        Linear(
            name=each.name, in_features=widths.extent(each.into), out_features=widths.extent(each.out), bias=each.bias,
            role=each.role,
        )
        for each in projections
    )  # fmt: skip
    return (*tensors, *matrices)


def dense_mlp(widths: Widths, traits: Traits, ffn: int | None = None) -> tuple[Node, ...]:
    """The family's MLP."""
    return mlp(
        widths.hidden, ffn or widths.ffn, at=traits.mlp_at, names=traits.mlp_names, bias=traits.mlp_bias,
        dropout=traits.dropout, sub_norm=traits.mlp_sub_norm, fused=traits.mlp_fused,
    )  # fmt: skip


def standard_decoder(
    config: Config,
    name: str,
    widths: Widths,
    traits: Traits,
    *,
    pattern: Callable[[int], str] = all_full,
    window: int | None = None,
    chunk: int | None = None,
    sparse: Callable[[int], bool] = never,
    feed_sparse: Callable[[], tuple[Node, ...]] | None = None,
    feed_dense: Callable[[], tuple[Node, ...]] | None = None,
    attend: Callable[[LayerKind], tuple[Node, ...]] | None = None,
    make: Callable[[LayerKind], tuple[Node, ...]] | None = None,
    over: Callable[[int], Over] | None = None,
    after_embedding: tuple[Node, ...] = (),
    before_head: tuple[Node, ...] = (),
    embed_dim: int | None = None,
    notes: tuple[str, ...] = (),
) -> Arch:
    """A decoder of standard layers. Raises ConfigError with every fault of the config."""
    reach = {FULL: True, SLIDING: window is not None, CHUNKED: chunk is not None, LINEAR: attend is not None}
    kinds = layer_kinds(config, widths, pattern, sparse, tuple(kind for kind, there in reach.items() if there), over)
    tied = config.flag("tie_word_embeddings", "tie_embeddings", default=traits.tied)
    config.check()

    def standard(kind: LayerKind) -> tuple[Node, ...]:
        seen = attend(kind) if attend else self_attention(widths, traits, kind, window, chunk)
        if kind.sparse:
            assert feed_sparse is not None
            return standard_layer(widths, traits, seen, feed_sparse())
        return standard_layer(widths, traits, seen, feed_dense() if feed_dense else dense_mlp(widths, traits))

    spec = DecoderSpec(
        shape=widths.shape(traits.gated),
        kinds=kinds,
        make=make or standard,
        names=traits.names,
        tied=tied,
        norm_kind=traits.norm_kind if traits.final_norm == "same" else traits.final_norm,
        learned_positions=traits.learned_positions,
        head_bias=traits.head_bias,
        after_embedding=after_embedding,
        before_head=before_head,
        embed_dim=embed_dim,
        max_positions=widths.max_positions,
        notes=notes,
    )
    return decoder(name, spec)
