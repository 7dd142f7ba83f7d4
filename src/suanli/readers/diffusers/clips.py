"""Denoisers of clips: CogVideoX, Wan, LTX-Video, HunyuanVideo, Mochi."""

from __future__ import annotations

from math import prod

from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Stream
from suanli.nouns.layers import Attention, Buffer, Linear, Parameter
from suanli.readers.blocks import norm, stack
from suanli.readers.config import Config
from suanli.readers.diffusers.canvas import JOINT, PAIR, PATCHES, Usual, patch_of, read_canvas
from suanli.readers.diffusers.denoiser import denoiser
from suanli.readers.diffusers.mmdit import (
    Double,
    double_block,
    last_unread,
    layers_of,
    matrix_in,
    plain_feed,
    single_block,
)
from suanli.readers.diffusers.pieces import (
    ABSENT,
    KEPT,
    SHIFTS,
    SINUSOIDS,
    Heads,
    Nodes,
    agree,
    cross_attention,
    embedders,
    feed,
    final_modulation,
    joint_attention,
    layer_norm,
    linear,
    modulated,
    modulation,
    over,
    patch_conv,
    plain,
    read_channels,
    read_feed,
    read_heads,
    read_qk_norm,
    self_attention,
    single_modulation,
    table,
    two_matrices,
)
from suanli.readers.hf.convnets import number

# --- CogVideoX ----------------------------------------------------------------------------------------------------


def read_cogvideox(config: Config, name: str) -> Arch:
    """CogVideoX (arXiv:2408.06072): one set of matrices for patches and prompt, modulated apart."""
    heads, dim, h = read_heads(config, 30, 64)
    layers, (channels, out) = layers_of(config, "num_layers", 30, 1), read_channels(config, 16, 16)
    wide = config.whole("time_embed_dim", default=512)
    words, text = config.whole("text_embed_dim", default=4096), config.whole("max_text_seq_length", default=226)
    offset, kind = config.maybe("ofs_embed_dim"), read_feed(config)
    affine, bias = config.flag("norm_elementwise_affine", default=True), config.flag("attention_bias", default=True)
    deep = config.has("patch_size_t")
    patch = patch_of(config, (1, 2, 2), time="patch_size_t")
    canvas = read_canvas(config, Usual(picture=(480, 720), frames=49), patch)
    if offset is not None:
        agree(config, "ofs_embed_dim", offset, wide)
    learned = config.flag("use_learned_positional_embeddings", default=False)
    config.check()
    spec = Heads(hidden=h, heads=heads, dim=dim, bias=bias, norm="layer_norm")
    block: Nodes = (
        modulation("norm1.linear", wide, SHIFTS * h),
        over(JOINT, modulated(layer_norm("norm1.norm", h, affine))),
        self_attention("attn1", spec, JOINT),
        modulation("norm2.linear", wide, SHIFTS * h),
        over(JOINT, modulated(layer_norm("norm2.norm", h, affine))),
        feed("ff", h, 4 * h, kind, stream=JOINT),
    )
    at = "patch_embed"
    cut: Nodes = (
        patch_conv(f"{at}.proj", channels, h, canvas, patch[1:], bias=config.flag("patch_bias", default=True)),
    )
    if deep:
        cut = matrix_in(f"{at}.proj", channels * prod(patch), h)
    places = (Buffer(name=f"{at}.pos_embedding", shape=(text + canvas.positions, h)),) if learned else ()
    nodes: Nodes = (
        over(SAMPLE, *two_matrices("time_embedding", h, wide)),
        *((over(SAMPLE, *two_matrices("ofs_embedding", offset, offset)),) if offset is not None else ()),
        *matrix_in(f"{at}.text_proj", words, h, stream=TOKENS),
        *cut,
        *places,
        *stack("transformer_blocks", (0,) * layers, lambda _: block),
        over(PATCHES, layer_norm("norm_final", h, affine)),
        modulation("norm_out.linear", wide, 2 * h),
        over(
            PATCHES,
            modulated(layer_norm("norm_out.norm", h, affine), gated=False),
            linear("proj_out", h, prod(patch) * out),
        ),
    )
    return denoiser(name, nodes, canvas, text=text)


# --- Wan ----------------------------------------------------------------------------------------------------------

WAN_WIDE = 48  # channels of the latent of Wan 2.2's second autoencoder, whose cells are 16 pixels wide
CLIP_POSITIONS, IMAGE = 257, "positions of the first picture"


def read_wan(config: Config, name: str) -> Arch:
    """Wan 2.1 and 2.2 (arXiv:2503.20314); with `image_dim`, a first picture of 257 positions is looked at too."""
    heads, dim, h = read_heads(config, 40, 128)
    layers, (channels, out) = layers_of(config, "num_layers", 40, 1), read_channels(config, 16, 16)
    ffn = config.whole("ffn_dim", default=13824)
    words, given = config.whole("text_dim", default=4096), config.whole("freq_dim", default=SINUSOIDS)
    shown, added = config.maybe("image_dim"), config.maybe("added_kv_proj_dim")
    rows, crossed = config.maybe("pos_embed_seq_len"), config.flag("cross_attn_norm", default=True)
    if (shown is None) != (added is None):
        config.fault("unsupported", "image_dim and added_kv_proj_dim are read together or not at all", "image_dim")
    if added is not None:
        agree(config, "added_kv_proj_dim", added, h)
    config.choice("qk_norm", ("rms_norm_across_heads",), "rms_norm_across_heads")
    patch = patch_of(config, (1, 2, 2))
    usual = Usual(picture=(480, 832), frames=81, scale=16 if out == WAN_WIDE else 8)
    canvas = read_canvas(config, usual, patch)
    config.check()
    spec = Heads(hidden=h, heads=heads, dim=dim, norm="rms_norm_across_heads")
    block: Nodes = (
        table("scale_shift_table", 1, 6, h),
        over(PATCHES, plain("norm1", h)),
        self_attention("attn1", spec),
        *((over(PATCHES, layer_norm("norm2", h, True)),) if crossed else ()),
        *_added_keys("attn2", spec, added),
        *cross_attention("attn2", spec, h),
        over(PATCHES, plain("norm3", h)),
        feed("ffn", h, ffn),
    )
    at = "condition_embedder"
    nodes: Nodes = (
        patch_conv("patch_embedding", channels, h, canvas, patch),
        over(SAMPLE, *two_matrices(f"{at}.time_embedder", given, h)),
        modulation(f"{at}.time_proj", h, SHIFTS * h),
        over(TOKENS, *two_matrices(f"{at}.text_embedder", words, h)),
        *(_picture(f"{at}.image_embedder", shown, h, rows) if shown is not None else ()),
        *stack("blocks", (0,) * layers, lambda _: block),
        table("scale_shift_table", 1, 2, h),
        over(PATCHES, plain("norm_out", h, gated=False), linear("proj_out", h, prod(patch) * out)),
    )
    pictures = 1 if rows is None else max(1, rows // CLIP_POSITIONS)
    streams = (Stream(name=IMAGE, length=pictures * CLIP_POSITIONS),) if shown is not None else ()
    return denoiser(name, nodes, canvas, text=512, streams=streams)


def _picture(at: str, into: int, hidden: int, rows: int | None) -> Nodes:
    """The embedding of the first picture's positions."""
    places = () if rows is None else (Parameter(name=f"{at}.pos_embed", shape=(1, rows, into)),)
    return (
        *places,
        over(IMAGE, layer_norm(f"{at}.norm1", into, True)),
        feed(f"{at}.ff", into, into, "gelu", stream=IMAGE, out=hidden),
        over(IMAGE, layer_norm(f"{at}.norm2", hidden, True)),
    )


def _added_keys(at: str, spec: Heads, added: int | None) -> Nodes:
    """Keys and values of the first picture, met by the same queries."""
    if added is None:
        return ()
    core = Attention(
        name=f"{at}.image_attention", heads=spec.heads, kv_heads=spec.heads, qk_dim=spec.dim, v_dim=spec.dim,
        mask="full", key_stream=IMAGE,
    )  # fmt: skip
    keys = (linear(f"{at}.add_k_proj", added, spec.inner), linear(f"{at}.add_v_proj", added, spec.inner))
    return over(IMAGE, *keys, *spec.qk_norm(f"{at}.norm_added_k")), over(PATCHES, core)


# --- LTX-Video ----------------------------------------------------------------------------------------------------


def read_ltx(config: Config, name: str) -> Arch:
    """LTX-Video (arXiv:2501.00103): few, large patches, made by its autoencoder."""
    heads, dim, h = read_heads(config, 32, 64)
    layers, (channels, out) = layers_of(config, "num_layers", 28, 1), read_channels(config, 128, 128)
    captions = config.whole("caption_channels", default=4096)
    agree(config, "cross_attention_dim", config.whole("cross_attention_dim", default=2048), h)
    affine, kind = config.flag("norm_elementwise_affine", default=False), read_feed(config)
    config.choice("qk_norm", ("rms_norm_across_heads",), "rms_norm_across_heads")
    patch = patch_of(config, (1, 1, 1), time="patch_size_t")
    canvas = read_canvas(config, Usual(picture=(512, 704), frames=161, scale=32, scale_t=8), patch)
    bias, out_bias = (config.flag(f"attention_{each}", default=True) for each in ("bias", "out_bias"))
    config.check()
    spec = Heads(hidden=h, heads=heads, dim=dim, bias=bias, out_bias=out_bias, norm="rms_norm_across_heads")
    normed = "rms" if affine else "plain"
    block: Nodes = (
        table("scale_shift_table", 6, h),
        over(PATCHES, modulated(norm("norm1", h, normed))),
        self_attention("attn1", spec),
        *cross_attention("attn2", spec, h),
        over(PATCHES, modulated(norm("norm2", h, normed))),
        feed("ff", h, 4 * h, kind),
    )
    nodes: Nodes = (
        *matrix_in("proj_in", channels, h),
        *single_modulation("time_embed", h),
        over(TOKENS, *two_matrices("caption_projection", captions, h)),
        *stack("transformer_blocks", (0,) * layers, lambda _: block),
        table("scale_shift_table", 2, h),
        over(PATCHES, plain("norm_out", h, gated=False), linear("proj_out", h, out)),
    )
    return denoiser(name, nodes, canvas, text=128)


# --- HunyuanVideo -------------------------------------------------------------------------------------------------


def read_hunyuan_video(config: Config, name: str) -> Arch:
    """HunyuanVideo (arXiv:2412.03603): the prompt refined, then FLUX's double and single blocks."""
    heads, dim, h = read_heads(config, 24, 128)
    layers, singles = layers_of(config, "num_layers", 20), layers_of(config, "num_single_layers", 40)
    refiners, (channels, out) = layers_of(config, "num_refiner_layers", 2), read_channels(config, 16, 16)
    words = config.whole("text_embed_dim", default=4096)
    pooled, inner = config.whole("pooled_projection_dim", default=768), int(h * number(config, "mlp_ratio", 4.0))
    guided, normed = config.flag("guidance_embeds", default=True), read_qk_norm(config, "rms_norm")
    replaced = config.choice("image_condition_type", ("latent_concat", "token_replace"), "") == "token_replace"
    patch = patch_of(config, (1, 2, 2), time="patch_size_t")
    canvas = read_canvas(config, Usual(picture=(720, 1280), frames=129), patch)
    config.check()
    spec = Heads(hidden=h, heads=heads, dim=dim, norm=normed)
    step = PAIR if replaced else SAMPLE  # the first frame, given, is modulated as at step zero
    double = Double(heads=spec, feed=plain_feed(h, inner), step=step)
    single = single_block(spec, inner, step=step)
    at = "time_text_embed"
    timed = over(step, *two_matrices(f"{at}.timestep_embedder", SINUSOIDS, h))
    more = two_matrices(f"{at}.guidance_embedder", SINUSOIDS, h) if guided else ()
    nodes: Nodes = (
        patch_conv("x_embedder.proj", channels, h, canvas, patch),
        timed,
        over(SAMPLE, *two_matrices(f"{at}.text_embedder", pooled, h), *more),
        *_refiner("context_embedder", words, Heads(hidden=h, heads=heads, dim=dim), refiners),
        *stack("transformer_blocks", last_unread(layers, singles), lambda ends: double_block(double, ends)),
        *stack("single_transformer_blocks", (0,) * singles, lambda _: single),
        *final_modulation(h, h),
        over(PATCHES, linear("proj_out", h, prod(patch) * out)),
    )
    return denoiser(name, nodes, canvas, text=256, guided=guided)


def _refiner(at: str, words: int, spec: Heads, layers: int) -> Nodes:
    """A small transformer over the prompt, modulated by the step and the prompt's mean."""
    h = spec.hidden
    block: Nodes = (
        over(TOKENS, layer_norm("norm1", h, True)),
        self_attention("attn", spec, TOKENS),
        modulation("norm_out.linear", h, 2 * h),
        over(TOKENS, layer_norm("norm2", h, True)),
        feed("ff", h, 4 * h, "linear-silu", stream=TOKENS),
    )
    return (
        *embedders(f"{at}.time_text_embed", h, pooled=words),
        *matrix_in(f"{at}.proj_in", words, h, stream=TOKENS),
        *stack(f"{at}.token_refiner.refiner_blocks", (0,) * layers, lambda _: block),
    )


# --- Mochi --------------------------------------------------------------------------------------------------------

POOLED, PLACES, POOL_HEADS = "mean and text", "positions", 8


def read_mochi(config: Config, name: str) -> Arch:
    """Mochi 1: a wide stream of patches and a narrow one of the prompt; places of patches are learned mixtures."""
    heads, dim, h = read_heads(config, 24, 128)
    layers, (channels, out) = layers_of(config, "num_layers", 48, 1), read_channels(config, 12)
    narrow, words = config.whole("pooled_projection_dim", default=1536), config.whole("text_embed_dim", default=4096)
    given = config.whole("time_embed_dim", default=SINUSOIDS)
    kind = read_feed(config, "swiglu")
    patch = (1, *patch_of(config, (2, 2)))
    canvas = read_canvas(config, Usual(picture=(480, 848), frames=19, scale_t=6), patch)
    config.check()
    spec = Heads(hidden=h, heads=heads, dim=dim, bias=False, norm="rms_norm")

    def block(last: bool) -> Nodes:
        told = () if last else (feed("ff_context", narrow, _two_thirds(narrow), kind, bias=False, stream=TOKENS),)
        return (
            modulation("norm1.linear", h, 4 * h),
            modulation("norm1_context.linear_1" if last else "norm1_context.linear", h, narrow if last else 4 * narrow),
            *joint_attention("attn1", spec, context=narrow, added_bias=False, ends=ABSENT if last else KEPT),
            feed("ff", h, _two_thirds(h), kind, bias=False),
            *told,
        )

    at = "time_embed"
    turned = Linear(name="pos_frequencies", in_features=3, out_features=heads * (dim // 2), raw_input=True)
    nodes: Nodes = (
        over(SAMPLE, *two_matrices(f"{at}.timestep_embedder", given, h)),
        *_pooler(f"{at}.pooler", words, h),
        *matrix_in(f"{at}.caption_proj", words, narrow, stream=TOKENS),
        patch_conv("patch_embed.proj", channels, h, canvas, patch[1:]),
        over(PLACES, turned),
        *stack("transformer_blocks", tuple(i == layers - 1 for i in range(layers)), block),
        *final_modulation(h, h),
        over(PATCHES, linear("proj_out", h, prod(patch) * out)),
    )
    streams = (Stream(name=POOLED, extra=1), Stream(name=PLACES, length=canvas.positions, once=True))
    return denoiser(name, nodes, canvas, text=256, streams=streams)


def _two_thirds(width: int) -> int:
    """Inner width of a gated feed-forward with as many weights as a plain one of four times the width."""
    return 4 * width * 2 // 3


def _pooler(at: str, words: int, out: int) -> Nodes:
    """The prompt's mean looks at the prompt and at itself."""
    dim = words // POOL_HEADS
    core = Attention(
        name=f"{at}.attention", heads=POOL_HEADS, kv_heads=POOL_HEADS, qk_dim=dim, v_dim=dim, mask="full",
        key_stream=POOLED,
    )  # fmt: skip
    return (
        over(POOLED, linear(f"{at}.to_kv", words, 2 * words, raw=True)),
        over(SAMPLE, linear(f"{at}.to_q", words, words, raw=True), core, linear(f"{at}.to_out", words, out)),
    )


FAMILIES = {
    "CogVideoXTransformer3DModel": read_cogvideox,
    "WanTransformer3DModel": read_wan,
    "LTXVideoTransformer3DModel": read_ltx,
    "HunyuanVideoTransformer3DModel": read_hunyuan_video,
    "MochiTransformer3DModel": read_mochi,
}
