"""SEW-D: SEW's squeezed frames through DeBERTa's layers; and ImageGPT, GPT-2 over colours with a classifier."""

from __future__ import annotations

from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Stream
from suanli.nouns.layers import Embedding, Linear
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, mlp, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf.common import read_widths
from suanli.readers.hf.encoders import refuse
from suanli.readers.hf.encoders_own import RELATIVE, deberta_layer
from suanli.readers.hf.sound import classifier, mask_vector, position_conv, sound_arch, wave_convs, widths_of
from suanli.readers.hf.vision import labels_of


def read_sew_d(config: Config, name: str) -> Arch:
    """SEW-D (arXiv:2109.06870): disentangled attention on squeezed frames."""
    widths = widths_of(config)
    h, squeeze, base = widths.hidden, config.need("squeeze_factor"), "sew_d"
    refuse(config, ("relative_attention", False, "SEW-D without relative attention is not read"))
    waves = wave_convs(config, f"{base}.feature_extractor.conv_layers")
    width = (config.wholes("conv_dim", low=1) or (1,))[-1]
    places = position_conv(config, f"{base}.encoder.pos_conv_embed", h, waves.frames, squeeze)
    buckets = config.whole("position_buckets", default=-1, low=-1)
    reach = config.whole("max_relative_positions", default=-1, low=-1)
    span = buckets if buckets > 0 else reach if reach > 0 else config.need("max_position_embeddings")
    rescaled = "layer_norm" in str(config.values.get("norm_rel_ebd") or "none").lower()
    masked, last, inner = mask_vector(config, base, h), classifier(config, widths), deberta_layer(config, widths, True)
    if config.whole("conv_kernel_size", default=0, low=0):
        config.fault("unsupported", "a convolution after the first layer is not read", "conv_kernel_size")
    config.check()
    at = f"{base}.encoder.encoder"
    table = Embedding(name=f"{at}.rel_embeddings", num=2 * span, dim=h, role="position")
    squeezed: tuple[Node, ...] = (
        Module(name="", stream=RELATIVE, children=(table,)),
        *((norm(f"{at}.LayerNorm", h, "layer"),) if rescaled else ()),
        *stack(f"{at}.layer", (0,) * widths.layers, lambda _: inner),
        Linear(name=f"{base}.encoder.upsample.projection", in_features=h, out_features=h * squeeze, bias=True),
    )
    project = Linear(name=f"{base}.feature_projection", in_features=width, out_features=h, bias=True)
    nodes = (
        *waves.nodes,
        norm(f"{base}.layer_norm", width, "layer"),
        *((project,) if width != h else ()),
        *masked,
        *places.nodes,
        Module(name="", stream="squeezed", children=squeezed),
        *last,
    )
    streams = (
        Stream(name="squeezed", length=min(places.frames, waves.frames // squeeze)),
        Stream(name=RELATIVE, length=2 * span, once=True),
    )
    return sound_arch(name, widths, nodes, waves.frames, "a wave at 16 kHz", streams)


def read_imagegpt(config: Config, name: str) -> Arch:
    """ImageGPT: GPT-2 with norms without shift over --seq colours, classes from their mean."""
    widths = read_widths(config, ffn=config.whole("n_inner", default=4 * config.need("n_embd")), grouped=False)
    h, rows = widths.hidden, config.need("n_positions")
    labels = config.maybe("num_labels") or labels_of(config) or 2
    refuse(config, ("add_cross_attention", True, "cross-attention is not read"))
    config.check()
    spec = AttentionSpec(
        hidden=h, heads=widths.heads, kv_heads=widths.heads, head_dim=widths.head_dim, qkv_bias=True, o_bias=True,
        names=AttentionNames(at="attn", fused="c_attn", o="c_proj"), dropout=True,
    )  # fmt: skip

    def scaled(at: str) -> Node:
        return norm(at, h, "layer_no_bias")

    feed = mlp(h, widths.ffn, names=("c_fc", "c_proj"), bias=True, dropout=True)
    inner = (scaled("ln_1"), *attention(spec), scaled("ln_2"), *feed)
    head = Linear(name="score", in_features=h, out_features=labels)
    nodes: tuple[Node, ...] = (
        Embedding(name="transformer.wte", num=widths.vocab, dim=h),
        Embedding(name="transformer.wpe", num=rows, dim=h, role="position"),
        *stack("transformer.h", (0,) * widths.layers, lambda _: inner),
        scaled("transformer.ln_f"),
        Module(name="", stream=SAMPLE, children=(head,)),
    )
    return Arch(
        name=name, root=Module(name="", children=nodes), streams=(Stream(name=TOKENS),), shape=widths.shape(False),
        max_positions=rows, task="image-classification", unit="pixel", notes=("a picture of --seq colours",),
    )  # fmt: skip


FAMILIES = {"sew-d": read_sew_d, "imagegpt": read_imagegpt}
