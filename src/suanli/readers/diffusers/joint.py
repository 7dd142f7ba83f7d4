"""Denoisers of pictures in which patches and prompt share more of their layers: AuraFlow, CogView, Lumina."""

from __future__ import annotations

from math import prod

from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Stream
from suanli.nouns.layers import Parameter
from suanli.readers.blocks import again, norm, stack
from suanli.readers.config import Config
from suanli.readers.diffusers.canvas import JOINT, PATCHES, Usual, patch_of, read_canvas
from suanli.readers.diffusers.denoiser import denoiser
from suanli.readers.diffusers.mmdit import Double, double_block, last_unread, layers_of, matrix_in
from suanli.readers.diffusers.pieces import (
    SHIFTS,
    SINUSOIDS,
    SIZES,
    Heads,
    Nodes,
    agree,
    feed,
    gated_feed,
    linear,
    modulated,
    modulation,
    over,
    plain,
    read_channels,
    read_heads,
    self_attention,
    two_matrices,
    without_backward,
)
from suanli.readers.hf.convnets import number

# --- AuraFlow -----------------------------------------------------------------------------------------------------

REGISTERS, AURA_TEXT, AURA_JOINT = 8, "registers and text", "registers, text and patches"
AURA_NAMES = ("linear_1", "linear_2", "out_projection")


def rounded_up(width: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-width // step) * step


def read_aura_flow(config: Config, name: str) -> Arch:
    """AuraFlow: a few double blocks, then single ones, without biases; eight learned tokens before the prompt."""
    heads, dim, h = read_heads(config, 12, 256)
    layers, singles = layers_of(config, "num_mmdit_layers", 4), layers_of(config, "num_single_dit_layers", 32)
    (channels, out), joint = read_channels(config, 4, 4), config.whole("joint_attention_dim", default=2048)
    agree(config, "caption_projection_dim", config.whole("caption_projection_dim", default=3072), h)
    rows = config.whole("pos_embed_max_size", default=1024)
    patch = patch_of(config, (2, 2))
    canvas = read_canvas(config, Usual(picture=(512, 512)), patch)
    config.check()
    inner = rounded_up(2 * 4 * h // 3, 256)
    attend = Heads(hidden=h, heads=heads, dim=dim, bias=False, out_bias=False, norm="fp32_layer_norm")
    spec = Double(
        heads=attend, text=AURA_TEXT, joint=AURA_JOINT, bias=False,
        feed=lambda at, stream: (gated_feed(at, h, inner, AURA_NAMES, stream=stream),),
    )  # fmt: skip
    single: Nodes = (
        modulation("norm1.linear", h, SHIFTS * h, bias=False),
        over(AURA_JOINT, plain("norm1.norm", h)),
        self_attention("attn", attend, AURA_JOINT),
        over(AURA_JOINT, plain("norm2", h)),
        gated_feed("ff", h, inner, AURA_NAMES, stream=AURA_JOINT),
    )
    nodes: Nodes = (
        *matrix_in("pos_embed.proj", channels * prod(patch), h),
        Parameter(name="pos_embed.pos_embed", shape=(1, rows, h)),
        over(SAMPLE, *two_matrices("time_step_proj", SINUSOIDS, h)),
        *matrix_in("context_embedder", joint, h, stream=TOKENS, bias=False),
        Parameter(name="register_tokens", shape=(1, REGISTERS, h)),
        *stack("joint_transformer_blocks", last_unread(layers, singles), lambda ends: double_block(spec, ends)),
        *stack("single_transformer_blocks", (0,) * singles, lambda _: single),
        modulation("norm_out.linear", h, 2 * h, bias=False),
        over(PATCHES, linear("proj_out", h, prod(patch) * out, bias=False)),
    )
    streams = (
        Stream(name=AURA_TEXT, extra=REGISTERS),
        Stream(name=AURA_JOINT, extra=REGISTERS + canvas.positions),
    )
    return denoiser(name, nodes, canvas, text=256, streams=streams)


# --- CogView ------------------------------------------------------------------------------------------------------


def read_cogview3(config: Config, name: str) -> Arch:
    """CogView3-Plus (arXiv:2403.05121): one set of matrices for patches and prompt, modulated apart."""
    return _cogview(config, name, 224)


def read_cogview4(config: Config, name: str) -> Arch:
    """CogView4: as CogView3-Plus; the feed-forward runs on patches and on the prompt in turn."""
    return _cogview(config, name, 1024, apart=True)


def _cogview(config: Config, name: str, text: int, *, apart: bool = False) -> Arch:
    heads, dim, h = read_heads(config, 64, 40)
    layers, (channels, out) = layers_of(config, "num_layers", 30, 1), read_channels(config, 16, 16)
    words, wide = config.whole("text_embed_dim", default=4096), config.whole("time_embed_dim", default=512)
    sizes = SIZES * config.whole("condition_dim", default=256)
    patch = patch_of(config, (2, 2))
    canvas = read_canvas(config, Usual(), patch)
    config.check()
    spec = Heads(hidden=h, heads=heads, dim=dim, norm="plain_layer_norm")

    def block(last: bool) -> Nodes:
        feeds: Nodes = (feed("ff", h, 4 * h, stream=JOINT),)
        if apart:
            told = again((feed("ff", h, 4 * h, stream=TOKENS),))
            feeds = (feed("ff", h, 4 * h), *(without_backward(told) if last else told))
        return (
            modulation("norm1.linear", wide, 2 * SHIFTS * h),
            over(JOINT, plain("norm1.norm", h)),
            self_attention("attn1", spec, JOINT),
            over(JOINT, plain("norm2", h)),
            *feeds,
        )

    at = "time_condition_embed"
    nodes: Nodes = (
        *matrix_in("patch_embed.proj", channels * prod(patch), h),
        *matrix_in("patch_embed.text_proj", words, h, stream=TOKENS),
        over(
            SAMPLE,
            *two_matrices(f"{at}.timestep_embedder", h, wide),
            *two_matrices(f"{at}.condition_embedder", sizes, wide),
        ),
        *stack("transformer_blocks", tuple(apart and i == layers - 1 for i in range(layers)), block),
        modulation("norm_out.linear", wide, 2 * h),
        over(PATCHES, plain("norm_out.norm", h, gated=False), linear("proj_out", h, prod(patch) * out)),
    )
    return denoiser(name, nodes, canvas, text=text)


# --- Lumina -------------------------------------------------------------------------------------------------------

LUMINA_NAMES = ("linear_1", "linear_3", "linear_2")
NARROW = 1024  # the step's embedding is no wider


def read_lumina2(config: Config, name: str) -> Arch:
    """Lumina-Image 2.0 (arXiv:2503.21758): patches and prompt refined apart, then one stack over both."""
    h = config.whole("hidden_size", default=2304)
    heads = config.whole("num_attention_heads", default=24, high=1_000_000)
    kv_heads = config.kv_heads(heads, "num_kv_heads") if config.has("num_kv_heads") else min(8, heads)
    layers, refiners = layers_of(config, "num_layers", 26), layers_of(config, "num_refiner_layers", 2)
    (channels, out), words = read_channels(config, 16), config.whole("cap_feat_dim", default=1024)
    step = config.whole("multiple_of", default=256)
    inner = rounded_up(int(number(config, "ffn_dim_multiplier", 1.0) * 4 * h), step)
    dim = config.head_dim(h, heads)
    patch = patch_of(config, (2, 2))
    canvas = read_canvas(config, Usual(), patch)
    config.check()
    spec = Heads(hidden=h, heads=heads, dim=dim, kv_heads=kv_heads, bias=False, out_bias=False, norm="rms_norm")
    narrow = min(h, NARROW)

    def block(stream: str, shifted: bool) -> Nodes:
        first: Nodes = (over(stream, norm("norm1", h)),)
        if shifted:
            first = (modulation("norm1.linear", narrow, 4 * h), over(stream, modulated(norm("norm1.norm", h))))
        return (
            *first,
            self_attention("attn", spec, stream),
            over(stream, norm("norm2", h), norm("ffn_norm1", h)),
            gated_feed("feed_forward", h, inner, LUMINA_NAMES, stream=stream),
            over(stream, norm("ffn_norm2", h)),
        )

    at = "time_caption_embed"
    nodes: Nodes = (
        over(SAMPLE, *two_matrices(f"{at}.timestep_embedder", SINUSOIDS, narrow)),
        over(TOKENS, norm(f"{at}.caption_embedder.0", words), linear(f"{at}.caption_embedder.1", words, h)),
        *matrix_in("x_embedder", channels * prod(patch), h),
        *stack("context_refiner", (0,) * refiners, lambda _: block(TOKENS, False)),
        *stack("noise_refiner", (0,) * refiners, lambda _: block(PATCHES, True)),
        *stack("layers", (0,) * layers, lambda _: block(JOINT, True)),
        modulation("norm_out.linear_1", narrow, h),
        over(JOINT, plain("norm_out.norm", h, gated=False), linear("norm_out.linear_2", h, prod(patch) * out)),
    )
    return denoiser(name, nodes, canvas, text=256)


FAMILIES = {
    "AuraFlowTransformer2DModel": read_aura_flow,
    "CogView3PlusTransformer2DModel": read_cogview3,
    "CogView4Transformer2DModel": read_cogview4,
    "Lumina2Transformer2DModel": read_lumina2,
}
