"""Encoders built from the parts of recent decoders: rotary positions, fused or gated matrices, two-sided windows."""

from __future__ import annotations

from dataclasses import dataclass

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Embedding, Linear
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, mlp, norm, stack
from suanli.readers.config import Config, StandIn
from suanli.readers.hf.common import FULL, SLIDING, Widths, read_widths
from suanli.readers.hf.encoders import LM, encoder_arch, head

MODERN_ATTENTION = AttentionNames(at="attn", fused="Wqkv", o="Wo")


def _seen(kind: str, window: int | None) -> dict[str, object]:
    """A sliding layer sees `window` positions to either side, another one all."""
    return {"mask": "band", "window": window} if kind == SLIDING else {"mask": "full"}


def read_modernbert(config: Config, name: str) -> Arch:
    """ModernBERT: fused projections, two thirds of the layers with a two-sided window, no norm before the first."""
    widths = read_widths(config, grouped=False)
    h, ffn, vocab = widths.hidden, widths.ffn, widths.vocab
    kinds = _kinds(config, widths, config.whole("global_attn_every_n_layers", default=3))
    window = config.whole("local_attention", default=128) // 2
    tied = config.flag("tie_word_embeddings", default=True)
    biases = {key: config.flag(key, default=False) for key in ("attention_bias", "mlp_bias", "classifier_bias")}
    kind = "layer" if config.flag("norm_bias", default=False) else "layer_no_bias"
    out_bias = config.flag("decoder_bias", default=True)
    config.check()

    def make(which: tuple[bool, str]) -> tuple[Node, ...]:
        first, seen = which
        spec = AttentionSpec(
            hidden=h, heads=widths.heads, kv_heads=widths.heads, head_dim=widths.head_dim, names=MODERN_ATTENTION,
            qkv_bias=biases["attention_bias"], o_bias=biases["attention_bias"], **_seen(seen, window),  # type: ignore[arg-type]
        )  # fmt: skip
        gate_up = Linear(name="mlp.Wi", in_features=h, out_features=2 * ffn, bias=biases["mlp_bias"])
        down = Linear(name="mlp.Wo", in_features=ffn, out_features=h, bias=biases["mlp_bias"])
        before = () if first else (norm("attn_norm", h, kind),)
        return (*before, *attention(spec), norm("mlp_norm", h, kind), gate_up, down)

    nodes: tuple[Node, ...] = (
        Embedding(name="model.embeddings.tok_embeddings", num=vocab, dim=h),
        norm("model.embeddings.norm", h, kind),
        *stack("model.layers", [(i == 0, kind) for i, kind in enumerate(kinds)], make),
        norm("model.final_norm", h, kind),
        Linear(name="head.dense", in_features=h, out_features=h, bias=biases["classifier_bias"]),
        norm("head.norm", h, kind),
        Linear(name="decoder", in_features=h, out_features=vocab, bias=out_bias, role="lm_head", tied=tied),
    )
    return encoder_arch(name, widths, nodes, gated=True)


def _kinds(config: Config, widths: Widths, every: int) -> tuple[str, ...]:
    """One word a layer: the config's list, or full attention in every `every`-th layer from the first."""
    types = config.names("layer_types", widths.layers, (FULL, SLIDING))
    layers = 1 if isinstance(widths.layers, StandIn) else widths.layers
    return types or tuple(FULL if i % every == 0 else SLIDING for i in range(layers))


@dataclass(frozen=True, kw_only=True)
class Traits:
    """How a Llama-shaped encoder differs from EuroBERT."""

    base: str = "model"
    qk_norm: str | None = None
    norm_kind: str = "rms"
    final_kind: str = "rms"
    windows: bool = False


def _layers(config: Config, widths: Widths, traits: Traits) -> tuple[Node, ...]:
    h = widths.hidden
    kinds = _kinds(config, widths, 1) if traits.windows else (FULL,) * int(widths.layers)
    window = config.need("sliding_window") if traits.windows and SLIDING in kinds else None
    attention_bias = config.flag("attention_bias", default=False)
    mlp_bias = config.flag("mlp_bias", default=False)
    config.check()

    def make(kind: str) -> tuple[Node, ...]:
        spec = AttentionSpec(
            hidden=h, heads=widths.heads, kv_heads=widths.kv_heads, head_dim=widths.head_dim, qkv_bias=attention_bias,
            o_bias=attention_bias, qk_norm=traits.qk_norm, qk_norm_kind="layer_no_bias", **_seen(kind, window),  # type: ignore[arg-type]
        )  # fmt: skip
        return (
            norm("input_layernorm", h, traits.norm_kind),
            *attention(spec),
            norm("post_attention_layernorm", h, traits.norm_kind),
            *mlp(h, widths.ffn, bias=mlp_bias),
        )

    return (
        Embedding(name=f"{traits.base}.embed_tokens", num=widths.vocab, dim=h),
        *stack(f"{traits.base}.layers", kinds, make),
        norm(f"{traits.base}.norm", h, traits.final_kind),
    )


def read_eurobert(config: Config, name: str) -> Arch:
    """EuroBERT: a Llama that sees both ways, with a plain head."""
    widths = read_widths(config)
    tied = config.flag("tie_word_embeddings", default=False)
    last = Linear(
        name="lm_head", in_features=widths.hidden, out_features=widths.vocab, role="lm_head", tied=tied,
        bias=config.flag("mlp_bias", default=False),
    )  # fmt: skip
    return encoder_arch(name, widths, (*_layers(config, widths, Traits()), last), gated=True)


def read_ultrabert(config: Config, name: str) -> Arch:
    """UltraBERT: EuroBERT with windows and a narrow two-matrix head."""
    widths = read_widths(config)
    h, narrow = widths.hidden, config.whole("head_hidden_size", default=768)
    tied = config.flag("tie_word_embeddings", default=False)
    nodes = (
        *_layers(config, widths, Traits(windows=True)),
        Linear(name="head.linear1", in_features=h, out_features=narrow),
        Linear(name="head.linear2", in_features=narrow, out_features=h),
        Linear(name="head.decoder", in_features=h, out_features=widths.vocab, role="lm_head", tied=tied),
    )
    return encoder_arch(name, widths, nodes, gated=True)


def read_esmc(config: Config, name: str) -> Arch:
    """ESM-C: queries and keys normed over all heads, RoBERTa's head with a matrix of its own."""
    widths = read_widths(config, grouped=False)
    traits = Traits(base="esmc", qk_norm="full", norm_kind="layer", final_kind="layer_no_bias")
    if config.flag("tie_word_embeddings", default=False):
        config.fault("unsupported", "a tied ESM-C is not read", "tie_word_embeddings")
    first = _layers(config, widths, traits)
    dense, normed, *_ = head(LM, widths.hidden, widths.hidden, widths.vocab)
    last = Linear(
        name="lm_head.decoder", in_features=widths.hidden, out_features=widths.vocab, bias=True, role="lm_head"
    )
    return encoder_arch(name, widths, (*first, dense, normed, last), gated=True)


FAMILIES = {
    "modernbert": read_modernbert,
    "eurobert": read_eurobert,
    "ultrabert": read_ultrabert,
    "esmc": read_esmc,
}
