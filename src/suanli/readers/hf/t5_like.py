"""T5 and what was made of it: mT5, UMT5, Switch Transformers, Pop2Piano. Encoder and decoder are two streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from suanli.nouns.arch import TOKENS, Arch, Module, Shape, Stream
from suanli.nouns.layers import Embedding, Linear
from suanli.readers.blocks import (
    AttentionNames,
    AttentionSpec,
    MoeSpec,
    Node,
    attention,
    dropped,
    mlp,
    moe,
    norm,
    stack,
)
from suanli.readers.config import Config, brief
from suanli.readers.hf.untied import unties

ENCODER = "encoder"


@dataclass(frozen=True, kw_only=True)
class Traits:
    """How a family differs from T5: a bias in every layer, where the MLP lives, mixtures, sound as input."""

    every_bias: bool = False
    feed_at: str = "DenseReluDense"
    mixtures: bool = False
    sound: bool = False


@dataclass(frozen=True)
class Kind:
    """What tells one block from another."""

    bias: bool
    sparse: bool = False


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """The numbers of a T5 config."""

    hidden: int
    heads: int
    head_dim: int
    ffn: int
    vocab: int
    layers: int
    decoder_layers: int
    buckets: int
    gated: bool
    experts: int
    router_bias: bool
    sparse: tuple[int, int]

    def kinds(self, count: int, sparse: int, traits: Traits) -> list[Kind]:
        """One kind a block: the first has the bias, every `step`-th is a mixture from the second on."""
        step = count // sparse if sparse else count
        mixed = [traits.mixtures and bool(sparse) and step > 0 and (step == 1 or i % step == 1) for i in range(count)]
        return [Kind(traits.every_bias or i == 0, mixed[i]) for i in range(count)]


def _shapes(config: Config, traits: Traits) -> Shapes:
    layers = config.layers("num_layers")
    act = config.values.get("feed_forward_proj") or "relu"
    if not isinstance(act, str):
        config.fault("bad_value", "feed_forward_proj is not a word", "feed_forward_proj", got=brief(act))
        act = "relu"
    sparse = [config.whole(f"num_sparse_{side}_layers", default=3, low=0) for side in ("encoder", "decoder")]
    return Shapes(
        hidden=config.need("d_model"), heads=config.need("num_heads", high=1_000_000), head_dim=config.need("d_kv"),
        ffn=config.need("d_ff"), vocab=config.need("vocab_size"), layers=layers,
        decoder_layers=config.whole("num_decoder_layers", default=layers, high=100_000),
        buckets=config.whole("relative_attention_num_buckets", default=32),
        gated=config.flag("is_gated_act", default=act.startswith("gated-")),
        experts=config.need("num_experts") if traits.mixtures else 0,
        router_bias=config.flag("router_bias", default=False), sparse=(sparse[0], sparse[1]),
    )  # fmt: skip


def _attend(shapes: Shapes, at: str, mask: str, key_stream: str | None = None) -> tuple[Node, ...]:
    spec = AttentionSpec(
        hidden=shapes.hidden, heads=shapes.heads, kv_heads=shapes.heads, head_dim=shapes.head_dim, mask=mask,
        key_stream=key_stream, dropout=True, names=AttentionNames(at=at, q="q", k="k", v="v", o="o"),
    )  # fmt: skip
    return (*attention(spec), *dropped(f"{at}.dropout", shapes.hidden))


def _feed(shapes: Shapes, traits: Traits, at: str, sparse: bool) -> tuple[Node, ...]:
    if not sparse:
        names = ("wi_0", "wi_1", "wo") if shapes.gated else ("wi", "wo")
        return mlp(shapes.hidden, shapes.ffn, at=f"{at}.{traits.feed_at}", names=names, dropout=True)
    return moe(
        MoeSpec(
            hidden=shapes.hidden, experts=shapes.experts, top_k=1, ffn=shapes.ffn, at=f"{at}.{traits.feed_at}",
            gate="router.classifier", gate_bias=shapes.router_bias, gated=False,
        )
    )  # fmt: skip


def _block(shapes: Shapes, traits: Traits, kind: Kind, mask: str, cross: bool) -> tuple[Node, ...]:
    h, at = shapes.hidden, "layer.0.SelfAttention"
    bias = Embedding(name=f"{at}.relative_attention_bias", num=shapes.buckets, dim=shapes.heads, role="bias")
    crossing = (norm("layer.1.layer_norm", h), *_attend(shapes, "layer.1.EncDecAttention", "full", ENCODER))
    last = "layer.2" if cross else "layer.1"
    return (
        norm("layer.0.layer_norm", h),
        *((bias,) if kind.bias else ()),
        *_attend(shapes, at, mask),
        *(crossing if cross else ()),
        norm(f"{last}.layer_norm", h),
        *_feed(shapes, traits, last, kind.sparse),
    )


def read_t5(config: Config, name: str, traits: Traits | None = None) -> Arch:
    """T5: relative position biases in the first layer of each side, no biases, optional gating."""
    traits = traits or Traits()
    shapes = _shapes(config, traits)
    tied = config.flag("tie_word_embeddings", default=True) and not traits.sound
    composers = config.need("composer_vocab_size") if traits.sound else 0
    config.check()
    h, vocab = shapes.hidden, shapes.vocab

    def side(at: str, count: int, sparse: int, mask: str, cross: bool) -> tuple[Node, ...]:
        kinds = shapes.kinds(count, sparse, traits)
        return (
            *stack(f"{at}.block", kinds, lambda kind: _block(shapes, traits, kind, mask, cross)),
            norm(f"{at}.final_layer_norm", h),
        )

    words = Embedding(name="shared", num=vocab, dim=h)
    again = Embedding(name="decoder.embed_tokens", num=vocab, dim=h, tied=True)
    first = Embedding(name="mel_conditioner.embedding", num=composers, dim=h) if traits.sound else words
    encoder = (first, *side("encoder", shapes.layers, shapes.sparse[0], "full", False))
    children = (
        Module(name="", stream=ENCODER, children=encoder),
        words if traits.sound else again,
        *side("decoder", shapes.decoder_layers, shapes.sparse[1], "causal", True),
        Linear(name="lm_head", in_features=h, out_features=vocab, role="lm_head", tied=tied),
    )
    routed = "every token passes its expert; none is dropped over capacity"
    return Arch(
        name=name, root=Module(name="", children=children),
        streams=(Stream(name=TOKENS, decodes=True), Stream(name=ENCODER)),
        shape=Shape(
            num_layers=shapes.layers + shapes.decoder_layers, hidden=h, heads=shapes.heads, kv_heads=shapes.heads,
            head_dim=shapes.head_dim, ffn=shapes.ffn, vocab=vocab, gated=shapes.gated,
        ),
        max_positions=config.maybe("n_positions"), task="speech-seq2seq" if traits.sound else "seq2seq-lm",
        notes=("encoder and decoder each of --seq positions", *((routed,) if traits.mixtures else ())),
    )  # fmt: skip


def _reader(traits: Traits) -> Callable[[Config, str], Arch]:
    return lambda config, name: read_t5(config, name, traits)


FAMILIES = {
    "t5": read_t5,
    "mt5": read_t5,
    "umt5": _reader(Traits(every_bias=True)),
    "switch_transformers": unties(_reader(Traits(feed_at="mlp", mixtures=True))),
    "pop2piano": _reader(Traits(sound=True)),
}
