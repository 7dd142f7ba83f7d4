"""Models known from papers, that no Hugging Face class describes: decoders, encoder–decoders, bare estimates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suanli.nouns.arch import TOKENS, Arch, Module, Shape, Stream
from suanli.nouns.layers import Embedding, Linear, Opaque, Parameter
from suanli.readers.blocks import (
    AttentionNames,
    AttentionSpec,
    MoeSpec,
    Node,
    attention,
    mlp,
    moe,
    norm,
    reading_block,
    stack,
)
from suanli.readers.config import Config
from suanli.readers.decoder import DecoderNames, DecoderSpec, decoder
from suanli.readers.hf.encoder_decoder import ENCODER

_NORMS = {"layernorm": "layer", "rmsnorm": "rms", "layernorm_no_bias": "layer_no_bias"}
_NAMES = DecoderNames(embed="embedding", positions="positions", layers="layers", norm="final_norm", head="lm_head")


def read_paper_decoder(values: Mapping[str, Any], name: str, where: str = "config") -> Arch:
    """A decoder by the letters of its paper. Raises ConfigError with every fault."""
    config = Config(values, where)
    hidden, heads = config.need("hidden"), config.need("heads", high=1_000_000)
    shape = Shape(
        num_layers=config.layers("num_layers"), hidden=hidden, heads=heads, kv_heads=config.kv_heads(heads, "kv_heads"),
        head_dim=config.head_dim(hidden, heads), ffn=config.need("ffn"), vocab=config.need("vocab"),
        gated=config.flag("gated", default=False),
    )  # fmt: skip
    kind = _NORMS[config.choice("norm", tuple(_NORMS), "layernorm")]
    experts = config.whole("experts", default=0, low=0)
    dense_first = config.whole("first_dense_layers", default=0, low=0) if experts else shape.num_layers
    layer = _layer_maker(config, shape, kind, experts)
    max_positions = config.maybe("max_positions")
    learned = config.flag("learned_positions", default=False)
    if learned and max_positions is None:
        config.fault("missing_key", "learned positions need max_positions", "max_positions")
    tied = config.flag("tied", default=False)
    final = config.flag("final_norm", default=True)
    config.check()
    relative = config.flag("relative_positions", default=False)
    spec = DecoderSpec(
        shape=shape,
        kinds=tuple(i >= dense_first for i in range(shape.num_layers)),
        make=layer,
        names=_NAMES,
        tied=tied,
        norm_kind=kind if final else None,
        learned_positions=(max_positions or 0) if learned else 0,
        max_positions=max_positions,
        notes=("products with relative positions are not counted, their weights are",) if relative else (),
    )
    return decoder(name, spec)


def _layer_maker(config: Config, shape: Shape, kind: str, experts: int) -> Any:
    """A function that builds a dense (False) or routed (True) layer."""
    bias, mlp_bias = config.flag("attention_bias", default=False), config.flag("mlp_bias", default=False)
    parallel = config.flag("parallel_block", default=False)
    relative = config.flag("relative_positions", default=False)
    norms = config.whole("norms_per_layer", default=1 if parallel else 2, high=4)
    names = ("gate_proj", "up_proj", "down_proj") if shape.gated else ("up_proj", "down_proj")
    attend = attention(
        AttentionSpec(
            hidden=shape.hidden, heads=shape.heads, kv_heads=shape.kv_heads, head_dim=shape.head_dim, qkv_bias=bias,
            o_bias=bias, names=AttentionNames(at="attention"),
        )
    )  # fmt: skip
    if relative:
        attend = (*attend, Parameter(name="attention.relative_positions", shape=(shape.hidden, shape.hidden)))
    if experts:
        width = config.whole("expert_ffn", default=shape.ffn)
        shared = config.whole("shared_experts", default=0, low=0) * config.whole("shared_ffn", default=0, low=0)
        top_k = config.need("experts_per_token", high=experts)
        routed = MoeSpec(
            hidden=shape.hidden, experts=experts, top_k=top_k, ffn=width, gated=shape.gated, shared_ffn=shared
        )
    around = tuple(norm(f"norm_{i}", shape.hidden, kind) for i in range(norms))

    def make(sparse: bool) -> tuple[Node, ...]:
        feed = moe(routed) if sparse else mlp(shape.hidden, shape.ffn, names=names, bias=mlp_bias)
        feed = reading_block(feed) if parallel else feed
        return (*around[:1], *attend, *around[1:2], *feed, *around[2:])

    return make


def read_paper_encoder_decoder(values: Mapping[str, Any], name: str, where: str = "config") -> Arch:
    """The original Transformer's shape: post-norm layers, one matrix for both embeddings and the output where tied."""
    config = Config(values, where)
    h, heads = config.need("hidden"), config.need("heads", high=1_000_000)
    d, ffn, vocab = config.head_dim(h, heads), config.need("ffn"), config.need("vocab")
    layers, decoder_layers = config.layers("encoder_layers"), config.layers("decoder_layers")
    kind = _NORMS[config.choice("norm", tuple(_NORMS), "layernorm")]
    bias, mlp_bias = config.flag("attention_bias", default=False), config.flag("mlp_bias", default=True)
    tied = config.flag("tied", default=True)
    config.check()

    def attend(at: str, mask: str, key_stream: str | None = None) -> tuple[Node, ...]:
        spec = AttentionSpec(
            hidden=h, heads=heads, kv_heads=heads, head_dim=d, qkv_bias=bias, o_bias=bias, mask=mask,
            key_stream=key_stream, names=AttentionNames(at=at),
        )  # fmt: skip
        return (*attention(spec), norm(f"{at}_norm", h, kind))

    feed = (*mlp(h, ffn, names=("up_proj", "down_proj"), bias=mlp_bias), norm("mlp_norm", h, kind))
    encoder_layer = (*attend("self_attention", "full"), *feed)
    decoder_layer = (*attend("self_attention", "causal"), *attend("cross_attention", "full", ENCODER), *feed)
    encoder: tuple[Node, ...] = (
        Embedding(name="encoder.embedding", num=vocab, dim=h),
        *stack("encoder.layers", (0,) * layers, lambda _: encoder_layer),
    )
    children: tuple[Node, ...] = (
        Module(name="", stream=ENCODER, children=encoder),
        Embedding(name="decoder.embedding", num=vocab, dim=h, tied=tied),
        *stack("decoder.layers", (0,) * decoder_layers, lambda _: decoder_layer),
        Linear(name="lm_head", in_features=h, out_features=vocab, role="lm_head", tied=tied),
    )
    shape = Shape(
        num_layers=layers + decoder_layers,
        hidden=h,
        heads=heads,
        kv_heads=heads,
        head_dim=d,
        ffn=ffn,
        vocab=vocab,
    )
    return Arch(
        name=name, root=Module(name="", children=children), shape=shape, task="seq2seq-lm",
        streams=(Stream(name=TOKENS, decodes=True), Stream(name=ENCODER)),
        notes=("encoder and decoder each of --seq positions",),
    )  # fmt: skip


def read_estimate(values: Mapping[str, Any], name: str, where: str = "config") -> Arch:
    """A model known only by its number of parameters; nothing that needs a shape can be said of it."""
    config = Config(values, where)
    high = 10**16
    each, experts = config.need("params_per_expert", high=high), config.need("experts")
    routed, shared = config.need("experts_per_token"), config.need("shared_params", low=0, high=high)
    config.check()
    children: tuple[Node, ...] = (
        Opaque(name="shared", total=shared, active=shared),
        Opaque(name="experts", total=experts * each, active=min(routed, experts) * each),
    )
    return Arch(
        name=name, root=Module(name="", children=children), task="causal-lm",
        notes=("an unconfirmed estimate of no published shape: attention, embeddings and KV cache are not counted",),
    )  # fmt: skip


READERS = {
    "decoder": read_paper_decoder,
    "encoder-decoder": read_paper_encoder_decoder,
    "estimate": read_estimate,
}
