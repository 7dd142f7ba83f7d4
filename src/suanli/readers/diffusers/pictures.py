"""Denoisers of pictures with one stream, to which a class or a prompt is told: DiT, PixArt, Sana, Hunyuan-DiT."""

from __future__ import annotations

from dataclasses import dataclass

from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Stream
from suanli.nouns.layers import Attention, Conv, Embedding, LinearAttention, Parameter
from suanli.readers.blocks import again, norm, stack
from suanli.readers.config import Config
from suanli.readers.diffusers.canvas import PATCHES, Canvas, Usual, patch_of, read_canvas
from suanli.readers.diffusers.denoiser import denoiser
from suanli.readers.diffusers.pieces import (
    SHIFTS,
    SINUSOIDS,
    SIZES,
    Heads,
    Nodes,
    act,
    agree,
    cross_attention,
    embedders,
    feed,
    final_modulation,
    layer_norm,
    linear,
    modulated,
    modulation,
    nullable,
    over,
    patch_conv,
    plain,
    qkv,
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

# --- the block of diffusers' first transformers -------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Basic:
    """A block of self-attention, a look at the prompt (of `cross` channels), and a feed-forward.

    `modulated`: by a matrix of its own (`zero`), by a table added to one for all blocks (`single`), or not (`none`).
    """

    heads: Heads
    kind: str
    modulated: str
    cross: int | None = None
    raw: bool = False
    affine: bool = False
    classes: int | None = None
    stream: str = PATCHES


def basic_block(spec: Basic) -> Nodes:
    """Norms and layers in the order they run."""
    h, stream = spec.heads.hidden, spec.stream
    first = layer_norm("norm1", h, spec.affine)
    before: Nodes = (over(stream, modulated(first) if spec.modulated == "single" else first),)
    if spec.modulated == "zero":
        own = () if spec.classes is None else class_embedder("norm1.emb", h, spec.classes)
        before = (*own, modulation("norm1.linear", h, SHIFTS * h), over(stream, plain("norm1.norm", h)))
    look: Nodes = ()
    if spec.cross is not None:
        look = cross_attention("attn2", spec.heads, spec.cross, stream=stream, raw=spec.raw)
    last = layer_norm("norm2" if spec.modulated == "single" else "norm3", h, spec.affine)
    middle: Nodes = (over(stream, layer_norm("norm2", h, spec.affine)),) if look and spec.modulated != "single" else ()
    return (
        *((table("scale_shift_table", 6, h),) if spec.modulated == "single" else ()),
        *before,
        self_attention("attn1", spec.heads, stream),
        *middle,
        *look,
        over(stream, last if spec.modulated == "none" else modulated(last)),
        feed("ff", h, 4 * h, spec.kind, stream=stream),
    )


def class_embedder(at: str, hidden: int, classes: int) -> Nodes:
    """The embedding of step and class, with one more class for none."""
    labels = Embedding(name=f"{at}.class_embedder.embedding_table", num=classes + 1, dim=hidden, role="class")
    return (over(SAMPLE, *two_matrices(f"{at}.timestep_embedder", SINUSOIDS, hidden), labels),)


# --- DiT, PixArt --------------------------------------------------------------------------------------------------


def read_dit(config: Config, name: str) -> Arch:
    """DiT (arXiv:2212.09748). Here every block holds an embedder of step and class, and the first is run twice."""
    _only(config, "norm_type", "ada_norm_zero")
    patch = patch_of(config, (2, 2))
    canvas = read_canvas(config, Usual(picture=(256, 256)), patch, square=True)
    return _patched(config, name, canvas, patch, _Patched(modulated="zero"))


def read_pixart(config: Config, name: str) -> Arch:
    """PixArt-α and PixArt-Σ (arXiv:2310.00426, arXiv:2403.04692)."""
    _only(config, "norm_type", "ada_norm_single")
    patch = patch_of(config, (2, 2))
    canvas = read_canvas(config, Usual(), patch)
    facts = _Patched(modulated="single", channels=8, sample=128)
    return _patched(config, name, canvas, patch, facts)


def read_transformer_2d(config: Config, name: str) -> Arch:
    """The class that DiT's and PixArt's were taken from, which builds one of them; other inputs are left to a trace."""
    readers = {"ada_norm_zero": read_dit, "ada_norm_single": read_pixart}
    word = config.choice("norm_type", tuple(readers), "")
    if not config.has("patch_size") or config.has("num_vector_embeds"):
        config.fault("unsupported", "only a transformer on patches is read by formula", "patch_size")
    if not config.has("norm_type"):
        expected = "one of " + ", ".join(readers)
        config.fault("missing_key", "missing key norm_type", "norm_type", expected=expected)
    config.check()
    return readers[word](config, name)


PIXART_TEXT = 120  # tokens of PixArt-α's pipeline; PixArt-Σ's takes 300


@dataclass(frozen=True, kw_only=True)
class _Patched:
    """Defaults of a class on patches."""

    modulated: str
    channels: int | None = None
    sample: int = 32


def _patched(config: Config, name: str, canvas: Canvas, patch: tuple[int, ...], facts: _Patched) -> Arch:
    heads, dim, h = read_heads(config, 16, 72)
    channels, out = read_channels(config, 4, facts.channels)
    layers = config.whole("num_layers", default=28, high=100_000)
    single = facts.modulated == "single"
    cross = nullable(config, "cross_attention_dim", 1152) if single else None
    captions = config.maybe("caption_channels") if single else None
    large = config.whole("sample_size", default=facts.sample, high=100_000) == 128
    sizes = single and config.flag("use_additional_conditions", default=large)
    if captions is not None and cross is not None:
        agree(config, "cross_attention_dim", cross, h)
    _only(config, "attention_type", "default")
    spec = Basic(
        heads=Heads(hidden=h, heads=heads, dim=dim, bias=config.flag("attention_bias", default=True)),
        kind=read_feed(config), modulated=facts.modulated, cross=cross, raw=captions is None,
        affine=config.flag("norm_elementwise_affine", default=False),
        classes=None if single else config.whole("num_embeds_ada_norm", default=1000),
    )  # fmt: skip
    config.check()
    block = basic_block(spec)
    ends = over(
        PATCHES,
        plain("norm_out", h, gated=False),
        linear("proj_out" if single else "proj_out_2", h, _cells(patch) * out),
    )
    nodes: Nodes = (
        patch_conv("pos_embed.proj", channels, h, canvas, patch),
        *(single_modulation("adaln_single", h, sizes=sizes) if single else ()),
        *((over(TOKENS, *two_matrices("caption_projection", captions, h)),) if captions is not None else ()),
        *stack("transformer_blocks", (0,) * layers, lambda _: block),
        *((table("scale_shift_table", 2, h),) if single else _conditioned_again(h, spec.classes or 1)),
        ends,
    )
    return denoiser(name, nodes, canvas, text=None if cross is None else PIXART_TEXT)


def _conditioned_again(hidden: int, classes: int) -> Nodes:
    """The first block's embedder run once more, for the last modulation."""
    return (
        *again(class_embedder("transformer_blocks.0.norm1.emb", hidden, classes)),
        modulation("proj_out_1", hidden, 2 * hidden),
    )


def _cells(patch: tuple[int, ...]) -> int:
    return patch[0] * patch[1]


def _only(config: Config, name: str, word: str) -> None:
    """Fault any other word: the class itself takes no other."""
    config.choice(name, (word,), word)


# --- Sana ---------------------------------------------------------------------------------------------------------


def read_sana(config: Config, name: str) -> Arch:
    """Sana (arXiv:2410.10629): linear attention, and feed-forwards that are convolutions."""
    heads, dim, h = read_heads(config, 70, 32)
    crossing = config.whole("num_cross_attention_heads", default=20, high=1_000_000)
    wide = config.whole("cross_attention_head_dim", default=112)
    channels, out = read_channels(config, 32, 32)
    layers = config.whole("num_layers", default=20, high=100_000)
    captions = config.whole("caption_channels", default=2304)
    agree(config, "cross_attention_dim", config.whole("cross_attention_dim", default=2240), h)
    inner = int(number(config, "mlp_ratio", 2.5) * h)
    guided = config.flag("guidance_embeds", default=False)
    affine = config.flag("norm_elementwise_affine", default=False)
    normed = read_qk_norm(config)
    bias = config.flag("attention_bias", default=False)
    patch = patch_of(config, (1, 1))
    canvas = read_canvas(config, Usual(scale=32), patch)
    config.check()
    block: Nodes = (
        table("scale_shift_table", 6, h),
        over(PATCHES, plain("norm1", h)),
        _linear_attention("attn1", Heads(hidden=h, heads=heads, dim=dim, bias=bias, norm=normed)),
        *cross_attention("attn2", Heads(hidden=h, heads=crossing, dim=wide, norm=normed), h),
        over(PATCHES, modulated(layer_norm("norm2", h, affine))),
        _conv_feed("ff", h, inner, canvas),
    )
    time = single_modulation("time_embed", h)
    if guided:
        time = (*embedders("time_embed", h, guidance=True), modulation("time_embed.linear", h, SHIFTS * h))
    nodes: Nodes = (
        patch_conv("patch_embed.proj", channels, h, canvas, patch),
        *time,
        over(TOKENS, *two_matrices("caption_projection", captions, h), norm("caption_norm", h)),
        *stack("transformer_blocks", (0,) * layers, lambda _: block),
        table("scale_shift_table", 2, h),
        over(PATCHES, plain("norm_out.norm", h, gated=False), linear("proj_out", h, _cells(patch) * out)),
    )
    note = "linear attention runs in fp32 whatever the dtype: what its copies take is not in the activations"
    return denoiser(name, nodes, canvas, text=300, guided=guided, notes=(note,))


def _linear_attention(at: str, spec: Heads) -> Module:
    """Keys times values summed over all positions, read by every query; a row of ones sums the keys alone."""
    core = LinearAttention(
        name=f"{at}.attention", heads=spec.heads, key_dim=spec.dim, value_dim=spec.dim + 1, rule="sum"
    )
    positive = act(f"{at}.relu", 2 * spec.inner)  # of queries and keys
    return over(PATCHES, *qkv(at, spec), positive, core, linear(f"{at}.to_out.0", spec.inner, spec.hidden))


def _conv_feed(at: str, hidden: int, inner: int, canvas: Canvas) -> Module:
    """1×1, depthwise 3×3, a gate, 1×1, over the map of patches."""

    def conv(name: str, into: int, out: int, kernel: int, *, groups: int = 1, bias: bool = True) -> Conv:
        return Conv(
            name=f"{at}.{name}", in_channels=into, out_channels=out, kernel=(kernel, kernel), in_size=canvas.grid,
            out_size=canvas.grid, groups=groups, bias=bias,
        )  # fmt: skip

    return over(
        SAMPLE,
        conv("conv_inverted", hidden, 2 * inner, 1),
        over(PATCHES, act(f"{at}.nonlinearity", 2 * inner)),
        conv("conv_depth", 2 * inner, 2 * inner, 3, groups=2 * inner),
        over(PATCHES, act(f"{at}.act", inner, gated=True)),
        conv("conv_point", inner, hidden, 1, bias=False),
    )


# --- Hunyuan-DiT --------------------------------------------------------------------------------------------------

PROMPT, T5 = "prompt", "prompt of the second encoder"
POOL_HEADS = 8


def read_hunyuan_dit(config: Config, name: str) -> Arch:
    """Hunyuan-DiT (arXiv:2405.08748): later blocks also read what earlier ones left; prompts of fixed length."""
    heads, dim, h = read_heads(config, 16, 88)
    agree(config, "hidden_size", config.whole("hidden_size", default=1152), h)
    channels, layers = config.need("in_channels"), config.whole("num_layers", default=28, high=100_000)
    out = 2 * channels if config.flag("learn_sigma", default=True) else channels
    cross = config.whole("cross_attention_dim", default=1024)
    wide = config.whole("cross_attention_dim_t5", default=2048)
    text, more = config.whole("text_len", default=77), config.whole("text_len_t5", default=256)
    pooled, styled = config.whole("pooled_projection_dim", default=1024), "use_style_cond_and_image_meta_size"
    styles, inner = config.flag(styled, default=True), int(h * number(config, "mlp_ratio", 4.0))
    kind, patch = read_feed(config), patch_of(config, (2, 2))
    config.need("patch_size", high=1024)
    if layers % 2:
        expected = "an even number"
        config.fault("bad_value", "blocks that read earlier ones come in pairs", "num_layers", expected=expected)
    canvas = read_canvas(config, Usual(), patch)
    config.check()
    spec = Heads(hidden=h, heads=heads, dim=dim, norm="layer_norm")

    def block(skip: bool) -> Nodes:
        joined = (over(PATCHES, layer_norm("skip_norm", 2 * h, True), linear("skip_linear", 2 * h, h)),)
        return (
            *(joined if skip else ()),
            modulation("norm1.linear", h, h),
            over(PATCHES, layer_norm("norm1.norm", h, True)),
            self_attention("attn1", spec),
            over(PATCHES, layer_norm("norm2", h, True)),
            *cross_attention("attn2", spec, cross, keys=PROMPT),
            over(PATCHES, layer_norm("norm3", h, True)),
            feed("ff", h, inner, kind),
        )

    at = "time_extra_emb"
    given = pooled + (SIZES * SINUSOIDS + h if styles else 0)
    nodes: Nodes = (
        over(T5, *two_matrices("text_embedder", wide, 4 * wide, cross)),
        Parameter(name="text_embedding_padding", shape=(text + more, cross)),
        patch_conv("pos_embed.proj", channels, h, canvas, patch),
        *embedders(at, h),
        *_pooler(f"{at}.pooler", wide, pooled, more),
        *((over(SAMPLE, Embedding(name=f"{at}.style_embedder", num=1, dim=h, role="class")),) if styles else ()),
        over(SAMPLE, *two_matrices(f"{at}.extra_embedder", given, 4 * h, h, raw=False)),
        *stack("blocks", tuple(layer > layers // 2 for layer in range(layers)), block),
        *final_modulation(h, h),
        over(PATCHES, linear("proj_out", h, _cells(patch) * out)),
    )
    streams = (Stream(name=PROMPT, length=text + more), Stream(name=T5, length=more), _with_mean(more))
    return denoiser(name, nodes, canvas, streams=streams, notes=(f"prompts of {text} and {more} tokens, fixed",))


def _with_mean(length: int) -> Stream:
    return Stream(name=f"mean and {T5}", length=length + 1)


def _pooler(at: str, width: int, out: int, length: int) -> Nodes:
    """The mean of the prompt looks at it and at itself."""
    stream = _with_mean(length).name
    core = Attention(
        name=f"{at}.attention", heads=POOL_HEADS, kv_heads=POOL_HEADS, qk_dim=width // POOL_HEADS,
        v_dim=width // POOL_HEADS, mask="full", key_stream=stream,
    )  # fmt: skip
    return (
        Parameter(name=f"{at}.positional_embedding", shape=(length + 1, width)),
        over(SAMPLE, linear(f"{at}.q_proj", width, width)),
        over(stream, linear(f"{at}.k_proj", width, width), linear(f"{at}.v_proj", width, width)),
        over(SAMPLE, core, linear(f"{at}.c_proj", width, out)),
    )


FAMILIES = {
    "DiTTransformer2DModel": read_dit,
    "PixArtTransformer2DModel": read_pixart,
    "Transformer2DModel": read_transformer_2d,
    "SanaTransformer2DModel": read_sana,
    "HunyuanDiT2DModel": read_hunyuan_dit,
}
