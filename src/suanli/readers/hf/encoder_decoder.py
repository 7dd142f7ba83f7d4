"""Encoder–decoders: T5, BART, Whisper. Encoder and decoder are two streams; cross-attention joins them."""

from __future__ import annotations

from suanli.nouns.arch import TOKENS, Arch, Module, Shape, Stream
from suanli.nouns.layers import Buffer, Conv, Embedding, Linear
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, dropped, mlp, norm, stack
from suanli.readers.config import Config, StandIn, brief

ENCODER = "encoder"


def _shape(layers: int, hidden: int, heads: int, head_dim: int, ffn: int, vocab: int, gated: bool = False) -> Shape:
    return Shape(
        num_layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        ffn=ffn,
        vocab=vocab,
        gated=gated,
    )


def read_t5(config: Config, name: str) -> Arch:
    """T5: relative position biases in the first layer of each side, no biases, optional gating."""
    h, heads, d = config.need("d_model"), config.need("num_heads", high=1_000_000), config.need("d_kv")
    ffn, vocab = config.need("d_ff"), config.need("vocab_size")
    layers = config.layers("num_layers")
    decoder_layers = config.whole("num_decoder_layers", default=layers, high=100_000)
    act = config.values.get("feed_forward_proj") or "relu"
    if not isinstance(act, str):
        config.fault("bad_value", "feed_forward_proj is not a word", "feed_forward_proj", got=brief(act))
        act = "relu"
    gated = config.flag("is_gated_act", default=act.startswith("gated-"))
    tied = config.flag("tie_word_embeddings", default=True)
    buckets = config.whole("relative_attention_num_buckets", default=32)
    config.check()
    names = ("wi_0", "wi_1", "wo") if gated else ("wi", "wo")

    def attend(at: str, mask: str, key_stream: str | None = None) -> tuple[Node, ...]:
        spec = AttentionSpec(
            hidden=h, heads=heads, kv_heads=heads, head_dim=d, mask=mask, key_stream=key_stream, dropout=True,
            names=AttentionNames(at=at, q="q", k="k", v="v", o="o"),
        )  # fmt: skip
        return (*attention(spec), *dropped(f"{at}.dropout", h))

    def bias(first: bool) -> tuple[Node, ...]:
        at = "layer.0.SelfAttention.relative_attention_bias"
        return (Embedding(name=at, num=buckets, dim=heads, role="bias"),) if first else ()

    def encoder_block(first: bool) -> tuple[Node, ...]:
        return (
            norm("layer.0.layer_norm", h),
            *bias(first),
            *attend("layer.0.SelfAttention", "full"),
            norm("layer.1.layer_norm", h),
            *mlp(h, ffn, at="layer.1.DenseReluDense", names=names, dropout=True),
        )

    def decoder_block(first: bool) -> tuple[Node, ...]:
        return (
            norm("layer.0.layer_norm", h),
            *bias(first),
            *attend("layer.0.SelfAttention", "causal"),
            norm("layer.1.layer_norm", h),
            *attend("layer.1.EncDecAttention", "full", ENCODER),
            norm("layer.2.layer_norm", h),
            *mlp(h, ffn, at="layer.2.DenseReluDense", names=names, dropout=True),
        )

    encoder = Module(
        name="",
        stream=ENCODER,
        children=(
            Embedding(name="shared", num=vocab, dim=h),
            *stack("encoder.block", [i == 0 for i in range(layers)], encoder_block),
            norm("encoder.final_layer_norm", h),
        ),
    )
    children: tuple[Node, ...] = (
        encoder,
        Embedding(name="decoder.embed_tokens", num=vocab, dim=h, tied=True),
        *stack("decoder.block", [i == 0 for i in range(decoder_layers)], decoder_block),
        norm("decoder.final_layer_norm", h),
        Linear(name="lm_head", in_features=h, out_features=vocab, role="lm_head", tied=tied),
    )
    return Arch(
        name=name,
        root=Module(name="", children=children),
        streams=(Stream(name=TOKENS, decodes=True), Stream(name=ENCODER)),
        shape=_shape(layers + decoder_layers, h, heads, d, ffn, vocab, gated),
        max_positions=config.maybe("n_positions"),
        task="seq2seq-lm",
        notes=("encoder and decoder each of --seq positions",),
    )


def bart_layer(
    h: int, heads: int, ffn: int, *, mask: str, cross: bool, k_bias: bool = True, pre_norm: bool = False
) -> tuple[Node, ...]:
    """A layer of BART (norms after) or Whisper (norms before); parameters are the same either way."""

    def attend(at: str, how: str, key_stream: str | None = None) -> tuple[Node, ...]:
        spec = AttentionSpec(
            hidden=h, heads=heads, kv_heads=heads, head_dim=max(1, h // heads), qkv_bias=True, k_bias=k_bias,
            o_bias=True, mask=how, key_stream=key_stream, dropout=True, names=AttentionNames(at=at, o="out_proj"),
        )  # fmt: skip
        return (*attention(spec), *dropped(f"{at}.dropout", h))

    def sandwich(name: str, inner: tuple[Node, ...]) -> tuple[Node, ...]:
        return (norm(name, h, "layer"), *inner) if pre_norm else (*inner, norm(name, h, "layer"))

    crossing = sandwich("encoder_attn_layer_norm", attend("encoder_attn", "full", ENCODER)) if cross else ()
    feed = mlp(h, ffn, at="", names=("fc1", "fc2"), bias=True, dropout=True)
    return (
        *sandwich("self_attn_layer_norm", attend("self_attn", mask)),
        *crossing,
        *sandwich("final_layer_norm", feed),
    )


def read_bart(config: Config, name: str) -> Arch:
    """BART: learned positions with two spare rows, a norm after the embedding, tied head."""
    h, vocab = config.need("d_model"), config.need("vocab_size")
    sides = _sides(config, h)
    positions = config.need("max_position_embeddings")
    if not config.flag("tie_word_embeddings", default=True):
        config.fault("unsupported", "an untied BART is not read", "tie_word_embeddings")
    config.check()
    (layers, heads, ffn), (decoder_layers, decoder_heads, decoder_ffn) = sides

    def side(at: str, count: int, n: int, f: int, tied: bool, cross: bool) -> tuple[Node, ...]:
        mask = "causal" if cross else "full"
        return (
            Embedding(name=f"{at}.embed_tokens" if tied else "model.shared", num=vocab, dim=h, tied=tied),
            Embedding(name=f"{at}.embed_positions", num=positions + 2, dim=h, role="position"),
            norm(f"{at}.layernorm_embedding", h, "layer"),
            *stack(f"{at}.layers", (0,) * count, lambda _: bart_layer(h, n, f, mask=mask, cross=cross)),
        )

    encoder = Module(name="", stream=ENCODER, children=side("model.encoder", layers, heads, ffn, False, False))
    children = (
        encoder,
        *side("model.decoder", decoder_layers, decoder_heads, decoder_ffn, True, True),
        Linear(name="lm_head", in_features=h, out_features=vocab, role="lm_head", tied=True),
        Buffer(name="final_logits_bias", shape=(1, vocab)),
    )
    return Arch(
        name=name,
        root=Module(name="", children=children),
        streams=(Stream(name=TOKENS, decodes=True), Stream(name=ENCODER)),
        shape=_shape(layers + decoder_layers, h, heads, h // heads, ffn, vocab),
        max_positions=positions,
        task="seq2seq-lm",
        notes=("encoder and decoder each of --seq positions",),
    )


def _sides(config: Config, hidden: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """(layers, heads, ffn) of encoder and of decoder; heads must divide the width."""
    found = []
    for side in ("encoder", "decoder"):
        heads = config.need(f"{side}_attention_heads", high=1_000_000)
        if hidden % heads and not isinstance(hidden, StandIn):
            config.fault(
                "contradiction", "the number of heads does not divide the width", f"{side}_attention_heads",
                got=f"{heads} heads, width {hidden}",
            )  # fmt: skip
        found.append((config.layers(f"{side}_layers"), heads, config.need(f"{side}_ffn_dim")))
    return found[0], found[1]


def read_whisper(config: Config, name: str) -> Arch:
    """Whisper: two convolutions over the spectrogram, an encoder of 1,500 frames, a decoder of --seq tokens."""
    h, vocab = config.need("d_model"), config.need("vocab_size")
    mels = config.need("num_mel_bins")
    (layers, heads, ffn), (decoder_layers, decoder_heads, decoder_ffn) = _sides(config, h)
    frames = config.whole("max_source_positions", default=1500)
    targets = config.whole("max_target_positions", default=448)
    config.check()

    def side(at: str, count: int, n: int, f: int, cross: bool) -> tuple[Node, ...]:
        mask = "causal" if cross else "full"
        build = lambda _: bart_layer(h, n, f, mask=mask, cross=cross, k_bias=False, pre_norm=True)  # noqa: E731
        return (*stack(f"{at}.layers", (0,) * count, build), norm(f"{at}.layer_norm", h, "layer"))

    waves = (2 * frames,)
    encoder = (
        Module(
            name="",
            stream="sample",
            children=(
                Conv(
                    name="model.encoder.conv1",
                    in_channels=mels,
                    out_channels=h,
                    kernel=(3,),
                    in_size=waves,
                    out_size=waves,
                ),
                Conv(
                    name="model.encoder.conv2",
                    in_channels=h,
                    out_channels=h,
                    kernel=(3,),
                    in_size=waves,
                    out_size=(frames,),
                ),
            ),
        ),
        Embedding(name="model.encoder.embed_positions", num=frames, dim=h, role="position"),
        *side("model.encoder", layers, heads, ffn, False),
    )
    children = (
        Module(name="", stream=ENCODER, children=encoder),
        Embedding(name="model.decoder.embed_tokens", num=vocab, dim=h),
        Embedding(name="model.decoder.embed_positions", num=targets, dim=h, role="position"),
        *side("model.decoder", decoder_layers, decoder_heads, decoder_ffn, True),
        Linear(name="proj_out", in_features=h, out_features=vocab, role="lm_head", tied=True),
    )
    return Arch(
        name=name,
        root=Module(name="", children=children),
        streams=(Stream(name=TOKENS, decodes=True), Stream(name=ENCODER, length=frames)),
        shape=_shape(layers + decoder_layers, h, heads, h // heads, ffn, vocab),
        max_positions=targets,
        task="speech-seq2seq",
        notes=(f"encoder of {frames:,} frames (30 s of sound), decoder of --seq tokens",),
    )


FAMILIES = {"t5": read_t5, "bart": read_bart, "whisper": read_whisper}
