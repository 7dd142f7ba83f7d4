"""Sound classifiers of wav2vec 2.0's shape, one row a family: convolutions over the wave, then a transformer.

How long the sound is, its config does not say: `audio_samples` (at 16 kHz), or `audio_frames` of a spectrogram.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from suanli.nouns.arch import SAMPLE, Arch, Module, Shape, Stream
from suanli.nouns.layers import Attention, Conv, Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, dropped, mlp, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf.common import Widths
from suanli.readers.hf.encoders import refuse, token_conv, unused
from suanli.readers.hf.resnet import conv_out
from suanli.readers.hf.vision import heads_of, labels_of

FRAMES = "frames"
RELATIVE = "relative positions"
TEN_SECONDS = 160_000  # samples at the 16 kHz that these models are trained on
WAVE_ATTENTION = AttentionNames(at="attention", o="out_proj")
CONFORMER_ATTENTION = AttentionNames(at="self_attn", q="linear_q", k="linear_k", v="linear_v", o="linear_out")
FEED = ("feed_forward.intermediate_dense", "feed_forward.output_dense")


@dataclass(frozen=True)
class Track:
    """Nodes so far and how many frames they leave."""

    nodes: tuple[Node, ...]
    frames: int


def widths_of(config: Config) -> Widths:
    """The numbers of a sound encoder."""
    h = config.need("hidden_size")
    heads = heads_of(config, h)
    return Widths(
        layers=config.layers("num_hidden_layers"), hidden=h, heads=heads, kv_heads=heads, head_dim=max(1, h // heads),
        ffn=config.need("intermediate_size"), vocab=config.maybe("num_labels") or labels_of(config) or 2,
        max_positions=None,
    )  # fmt: skip


def wave_convs(config: Config, at: str, *, all_normed: bool = False) -> Track:
    """The convolutions over the wave, each with its norm where it has one. Raises nothing; faults are recorded."""
    dims, strides, kernels = (config.wholes(f"conv_{what}", low=1) or () for what in ("dim", "stride", "kernel"))
    if not dims or not len(dims) == len(strides) == len(kernels):
        config.fault("contradiction", "conv_dim, conv_stride and conv_kernel differ in length or miss", "conv_dim")
        return Track((), 1)
    every = all_normed or config.choice("feat_extract_norm", ("group", "layer"), "group") == "layer"
    bias = config.flag("conv_bias", default=False)
    size: tuple[int, ...] = (config.whole("audio_samples", default=TEN_SECONDS),)
    c_in = 1
    nodes: list[Node] = []
    for i, (dim, stride, kernel) in enumerate(zip(dims, strides, kernels, strict=True)):
        out = conv_out(size, kernel, stride, 0)
        conv = Conv(
            name=f"{at}.{i}.conv", in_channels=c_in, out_channels=dim, kernel=(kernel,), in_size=size, out_size=out,
            bias=bias, raw_input=i == 0,
        )  # fmt: skip
        nodes.append(conv)
        if every or i == 0:
            nodes.append(norm(f"{at}.{i}.layer_norm", dim, "layer", per=max(1, out[0])))
        size, c_in = out, dim
    if size[0] < 1:
        config.fault("contradiction", "the sound is shorter than the convolutions reach", "audio_samples")
    return Track((Module(name="", stream=SAMPLE, children=tuple(nodes)),), max(1, size[0]))


def position_conv(config: Config, at: str, h: int, frames: int, stride: int = 1) -> Track:
    """A grouped convolution with weight norm that tells positions apart; an even kernel computes one frame more."""
    taps, groups = config.need("num_conv_pos_embeddings"), config.need("num_conv_pos_embedding_groups")
    size = conv_out((frames,), taps, stride, taps // 2)
    conv = Conv(
        name=f"{at}.conv", in_channels=h, out_channels=h, kernel=(taps,), in_size=(frames,), out_size=size,
        groups=groups,
    )  # fmt: skip
    scale = Parameter(name=f"{at}.conv.parametrizations.weight.original0", shape=(taps,))
    return Track((Module(name="", stream=SAMPLE, children=(conv, scale)),), size[0] - (1 - taps % 2))


def full(widths: Widths, names: AttentionNames) -> tuple[Node, ...]:
    """Biased attention of all frames with all."""
    spec = AttentionSpec(
        hidden=widths.hidden, heads=widths.heads, kv_heads=widths.heads, head_dim=widths.head_dim, names=names,
        qkv_bias=True, o_bias=True, mask="full", dropout=True,
    )  # fmt: skip
    return (*attention(spec), *dropped(f"{names.at}.dropout", widths.hidden))


def wave_layer(config: Config, widths: Widths, first: bool) -> tuple[Node, ...]:  # noqa: ARG001
    """Attention, norm, MLP, norm."""
    h = widths.hidden
    return (
        *full(widths, WAVE_ATTENTION),
        norm("layer_norm", h, "layer"),
        *mlp(h, widths.ffn, at="", names=FEED, bias=True, dropout=True),
        norm("final_layer_norm", h, "layer"),
    )


def wavlm_layer(config: Config, widths: Widths, first: bool) -> tuple[Node, ...]:
    """WavLM: a gate of each head rescales a relative bias that the first layer makes."""
    table = Embedding(
        name="attention.rel_attn_embed", num=config.whole("num_buckets", default=320), dim=widths.heads, role="bias"
    )
    gate = Linear(name="attention.gru_rel_pos_linear", in_features=widths.head_dim, out_features=8, bias=True)
    scale = Parameter(name="attention.gru_rel_pos_const", shape=(1, widths.heads, 1, 1))
    gates = Module(name="", repeats=widths.heads, children=(gate,))
    return (*((table,) if first else ()), gates, scale, *wave_layer(config, widths, first))


def classifier(config: Config, widths: Widths) -> tuple[Node, ...]:
    """Projection of every frame, mean, classes."""
    width = config.whole("classifier_proj_size", default=256)
    weighted = config.flag("use_weighted_layer_sum", default=False)
    classes = Linear(name="classifier", in_features=width, out_features=widths.vocab, bias=True)
    return (
        *((Parameter(name="layer_weights", shape=(widths.layers + 1,)),) if weighted else ()),
        Linear(name="projector", in_features=widths.hidden, out_features=width, bias=True),
        Module(name="", stream=SAMPLE, children=(classes,)),
    )


def mask_vector(config: Config, base: str, h: int) -> tuple[Node, ...]:
    """The learned vector in place of masked frames, held where masking is on."""
    values = (config.values.get("mask_time_prob", 0.05), config.values.get("mask_feature_prob", 0))
    on = any(isinstance(value, int | float) and value > 0 for value in values)
    return (Parameter(name=f"{base}.masked_spec_embed", shape=(h,)),) if on else ()


def sound_arch(
    name: str, widths: Widths, nodes: tuple[Node, ...], frames: int, what: str, streams: tuple[Stream, ...] = ()
) -> Arch:
    """A classifier over one stream of frames."""
    shape = Shape(
        num_layers=widths.layers, hidden=widths.hidden, heads=widths.heads, kv_heads=widths.heads,
        head_dim=widths.head_dim, ffn=widths.ffn, vocab=widths.vocab,
    )  # fmt: skip
    return Arch(
        name=name, root=Module(name="", children=nodes), streams=(Stream(name=FRAMES, length=frames), *streams),
        main_stream=FRAMES, shape=shape, max_positions=None, task="audio-classification", unit="frame",
        notes=(f"{what}: {frames:,} frames",),
    )  # fmt: skip


LayerMaker = Callable[[Config, Widths, bool], tuple[Node, ...]]


def read_wave(config: Config, name: str, base: str, make: LayerMaker = wave_layer) -> Arch:
    """wav2vec 2.0 (arXiv:2006.11477) with a classifier, or a family of its shape. Raises ConfigError."""
    widths = widths_of(config)
    h = widths.hidden
    refuse(
        config, ("add_adapter", True, "an adapter is not read"),
        ("conv_pos_batch_norm", True, "a position convolution with batch norm is not read"),
    )  # fmt: skip
    if config.has("adapter_attn_dim"):
        config.fault("unsupported", "attention adapters are not read", "adapter_attn_dim")
    waves = wave_convs(config, f"{base}.feature_extractor.conv_layers", all_normed=base == "data2vec_audio")
    width = (config.wholes("conv_dim", low=1) or (1,))[-1]
    normed = config.flag("feat_proj_layer_norm", default=True)
    places = _data2vec_positions(config, h) if base == "data2vec_audio" else position_conv(
        config, f"{base}.encoder.pos_conv_embed", h, waves.frames
    ).nodes  # fmt: skip
    masked, last = mask_vector(config, base, h), classifier(config, widths)
    first, other = make(config, widths, True), make(config, widths, False)
    config.check()
    nodes = (
        *waves.nodes,
        *((norm(f"{base}.feature_projection.layer_norm", width, "layer"),) if normed else ()),
        Linear(name=f"{base}.feature_projection.projection", in_features=width, out_features=h, bias=True),
        *masked,
        *places,
        norm(f"{base}.encoder.layer_norm", h, "layer"),
        *stack(
            f"{base}.encoder.layers", [make is wavlm_layer and i == 0 for i in range(widths.layers)],
            lambda is_first: first if is_first else other,
        ),
        *last,
    )  # fmt: skip
    return sound_arch(name, widths, nodes, waves.frames, _sound(config))


def _sound(config: Config) -> str:
    return f"sound of {config.whole('audio_samples', default=TEN_SECONDS):,} samples (16 kHz)"


def _data2vec_positions(config: Config, h: int) -> tuple[Node, ...]:
    """data2vec: several position convolutions one after another."""
    taps, groups = config.need("conv_pos_kernel_size"), config.need("num_conv_pos_embedding_groups")
    count = config.need("num_conv_pos_embeddings", high=1_000)
    if taps % 2 == 0:
        config.fault("unsupported", "an even kernel of positions is not read", "conv_pos_kernel_size")
    conv = token_conv("conv", h, h, kernel=taps, groups=groups)
    at = "data2vec_audio.encoder.pos_conv_embed.layers"
    return (Module(name=at, indices=range(count), children=(conv,)),)


def read_sew(config: Config, name: str) -> Arch:
    """SEW (arXiv:2109.06870): the transformer runs on `squeeze_factor` times fewer frames."""
    widths = widths_of(config)
    h, squeeze = widths.hidden, config.need("squeeze_factor")
    waves = wave_convs(config, "sew.feature_extractor.conv_layers")
    width = (config.wholes("conv_dim", low=1) or (1,))[-1]
    places = position_conv(config, "sew.encoder.pos_conv_embed", h, waves.frames, squeeze)
    masked, last, inner = mask_vector(config, "sew", h), classifier(config, widths), wave_layer(config, widths, True)
    config.check()
    fewer = min(places.frames, waves.frames // squeeze)
    project = Linear(name="sew.feature_projection", in_features=width, out_features=h, bias=True)
    up = Linear(name="sew.encoder.upsample.projection", in_features=h, out_features=h * squeeze, bias=True)
    squeezed: tuple[Node, ...] = (
        norm("sew.encoder.layer_norm", h, "layer"),
        *stack("sew.encoder.layers", (0,) * widths.layers, lambda _: inner),
        up,
    )
    nodes = (
        *waves.nodes,
        norm("sew.layer_norm", width, "layer"),
        *((project,) if width != h else ()),
        *masked,
        *places.nodes,
        Module(name="", stream="squeezed", children=squeezed),
        *last,
    )
    streams = (Stream(name="squeezed", length=fewer),)
    return sound_arch(name, widths, nodes, waves.frames, _sound(config), streams)


# --- conformers ---------------------------------------------------------------------------------------------------


def conformer_layer(widths: Widths, taps: int, attend: tuple[Node, ...], inner_norm: str) -> tuple[Node, ...]:
    """Half an MLP, attention, a gated convolution, half an MLP (arXiv:2005.08100)."""
    h, at = widths.hidden, "conv_module"

    def feed(which: str) -> tuple[Node, ...]:
        names = ("intermediate_dense", "output_dense")
        return (norm(f"{which}_layer_norm", h, "layer"), *mlp(h, widths.ffn, at=which, names=names, bias=True))

    return (
        *feed("ffn1"),
        norm("self_attn_layer_norm", h, "layer"),
        *attend,
        norm(f"{at}.layer_norm", h, "layer"),
        token_conv(f"{at}.pointwise_conv1", h, 2 * h, bias=False),
        token_conv(f"{at}.depthwise_conv", h, h, kernel=taps, groups=h, bias=False),
        norm(f"{at}.{inner_norm}", h, "layer"),
        token_conv(f"{at}.pointwise_conv2", h, h, bias=False),
        *feed("ffn2"),
        norm("final_layer_norm", h, "layer"),
    )


def _scores(widths: Widths, name: str, key_stream: str | None = None) -> Attention:
    """Scores of queries with positions; nothing is weighed by them alone."""
    n, d = widths.heads, widths.head_dim
    return Attention(name=name, heads=n, kv_heads=n, qk_dim=d, v_dim=0, mask="full", key_stream=key_stream)


def read_w2v_bert(config: Config, name: str) -> Arch:
    """w2v-BERT 2.0: a conformer over a spectrogram, scores with learned distances."""
    widths, base = widths_of(config), "wav2vec2_bert"
    h, width = widths.hidden, config.need("feature_projection_input_dim")
    frames = config.whole("audio_frames", default=1000)
    refuse(config, ("add_adapter", True, "an adapter is not read"),
           ("use_intermediate_ffn_before_adapter", True, "an MLP before the adapter is not read"))  # fmt: skip
    if config.values.get("position_embeddings_type") != "relative_key":
        config.fault("unsupported", "only learned distances are read", "position_embeddings_type")
    reach = config.need("left_max_position_embeddings") + config.need("right_max_position_embeddings") + 1
    taps = config.whole("conv_depthwise_kernel_size", default=31)
    masked, last = mask_vector(config, base, h), classifier(config, widths)
    config.check()
    table = Embedding(name="self_attn.distance_embedding", num=reach, dim=widths.head_dim, role="position")
    attend: tuple[Node, ...] = (table, *full(widths, CONFORMER_ATTENTION), _scores(widths, "self_attn.distances"))
    inner = conformer_layer(widths, taps, attend, "depthwise_layer_norm")
    nodes = (
        norm(f"{base}.feature_projection.layer_norm", width, "layer"),
        Linear(name=f"{base}.feature_projection.projection", in_features=width, out_features=h, bias=True),
        *masked,
        *stack(f"{base}.encoder.layers", (0,) * widths.layers, lambda _: inner),
        *last,
    )
    return sound_arch(name, widths, nodes, frames, "a spectrogram")


def read_w2v_conformer(config: Config, name: str) -> Arch:
    """wav2vec 2.0 with conformer layers; relative positions as in Transformer-XL, or rotary ones."""
    widths, base = widths_of(config), "wav2vec2_conformer"
    h = widths.hidden
    refuse(config, ("add_adapter", True, "an adapter is not read"))
    waves = wave_convs(config, f"{base}.feature_extractor.conv_layers")
    width = (config.wholes("conv_dim", low=1) or (1,))[-1]
    relative = config.choice("position_embeddings_type", ("relative", "rotary"), "rotary") == "relative"
    taps = config.whole("conv_depthwise_kernel_size", default=31)
    places = position_conv(config, "", h, waves.frames).nodes
    masked, last = mask_vector(config, base, h), classifier(config, widths)
    config.check()
    distances = Linear(name="self_attn.linear_pos", in_features=h, out_features=h)
    biases = tuple(Parameter(name=f"self_attn.pos_bias_{each}", shape=(widths.heads, widths.head_dim)) for each in "uv")
    moved: tuple[Node, ...] = (
        Module(name="", stream=RELATIVE, children=(distances,)),
        *biases,
        _scores(widths, "self_attn.distances", RELATIVE),
    )
    attend: tuple[Node, ...] = (*full(widths, CONFORMER_ATTENTION), *(moved if relative else ()))
    inner = conformer_layer(widths, taps, attend, "batch_norm")
    held = sum(leaf.params for module in places if isinstance(module, Module) for leaf in module.children
               if isinstance(leaf, Conv | Parameter))  # fmt: skip
    nodes = (
        *waves.nodes,
        norm(f"{base}.feature_projection.layer_norm", width, "layer"),
        Linear(name=f"{base}.feature_projection.projection", in_features=width, out_features=h, bias=True),
        *masked,
        *unused(f"{base}.encoder.pos_conv_embed", held),
        *stack(f"{base}.encoder.layers", (0,) * widths.layers, lambda _: inner),
        norm(f"{base}.encoder.layer_norm", h, "layer"),
        *last,
    )
    streams = (Stream(name=RELATIVE, length=2 * waves.frames - 1, once=True),)
    return sound_arch(name, widths, nodes, waves.frames, _sound(config), streams)


def _reader(base: str, make: LayerMaker = wave_layer) -> Callable[[Config, str], Arch]:
    return lambda config, name: read_wave(config, name, base, make)


FAMILIES = {
    "wav2vec2": _reader("wav2vec2"),
    "hubert": _reader("hubert"),
    "unispeech": _reader("unispeech"),
    "unispeech-sat": _reader("unispeech_sat"),
    "data2vec-audio": _reader("data2vec_audio"),
    "wavlm": _reader("wavlm", wavlm_layer),
    "sew": read_sew,
    "wav2vec2-bert": read_w2v_bert,
    "wav2vec2-conformer": read_w2v_conformer,
}
