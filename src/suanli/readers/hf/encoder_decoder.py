"""Encoder–decoders: BART and Whisper. Encoder and decoder are two streams; cross-attention joins them."""

from __future__ import annotations

from suanli.nouns.arch import TOKENS, Arch, Module, Shape, Stream
from suanli.nouns.layers import Buffer, Conv, Embedding, Linear
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, dropped, mlp, norm, stack
from suanli.readers.config import Config, StandIn
from suanli.readers.hf.untied import unties

ENCODER = "encoder"


def shape_of(layers: int, hidden: int, heads: int, head_dim: int, ffn: int, vocab: int, gated: bool = False) -> Shape:
    """The letters of the formulas; layers of both sides together."""
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


@unties
def read_bart(config: Config, name: str) -> Arch:
    """BART: learned positions with two spare rows, a norm after the embedding, tied head."""
    h, vocab = config.need("d_model"), config.need("vocab_size")
    both = sides(config, h)
    positions = config.need("max_position_embeddings")
    config.check()
    (layers, heads, ffn), (decoder_layers, decoder_heads, decoder_ffn) = both

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
        shape=shape_of(layers + decoder_layers, h, heads, h // heads, ffn, vocab),
        max_positions=positions,
        task="seq2seq-lm",
        notes=("encoder and decoder each of --seq positions",),
    )


def sides(config: Config, hidden: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
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


@unties
def read_whisper(config: Config, name: str) -> Arch:
    """Whisper: two convolutions over the spectrogram, an encoder of 1,500 frames, a decoder of --seq tokens."""
    h, vocab = config.need("d_model"), config.need("vocab_size")
    mels = config.need("num_mel_bins")
    (layers, heads, ffn), (decoder_layers, decoder_heads, decoder_ffn) = sides(config, h)
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
        shape=shape_of(layers + decoder_layers, h, heads, h // heads, ffn, vocab),
        max_positions=targets,
        task="speech-seq2seq",
        notes=(f"encoder of {frames:,} frames (30 s of sound), decoder of --seq tokens",),
    )


FAMILIES = {"bart": read_bart, "whisper": read_whisper}
