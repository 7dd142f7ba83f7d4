"""Denoisers of pictures in which patches and prompt look at each other, by the shape of SD3 and FLUX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Stream
from suanli.nouns.layers import Buffer, Embedding
from suanli.readers.blocks import norm, stack
from suanli.readers.config import Config
from suanli.readers.diffusers.canvas import JOINT, PAIR, PATCHES, Size, Usual, patch_of, read_canvas
from suanli.readers.diffusers.denoiser import denoiser
from suanli.readers.diffusers.pieces import (
    ABSENT,
    KEPT,
    SHIFTS,
    SINUSOIDS,
    UNREAD,
    Heads,
    Nodes,
    act,
    agree,
    embedders,
    feed,
    final_modulation,
    joint_attention,
    linear,
    modulation,
    over,
    patch_conv,
    plain,
    read_channels,
    read_heads,
    read_qk_norm,
    self_attention,
    two_matrices,
    without_backward,
)
from suanli.readers.hf.convnets import number

MAX_LAYERS = 100_000


def matrix_in(name: str, into: int, out: int, *, stream: str = PATCHES, bias: bool = True) -> Nodes:
    """A matrix that reads what the model is given."""
    return (over(stream, linear(name, into, out, bias=bias, raw=True)),)


def layers_of(config: Config, name: str, default: int, low: int = 0) -> int:
    """A number of blocks, which may be none."""
    return config.whole(name, default=default, low=low, high=MAX_LAYERS)


# --- blocks -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Double:
    """A block with two streams. `feed` makes the feed-forward of a stream at a name."""

    heads: Heads
    feed: Callable[[str, str], Nodes]
    text: str = TOKENS
    joint: str = JOINT
    bias: bool = True
    modulated: bool = True  # by a matrix of its own for each stream
    names: tuple[str, str] = ("norm1.linear", "norm1_context.linear")
    feeds: tuple[str, str] = ("ff", "ff_context")
    step: str = SAMPLE


def double_block(spec: Double, ends: str = KEPT, twice: bool = False) -> Nodes:
    """Modulations, norms, joint attention, feed-forwards; `twice`: the patches also look at themselves alone."""
    h = spec.heads.hidden
    own, other = spec.names
    shifts: Nodes = ()
    if spec.modulated:
        shifts = (
            modulation(own, h, (9 if twice else SHIFTS) * h, bias=spec.bias, stream=spec.step),
            modulation(other, h, (2 if ends == ABSENT else SHIFTS) * h, bias=spec.bias),
        )
    told = spec.feed(spec.feeds[1], spec.text)
    told = {KEPT: told, UNREAD: without_backward(told), ABSENT: ()}[ends]
    return (
        *shifts,
        over(PATCHES, plain("norm1.norm", h)),
        over(spec.text, plain("norm1_context.norm", h)),
        *joint_attention("attn", spec.heads, text=spec.text, joint=spec.joint, ends=ends),
        *((self_attention("attn2", spec.heads),) if twice else ()),
        over(PATCHES, plain("norm2", h)),
        *spec.feed(spec.feeds[0], PATCHES),
        *((over(spec.text, plain("norm2_context", h)),) if told else ()),
        *told,
    )


def single_block(spec: Heads, inner: int, *, modulated: bool = True, stream: str = JOINT, step: str = SAMPLE) -> Nodes:
    """Attention beside feed-forward over patches and prompt together, joined by one matrix (arXiv:2302.05442 §2.1)."""
    h = spec.hidden
    return (
        *((modulation("norm.linear", h, 3 * h, stream=step),) if modulated else ()),
        over(stream, plain("norm.norm", h), linear("proj_mlp", h, inner), act("act_mlp", inner)),
        self_attention("attn", spec, stream, out=False),
        over(stream, linear("proj_out", spec.inner + inner, h)),
    )


def plain_feed(hidden: int, inner: int, kind: str = "gelu-approximate") -> Callable[[str, str], Nodes]:
    """The usual feed-forward of a stream."""
    return lambda at, stream: (feed(at, hidden, inner, kind, stream=stream),)


def last_unread(layers: int, followed: int) -> tuple[str, ...]:
    """What becomes of the prompt after each block: after the last it is read only by single blocks."""
    return tuple(KEPT if layer < layers - 1 or followed else UNREAD for layer in range(layers))


# --- Stable Diffusion 3 -------------------------------------------------------------------------------------------


def read_sd3(config: Config, name: str) -> Arch:
    """Stable Diffusion 3 and 3.5 (arXiv:2403.03206)."""
    heads, dim, h = read_heads(config, 18, 64)
    layers, (channels, out) = layers_of(config, "num_layers", 18, 1), read_channels(config, 16, 16)
    joint = config.whole("joint_attention_dim", default=4096)
    pooled = config.whole("pooled_projection_dim", default=2048)
    agree(config, "caption_projection_dim", config.whole("caption_projection_dim", default=1152), h)
    rows = config.whole("pos_embed_max_size", default=96, high=100_000)
    twice = set(config.wholes("dual_attention_layers") or ())
    normed = read_qk_norm(config)
    patch = patch_of(config, (2, 2))
    canvas = read_canvas(config, Usual(), patch)
    if max(canvas.grid) > rows:
        config.fault(
            "bad_value", "the picture has more patches in a row than there are positions", "image_size",
            got=f"{max(canvas.grid):,}", expected=f"at most {rows:,}",
        )  # fmt: skip
    config.check()
    spec = Double(heads=Heads(hidden=h, heads=heads, dim=dim, norm=normed), feed=plain_feed(h, 4 * h))
    kinds = tuple((ABSENT if layer == layers - 1 else KEPT, layer in twice) for layer in range(layers))
    nodes: Nodes = (
        patch_conv("pos_embed.proj", channels, h, canvas, patch),
        Buffer(name="pos_embed.pos_embed", shape=(rows * rows, h)),
        *embedders("time_text_embed", h, pooled=pooled),
        *matrix_in("context_embedder", joint, h, stream=TOKENS),
        *stack("transformer_blocks", kinds, lambda kind: double_block(spec, *kind)),
        *final_modulation(h, h),
        over(PATCHES, linear("proj_out", h, prod(patch) * out)),
    )
    return denoiser(name, nodes, canvas, text=333)  # 77 of CLIP and 256 of T5


# --- FLUX, Chroma, FLUX.2 -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Flux:
    """The numbers that FLUX and its kin have in common."""

    hidden: int
    heads: Heads
    channels: int
    out: int
    joint: int
    layers: int
    singles: int
    patch: Size


def _flux(
    config: Config, heads: int, channels: int, layers: tuple[int, int], joint: int, *, bias: bool = True
) -> _Flux:
    number_of, dim, h = read_heads(config, heads, 128)
    inside, out = read_channels(config, channels)
    patch = patch_of(config, (1, 1))
    return _Flux(
        hidden=h, channels=inside, out=prod(patch) * out,
        heads=Heads(hidden=h, heads=number_of, dim=dim, bias=bias, out_bias=bias, norm="rms_norm"),
        joint=config.whole("joint_attention_dim", default=joint), patch=patch,
        layers=layers_of(config, "num_layers", layers[0]), singles=layers_of(config, "num_single_layers", layers[1]),
    )  # fmt: skip


def read_flux(config: Config, name: str) -> Arch:
    """FLUX.1: double blocks, then single ones; a position is 2×2 cells of the latent, packed before the model."""
    n = _flux(config, 24, 64, (19, 38), 4096)
    pooled = config.whole("pooled_projection_dim", default=768)
    guided = config.flag("guidance_embeds", default=False)
    canvas = read_canvas(config, Usual(packed=2), n.patch)
    config.check()
    h = n.hidden
    spec = Double(heads=n.heads, feed=plain_feed(h, 4 * h))
    single = single_block(n.heads, 4 * h)
    nodes: Nodes = (
        *matrix_in("x_embedder", n.channels, h),
        *embedders("time_text_embed", h, guidance=guided, pooled=pooled),
        *matrix_in("context_embedder", n.joint, h, stream=TOKENS),
        *stack("transformer_blocks", last_unread(n.layers, n.singles), lambda ends: double_block(spec, ends)),
        *stack("single_transformer_blocks", (0,) * n.singles, lambda _: single),
        *final_modulation(h, h),
        over(PATCHES, linear("proj_out", h, n.out)),
    )
    return denoiser(name, nodes, canvas, text=512, guided=guided)


def read_chroma(config: Config, name: str) -> Arch:
    """Chroma: FLUX whose modulations come from one small network, run once for each of them."""
    n = _flux(config, 24, 64, (19, 38), 4096)
    given = config.whole("approximator_num_channels", default=64)
    wide = config.whole("approximator_hidden_dim", default=5120)
    deep = layers_of(config, "approximator_layers", 5, 1)
    canvas = read_canvas(config, Usual(packed=2), n.patch)
    config.check()
    h, at, rows = n.hidden, "distilled_guidance_layer", "modulations"
    spec = Double(heads=n.heads, feed=plain_feed(h, 4 * h), modulated=False)
    single = single_block(n.heads, 4 * h, modulated=False)
    approximated = (
        linear(f"{at}.in_proj", given, wide, raw=True),
        Module(name=f"{at}.layers", indices=range(deep), children=two_matrices("", wide, wide, raw=False)),
        Module(name=f"{at}.norms", indices=range(deep), children=(norm("", wide),)),
        linear(f"{at}.out_proj", wide, h),
    )
    nodes: Nodes = (
        *matrix_in("x_embedder", n.channels, h),
        over(rows, *approximated),
        *matrix_in("context_embedder", n.joint, h, stream=TOKENS),
        *stack("transformer_blocks", last_unread(n.layers, n.singles), lambda ends: double_block(spec, ends)),
        *stack("single_transformer_blocks", (0,) * n.singles, lambda _: single),
        over(PATCHES, plain("norm_out.norm", h, gated=False), linear("proj_out", h, n.out)),
    )
    streams = (Stream(name=rows, length=3 * n.singles + 2 * SHIFTS * n.layers + 2),)
    return denoiser(name, nodes, canvas, text=512, streams=streams)


def read_flux2(config: Config, name: str) -> Arch:
    """FLUX.2: modulations made once for all blocks, gated feed-forwards, no biases; a position is 16×16 pixels."""
    n = _flux(config, 48, 128, (8, 48), 15360, bias=False)
    given, ratio = config.whole("timestep_guidance_channels", default=SINUSOIDS), number(config, "mlp_ratio", 3.0)
    guided = config.flag("guidance_embeds", default=True)
    canvas = read_canvas(config, Usual(packed=2), n.patch)
    config.check()
    h, inner, at = n.hidden, int(n.hidden * ratio), "time_guidance_embed"
    spec = Double(heads=n.heads, feed=_fused_feed(h, inner), modulated=False)
    width = n.heads.inner
    single: Nodes = (
        over(
            JOINT,
            plain("norm", h),
            linear("attn.to_qkv_mlp_proj", h, 3 * width + 2 * inner, bias=False),
            *n.heads.qk_norm("attn.norm_q"),
            *n.heads.qk_norm("attn.norm_k"),
            n.heads.core("attn"),
            act("attn.mlp_act_fn", inner, gated=True),
            linear("attn.to_out", width + inner, h, bias=False),
        ),
    )
    embedded = two_matrices(f"{at}.timestep_embedder", given, h, bias=False)
    asked = two_matrices(f"{at}.guidance_embedder", given, h, bias=False) if guided else ()
    nodes: Nodes = (
        *matrix_in("x_embedder", n.channels, h, bias=False),
        over(SAMPLE, *embedded, *asked),
        *(modulation(f"double_stream_modulation_{each}.linear", h, SHIFTS * h, bias=False) for each in ("img", "txt")),
        modulation("single_stream_modulation.linear", h, 3 * h, bias=False),
        *matrix_in("context_embedder", n.joint, h, stream=TOKENS, bias=False),
        *stack("transformer_blocks", last_unread(n.layers, n.singles), lambda ends: double_block(spec, ends)),
        *stack("single_transformer_blocks", (0,) * n.singles, lambda _: single),
        *final_modulation(h, h, bias=False),
        over(PATCHES, linear("proj_out", h, n.out, bias=False)),
    )
    return denoiser(name, nodes, canvas, text=512, guided=guided)


def _fused_feed(hidden: int, inner: int) -> Callable[[str, str], Nodes]:
    """A gated feed-forward whose first matrix holds both halves."""

    def make(at: str, stream: str) -> Nodes:
        return (
            over(
                stream,
                linear(f"{at}.linear_in", hidden, 2 * inner, bias=False),
                act(f"{at}.act_fn", inner, gated=True),
                linear(f"{at}.linear_out", inner, hidden, bias=False),
            ),
        )

    return make


# --- Qwen-Image ---------------------------------------------------------------------------------------------------


def read_qwen_image(config: Config, name: str) -> Arch:
    """Qwen-Image (arXiv:2508.02324): double blocks only; with `zero_cond_t` the patches have a second step, zero."""
    heads, dim, h = read_heads(config, 24, 128)
    layers, (channels, out) = layers_of(config, "num_layers", 60, 1), read_channels(config, 64, 16)
    joint = config.whole("joint_attention_dim", default=3584)
    zero, more = config.flag("zero_cond_t", default=False), config.flag("use_additional_t_cond", default=False)
    patch = patch_of(config, (2, 2))
    canvas = read_canvas(config, Usual(), patch)
    config.check()
    step = PAIR if zero else SAMPLE
    spec = Double(
        heads=Heads(hidden=h, heads=heads, dim=dim, norm="rms_norm"), feed=plain_feed(h, 4 * h), step=step,
        names=("img_mod.1", "txt_mod.1"), feeds=("img_mlp", "txt_mlp"),
    )  # fmt: skip
    extra = (Embedding(name="time_text_embed.addition_t_embedding", num=2, dim=h, role="class"),) if more else ()
    nodes: Nodes = (
        *matrix_in("img_in", channels, h),
        over(TOKENS, norm("txt_norm", joint), linear("txt_in", joint, h)),
        over(step, *two_matrices("time_text_embed.timestep_embedder", SINUSOIDS, h), *extra),
        *stack("transformer_blocks", last_unread(layers, 0), lambda ends: double_block(spec, ends)),
        *final_modulation(h, h),
        over(PATCHES, linear("proj_out", h, prod(patch) * out)),
    )
    return denoiser(name, nodes, canvas, text=512)


FAMILIES = {
    "SD3Transformer2DModel": read_sd3,
    "FluxTransformer2DModel": read_flux,
    "ChromaTransformer2DModel": read_chroma,
    "Flux2Transformer2DModel": read_flux2,
    "QwenImageTransformer2DModel": read_qwen_image,
}
