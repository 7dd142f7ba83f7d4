"""Sound to text: Speech2Text, SpeechT5, Moonshine; and the spectrogram transformer, a ViT over a spectrogram."""

from __future__ import annotations

from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Shape, Stream
from suanli.nouns.layers import Attention, Conv, Embedding, Linear
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, mlp, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf import vit_like
from suanli.readers.hf.encoder_decoder import ENCODER, bart_layer, shape_of, sides
from suanli.readers.hf.resnet import conv_out
from suanli.readers.hf.sound import FEED, RELATIVE, WAVE_ATTENTION, mask_vector, position_conv, wave_convs
from suanli.readers.hf.vision import heads_of, labels_of

MOONSHINE_CONVS = ((127, 64), (7, 3), (3, 2))  # kernels and strides, arXiv:2410.15608 §3


def _speech_arch(
    name: str, children: tuple[Node, ...], shape: Shape, frames: int, positions: int | None, *more: Stream
) -> Arch:
    """An encoder of a fixed number of frames and a decoder of --seq tokens."""
    return Arch(
        name=name, root=Module(name="", children=children),
        streams=(Stream(name=TOKENS, decodes=True), Stream(name=ENCODER, length=frames), *more), shape=shape,
        max_positions=positions, task="speech-seq2seq",
        notes=(f"encoder of {frames:,} frames of sound, decoder of --seq tokens",),
    )  # fmt: skip


def read_speech_to_text(config: Config, name: str) -> Arch:
    """Speech2Text (arXiv:2010.05171): gated convolutions of stride 2 over a spectrogram of `audio_frames`."""
    h, vocab = config.need("d_model"), config.need("vocab_size")
    both, tied = sides(config, h), config.flag("tie_word_embeddings", default=True)
    kernels = config.wholes("conv_kernel_sizes", low=1) or ()
    middle, c_in = config.need("conv_channels"), config.need("input_feat_per_channel") * config.need("input_channels")
    targets = config.need("max_target_positions")
    config.check()
    size: tuple[int, ...] = (config.whole("audio_frames", default=3000),)
    convs: list[Node] = []
    for i, taps in enumerate(kernels):
        out = conv_out(size, taps, 2, taps // 2)
        width = 2 * h if i == len(kernels) - 1 else middle
        conv = Conv(
            name=f"model.encoder.conv.conv_layers.{i}", in_channels=c_in, out_channels=width, kernel=(taps,),
            in_size=size, out_size=out, raw_input=i == 0,
        )  # fmt: skip
        convs.append(conv)
        size, c_in = out, width // 2
    (layers, heads, ffn), (decoder_layers, decoder_heads, decoder_ffn) = both

    def side(at: str, count: int, n: int, f: int, cross: bool) -> tuple[Node, ...]:
        inner = bart_layer(h, n, f, mask="causal" if cross else "full", cross=cross, pre_norm=True)
        return (*stack(f"{at}.layers", (0,) * count, lambda _: inner), norm(f"{at}.layer_norm", h, "layer"))

    encoder: tuple[Node, ...] = (
        Module(name="", stream=SAMPLE, children=tuple(convs)),
        *side("model.encoder", layers, heads, ffn, False),
    )
    children: tuple[Node, ...] = (
        Module(name="", stream=ENCODER, children=encoder),
        Embedding(name="model.decoder.embed_tokens", num=vocab, dim=h),
        *side("model.decoder", decoder_layers, decoder_heads, decoder_ffn, True),
        Linear(name="lm_head", in_features=h, out_features=vocab, role="lm_head", tied=tied),
    )
    shape = shape_of(layers + decoder_layers, h, heads, h // heads, ffn, vocab)
    return _speech_arch(name, children, shape, size[0], targets)


def read_moonshine(config: Config, name: str) -> Arch:
    """Moonshine: three convolutions over the wave of `audio_samples`, a gated MLP in the decoder only."""
    h, vocab, ffn = config.need("hidden_size"), config.need("vocab_size"), config.need("intermediate_size")
    layers, decoder_layers = (config.layers(f"{side}_num_hidden_layers") for side in ("encoder", "decoder"))
    heads, decoder_heads = (config.need(f"{side}_num_attention_heads") for side in ("encoder", "decoder"))
    grouped = [config.kv_heads(n, f"{side}_num_key_value_heads") for side, n in
               (("encoder", heads), ("decoder", decoder_heads))]  # fmt: skip
    bias, tied = config.flag("attention_bias", default=False), config.flag("tie_word_embeddings", default=True)
    size: tuple[int, ...] = (config.whole("audio_samples", default=160_000),)
    config.check()
    at, c_in = "model.encoder", 1
    convs: list[Node] = []
    for i, ((taps, stride), width) in enumerate(zip(MOONSHINE_CONVS, (h, 2 * h, h), strict=True)):
        out = conv_out(size, taps, stride, 0)
        conv = Conv(
            name=f"{at}.conv{i + 1}", in_channels=c_in, out_channels=width, kernel=(taps,), in_size=size, out_size=out,
            bias=i > 0, raw_input=i == 0,
        )  # fmt: skip
        convs.append(conv)
        size, c_in = out, width

    def attend(where: str, n: int, kv: int, mask: str, key_stream: str | None = None) -> tuple[Node, ...]:
        spec = AttentionSpec(
            hidden=h, heads=n, kv_heads=kv, head_dim=h // n, qkv_bias=bias, mask=mask, key_stream=key_stream,
            names=AttentionNames(at=where),
        )  # fmt: skip
        return attention(spec)

    def plain(where: str) -> Node:
        return norm(where, h, "layer_no_bias")

    inner = (
        plain("input_layernorm"),
        *attend("self_attn", heads, grouped[0], "full"),
        plain("post_attention_layernorm"),
        *mlp(h, ffn, names=("fc1", "fc2"), bias=True),
    )
    outer = (
        plain("input_layernorm"),
        *attend("self_attn", decoder_heads, grouped[1], "causal"),
        plain("post_attention_layernorm"),
        *attend("encoder_attn", decoder_heads, grouped[1], "full", ENCODER),
        plain("final_layernorm"),
        Linear(name="mlp.fc1", in_features=h, out_features=2 * ffn, bias=True),
        Linear(name="mlp.fc2", in_features=ffn, out_features=h, bias=True),
    )
    encoder: tuple[Node, ...] = (
        Module(name="", stream=SAMPLE, children=(*convs, norm(f"{at}.groupnorm", h, "layer"))),
        *stack(f"{at}.layers", (0,) * layers, lambda _: inner),
        plain(f"{at}.layer_norm"),
    )
    children: tuple[Node, ...] = (
        Module(name="", stream=ENCODER, children=encoder),
        Embedding(name="model.decoder.embed_tokens", num=vocab, dim=h),
        *stack("model.decoder.layers", (0,) * decoder_layers, lambda _: outer),
        plain("model.decoder.norm"),
        Linear(name="proj_out", in_features=h, out_features=vocab, role="lm_head", tied=tied),
    )
    shape = shape_of(layers + decoder_layers, h, heads, h // heads, ffn, vocab)
    return _speech_arch(name, children, shape, size[0], config.maybe("max_position_embeddings"))


def _full(h: int, heads: int, names: AttentionNames, mask: str, key_stream: str | None = None) -> tuple[Node, ...]:
    spec = AttentionSpec(
        hidden=h, heads=heads, kv_heads=heads, head_dim=h // heads, names=names, qkv_bias=True, o_bias=True, mask=mask,
        key_stream=key_stream, dropout=True,
    )  # fmt: skip
    return attention(spec)


def read_speecht5(config: Config, name: str) -> Arch:
    """SpeechT5 as speech to text (arXiv:2110.07205): wav2vec 2.0's convolutions, relative positions in the encoder."""
    h, vocab = config.need("hidden_size"), config.need("vocab_size")
    both = sides(config, h)
    waves = wave_convs(config, "speecht5.encoder.prenet.feature_encoder.conv_layers")
    width = (config.wholes("conv_dim", low=1) or (1,))[-1]
    prenet, at = "speecht5.encoder.prenet", "speecht5.encoder.wrapped_encoder"
    places = position_conv(config, f"{prenet}.pos_conv_embed", h, waves.frames)
    reach = config.whole("encoder_max_relative_position", default=160)
    masked, tied = mask_vector(config, prenet, h), config.flag("tie_word_embeddings", default=True)
    targets = config.maybe("max_text_positions")
    config.check()
    (layers, heads, ffn), (decoder_layers, decoder_heads, decoder_ffn) = both
    distances = Attention(
        name="attention.distances", heads=heads, kv_heads=heads, qk_dim=h // heads, v_dim=0, mask="full"
    )

    def feed(f: int) -> tuple[Node, ...]:
        return (*mlp(h, f, at="", names=FEED, bias=True, dropout=True), norm("final_layer_norm", h, "layer"))

    inner = (*_full(h, heads, WAVE_ATTENTION, "full"), distances, norm("layer_norm", h, "layer"), *feed(ffn))
    outer = (
        *_full(h, decoder_heads, AttentionNames(o="out_proj"), "causal"),
        norm("self_attn_layer_norm", h, "layer"),
        *_full(h, decoder_heads, AttentionNames(at="encoder_attn", o="out_proj"), "full", ENCODER),
        norm("encoder_attn_layer_norm", h, "layer"),
        *feed(decoder_ffn),
    )
    table = Embedding(name=f"{at}.embed_positions.pe_k", num=2 * reach, dim=h // heads, role="position")
    encoder: tuple[Node, ...] = (
        *waves.nodes,
        norm(f"{prenet}.feature_projection.layer_norm", width, "layer"),
        Linear(name=f"{prenet}.feature_projection.projection", in_features=width, out_features=h, bias=True),
        *masked,
        *places.nodes,
        norm(f"{at}.layer_norm", h, "layer"),
        Module(name="", stream=RELATIVE, children=(table,)),
        *stack(f"{at}.layers", (0,) * layers, lambda _: inner),
    )
    children: tuple[Node, ...] = (
        Module(name="", stream=ENCODER, children=encoder),
        Embedding(name="speecht5.decoder.prenet.embed_tokens", num=vocab, dim=h),
        *stack("speecht5.decoder.wrapped_decoder.layers", (0,) * decoder_layers, lambda _: outer),
        Linear(name="text_decoder_postnet.lm_head", in_features=h, out_features=vocab, role="lm_head", tied=tied),
    )
    shape = shape_of(layers + decoder_layers, h, heads, h // heads, ffn, vocab)
    positions = Stream(name=RELATIVE, length=2 * reach, once=True)
    return _speech_arch(name, children, shape, waves.frames, targets, positions)


# --- a spectrogram as a picture -----------------------------------------------------------------------------------

_AST = vit_like.Vit(base="audio_spectrogram_transformer", tokens=("cls_token", "distillation_token"))


def read_ast(config: Config, name: str) -> Arch:
    """The audio spectrogram transformer (arXiv:2104.01778): overlapping patches, a norm before the classes."""
    h, patch = config.need("hidden_size"), config.need("patch_size", high=100_000)
    size = (config.need("num_mel_bins"), config.need("max_length"))
    steps = (config.need("frequency_stride"), config.need("time_stride"))
    if min(size) < patch:
        config.fault("contradiction", "the patch is larger than the spectrogram", "patch_size", got=str(patch))
    grid = tuple(max(1, (each - patch) // step + 1) for each, step in zip(size, steps, strict=True))
    numbers = vit_like.Numbers(
        hidden=h, heads=heads_of(config, h), ffn=config.need("intermediate_size"),
        layers=config.layers("num_hidden_layers"), labels=config.maybe("num_labels") or labels_of(config) or 2,
        channels=1, kernel=(patch, patch), size=size, grid=(grid[0], grid[1]), registers=0,
        qkv_bias=config.flag("qkv_bias", default=True), scaled=False, positions=True,
    )  # fmt: skip
    config.check()
    patches = grid[0] * grid[1]
    inner = vit_like.layer(numbers, _AST)
    head = (
        norm("classifier.layernorm", h, "layer"),
        Linear(name="classifier.dense", in_features=h, out_features=numbers.labels, bias=True),
    )
    nodes = (
        *vit_like.embeddings(numbers, _AST, patches),
        *stack(f"{_AST.base}.layers", (0,) * numbers.layers, lambda _: inner),
        norm(f"{_AST.base}.layernorm", h, "layer"),
        Module(name="", stream=SAMPLE, children=head),
    )
    return vit_like.picture_arch(name, nodes, numbers, patches + len(_AST.tokens), "audio-classification")


FAMILIES = {
    "speech_to_text": read_speech_to_text,
    "moonshine": read_moonshine,
    "speecht5": read_speecht5,
    "audio-spectrogram-transformer": read_ast,
}
