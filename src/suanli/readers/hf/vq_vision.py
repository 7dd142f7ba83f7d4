"""Pictures as words of a codebook (VQ-GAN, arXiv:2012.09841): Chameleon reads them; Janus only makes them."""

from __future__ import annotations

from dataclasses import dataclass

from suanli.nouns.arch import Arch, Module, Stream
from suanli.nouns.layers import Attention, Conv, Embedding, Linear
from suanli.readers.blocks import AttentionNames, Node, norm
from suanli.readers.config import Config
from suanli.readers.hf.common import Traits, read_widths, standard_decoder
from suanli.readers.hf.composed import Language, image_stream, joined, of_image, with_vision
from suanli.readers.hf.towers import (
    Size,
    Tower,
    TowerLayer,
    Vision,
    grid_of,
    heads_of,
    in_patches,
    of_picture,
    patch_conv,
    patch_of,
    refuse_picture,
    tile_size,
    tower_stack,
)
from suanli.readers.hf.vision_language import idle, seen_by, text_width, with_idle

MAX_LEVELS = 12


@dataclass(frozen=True, kw_only=True)
class Codes:
    """The numbers of a VQ-GAN."""

    base: int
    factors: tuple[int, ...]
    blocks: int
    latent: int
    channels: int
    dim: int
    num: int
    doubled: bool

    @classmethod
    def read(cls, vq: Config) -> Codes:
        """Widths of each level, halved in size from one to the next."""
        factors = vq.wholes("channel_multiplier", low=1) or (1, 1, 2, 2, 4)
        if len(factors) > MAX_LEVELS:
            vq.fault("bad_value", "too many levels", "channel_multiplier", got=str(len(factors)))
        return cls(
            base=vq.whole("base_channels", default=128), factors=factors[:MAX_LEVELS],
            blocks=vq.whole("num_res_blocks", default=2, high=1000), latent=vq.whole("latent_channels", default=256),
            channels=vq.whole("in_channels", default=3), dim=vq.need("embed_dim"), num=vq.need("num_embeddings"),
            doubled=vq.flag("double_latent", default=False),
        )  # fmt: skip

    def widths(self) -> tuple[int, ...]:
        """Channels of each level."""
        return tuple(self.base * factor for factor in self.factors)


def _conv(
    name: str, c_in: int, c_out: int, side: int, size: Size, out: Size | None = None, *, raw: bool = False
) -> Conv:  # fmt: skip
    return Conv(
        name=name, in_channels=c_in, out_channels=c_out, kernel=(side, side), in_size=size, out_size=out or size,
        raw_input=raw,
    )  # fmt: skip


def _group_norm(name: str, channels: int, size: Size) -> Node:
    return norm(name, channels, "layer", per=size[0] * size[1])


def _residual(at: str, c_in: int, c_out: int, size: Size) -> tuple[Node, ...]:
    """Two 3×3 convolutions, and a 1×1 beside them where the width changes."""
    beside = (_conv(f"{at}.nin_shortcut", c_in, c_out, 1, size),) if c_in != c_out else ()
    return (
        _group_norm(f"{at}.norm1", c_in, size),
        _conv(f"{at}.conv1", c_in, c_out, 3, size),
        _group_norm(f"{at}.norm2", c_out, size),
        _conv(f"{at}.conv2", c_out, c_out, 3, size),
        *beside,
    )


def _map_name(size: Size) -> str:
    return f"map {size[0]}x{size[1]}"


def _attends(at: str, channels: int, size: Size) -> tuple[Node, ...]:
    """One head as wide as the map, every position with every other."""
    core = Attention(name=f"{at}.attention", heads=1, kv_heads=1, qk_dim=channels, v_dim=channels, mask="full")
    return (
        _group_norm(f"{at}.norm", channels, size),
        *(_conv(f"{at}.{name}", channels, channels, 1, size) for name in ("q", "k", "v")),
        Module(name="", stream=_map_name(size), children=(core,)),
        _conv(f"{at}.proj_out", channels, channels, 1, size),
    )


def _middle(at: str, channels: int, size: Size, *, attends: bool = True) -> tuple[Node, ...]:
    return (
        *_residual(f"{at}.block_1", channels, channels, size),
        *(_attends(f"{at}.attn_1", channels, size) if attends else ()),
        *_residual(f"{at}.block_2", channels, channels, size),
    )


def encoder(
    at: str, codes: Codes, size: Size, looks: tuple[bool, ...], *, middle: bool = True
) -> tuple[tuple[Node, ...], Size]:  # fmt: skip
    """Levels of residual blocks, those that `looks` says with attention; the size that is left."""
    nodes: list[Node] = [_conv(f"{at}.conv_in", codes.channels, codes.base, 3, size, raw=True)]
    width = codes.base
    for level, wide in enumerate(codes.widths()):
        here = f"{at}.down.{level}"
        for block in range(codes.blocks):
            nodes += _residual(f"{here}.block.{block}", width, wide, size)
            nodes += _attends(f"{here}.attn.{block}", wide, size) if looks[level] else ()
            width = wide
        if level != len(codes.factors) - 1:
            smaller = (max(1, size[0] // 2), max(1, size[1] // 2))
            nodes.append(_conv(f"{here}.downsample.conv", width, width, 3, size, smaller))
            size = smaller
    nodes += _middle(f"{at}.mid", width, size, attends=middle)
    out = 2 * codes.latent if codes.doubled else codes.latent
    nodes += (_group_norm(f"{at}.norm_out", width, size), _conv(f"{at}.conv_out", width, out, 3, size))
    return tuple(nodes), size


def decoder(at: str, codes: Codes, out: int) -> tuple[Node, ...]:
    """The way back to pixels, which reading does not run: sizes do not matter."""
    size: Size = (1, 1)
    widths = codes.widths()
    width = widths[-1]
    nodes: list[Node] = [_conv(f"{at}.conv_in", codes.latent, width, 3, size), *_middle(f"{at}.mid", width, size)]
    for step, wide in enumerate(reversed(widths)):
        here = f"{at}.up.{step}"
        for block in range(codes.blocks + 1):
            nodes += _residual(f"{here}.block.{block}", width, wide, size)
            nodes += _attends(f"{here}.attn.{block}", wide, size) if step == 0 else ()
            width = wide
        if step != len(widths) - 1:
            nodes.append(_conv(f"{here}.upsample.conv", width, width, 3, size))
    return (*nodes, _group_norm(f"{at}.norm_out", width, size), _conv(f"{at}.conv_out", width, out, 3, size))


def _outer(at: str, codes: Codes, size: Size) -> tuple[Node, ...]:
    return (_conv(f"{at}.quant_conv", codes.latent, codes.dim, 1, size),)


def read_chameleon(config: Config, name: str) -> Arch:
    """Chameleon: a picture becomes 1,024 words, each the nearest of the codebook to what the encoder leaves."""
    vq, at = config.part("vq_config"), "model.vqmodel"
    codes, side = Codes.read(vq), vq.whole("resolution", default=512, high=100_000)
    vanilla = vq.values.get("attn_type", "vanilla") == "vanilla"
    asked = frozenset(vq.wholes("attn_resolutions") or ()) if vanilla else frozenset()
    refuse_picture(config, (side, side))
    widths = read_widths(config)
    biased = config.flag("attention_bias", default=False)
    traits = Traits(
        qkv_bias=biased, o_bias=biased, mlp_bias=config.flag("mlp_bias", default=False), qk_norm="full",
        qk_norm_kind="layer",
    )  # fmt: skip
    config.check()
    looks = tuple(max(1, side >> level) in asked for level in range(len(codes.factors)))
    nodes, size = encoder(f"{at}.encoder", codes, (side, side), looks, middle=vanilla)
    unused = _conv(f"{at}.post_quant_conv", codes.dim, codes.latent, 1, (1, 1))
    nearest = Linear(name=f"{at}.quantize.embedding", in_features=codes.dim, out_features=codes.num)
    tokens = size[0] * size[1]
    maps = {size, *((max(1, side >> level),) * 2 for level, look in enumerate(looks) if look)}
    vision = Vision(
        nodes=(of_picture(*nodes, *_outer(at, codes, size)), of_image(nearest), idle(unused)),
        streams=(image_stream(tokens), *(Stream(name=_map_name(one), length=one[0] * one[1]) for one in sorted(maps))),
        tokens=tokens,
        note=f"one picture {side}x{side} ({tokens:,} words of the codebook)",
    )
    return joined(standard_decoder(config, name, widths, traits), with_idle(vision))


# --- Janus --------------------------------------------------------------------------------------------------------


def _janus_tower(vision: Config, at: str) -> Tower:
    h = vision.need("hidden_size")
    heads, layers = heads_of(vision, h), vision.layers("num_hidden_layers")
    patch, size = patch_of(vision), tile_size(vision)
    ratio = vision.raw("mlp_ratio")
    ffn = int(h * ratio) if isinstance(ratio, int | float) and 0 < ratio <= 1000 else 4 * h
    if vision.flag("use_qk_norm", default=False):
        vision.fault("unsupported", "norms of queries and keys are not read in this tower", "use_qk_norm")
    grid = grid_of(vision, size, patch)
    layer = TowerLayer(
        hidden=h, heads=heads, ffn=ffn, names=AttentionNames(o="projection_layer"),
        qkv_bias=vision.flag("attention_bias", default=True),
    )  # fmt: skip
    channels = vision.whole("num_channels", default=3)
    nodes: tuple[Node, ...] = (
        of_picture(patch_conv(f"{at}.embeddings.patch_embedding", channels, h, patch, size, grid, bias=True)),
        Embedding(name=f"{at}.embeddings.position_embedding", num=grid[0] * grid[1], dim=h, role="position"),
        *tower_stack(f"{at}.encoder.layers", layers, layer),
        norm(f"{at}.post_layernorm", h, "layer"),
    )
    return Tower(nodes=(in_patches(nodes),), width=h, grid=grid, size=size, positions=grid[0] * grid[1])


def _deep(at: str, width: int, inner: int, depth: int) -> tuple[Node, ...]:
    """A matrix, then more of one width."""
    rest = tuple(
        Linear(name=f"{at}.hidden_layers.{index}", in_features=inner, out_features=inner, bias=True)
        for index in range(depth - 1)
    )
    first = Linear(name=f"{at}.fc1", in_features=width, out_features=inner, bias=True)
    return (first, *rest)


def _makes_pictures(vq: Config) -> tuple[Node, ...]:
    """What Janus draws with: codebook, both ways of the VQ-GAN, its own aligner and head."""
    codes, at = Codes.read(vq), "model.vqmodel"
    inner = vq.whole("projection_dim", default=2048)
    depth, width = vq.whole("num_hidden_layers", default=2, high=1000), vq.whole("image_token_embed_dim", default=2048)
    looks = tuple(level == len(codes.factors) - 1 for level in range(len(codes.factors)))
    head = "model.generation_head"
    return (
        *encoder(f"{at}.encoder", codes, (1, 1), looks)[0],
        Embedding(name=f"{at}.quantize.embedding", num=codes.num, dim=codes.dim),
        *_outer(at, codes, (1, 1)),
        _conv(f"{at}.post_quant_conv", codes.dim, codes.latent, 1, (1, 1)),
        *decoder(f"{at}.decoder", codes, vq.whole("out_channels", default=3)),
        Embedding(name="model.generation_embeddings", num=codes.num, dim=codes.dim),
        *_deep("model.generation_aligner", codes.dim, inner, depth),
        Linear(name=f"{head}.proj_out", in_features=width, out_features=inner, bias=True),
        Linear(name=f"{head}.vision_head", in_features=inner, out_features=codes.num, bias=True),
    )


def read_janus(config: Config, name: str) -> Arch:
    """Janus reading a picture: a SigLIP-like tower and an aligner; the parts that draw are held and do not run."""
    language = Language(tied=True)
    vision = config.part("vision_config")
    tower = _janus_tower(vision, "model.vision_model")
    refuse_picture(config, tower.size)
    inner, depth = vision.whole("projection_dim", default=2048), vision.whole("depth", default=2, high=1000)
    text_width(config, language)
    unused = idle(*_makes_pictures(config.part("vq_config")))
    seen = seen_by(tower, _deep("model.aligner", tower.width, inner, depth), tower.positions, more=(unused,))
    return with_vision(config, name, with_idle(seen), language)


FAMILIES = {"chameleon": read_chameleon, "janus": read_janus}
