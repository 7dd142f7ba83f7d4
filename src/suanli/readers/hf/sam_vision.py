"""Towers made of Segment Anything's encoder: GOT-OCR 2, PP-Chart2Table, DeepSeek-VL 7B (beside SigLIP)."""

from __future__ import annotations

from dataclasses import dataclass

from suanli.nouns.arch import Arch, Module, Stream
from suanli.nouns.layers import Attention, Conv, Embedding, Linear, Parameter
from suanli.readers.blocks import Node, mlp, norm, stack
from suanli.readers.config import Config, StandIn
from suanli.readers.hf.composed import Language, image_stream, of_image, with_vision
from suanli.readers.hf.towers import (
    Size,
    Vision,
    grid_of,
    heads_of,
    of_picture,
    patch_conv,
    patch_of,
    refuse_picture,
    siglip_tower,
    tile_size,
)
from suanli.readers.hf.vision_language import text_width

GRID, WINDOWS, TWICE = "grid", "padded windows", "two maps"


@dataclass(frozen=True, kw_only=True)
class Sam:
    """The encoder that has been read; `out` channels lie on its `grid`."""

    nodes: tuple[Node, ...]
    streams: tuple[Stream, ...]
    grid: Size
    size: Size
    width: int
    out: int


def _attention(h: int, heads: int, stream: str, sides: Size, *, biased: bool, relative: bool) -> tuple[Node, ...]:
    """Fused QKV, learned relative positions by rows and by columns, attention within a window or the whole grid.

    A query meets the vector of each row and each column as it meets a key: a product without values.
    """
    head_dim = max(1, h // heads)

    def met(name: str, side: int) -> tuple[Node, ...]:
        table = Embedding(name=f"attn.rel_pos_{name}", num=2 * side - 1, dim=head_dim, role="bias")
        rows = Attention(
            name=f"attn.by_{name}", heads=heads, kv_heads=heads, qk_dim=head_dim, v_dim=0, mask="full",
            key_stream=f"{side} sides",
        )  # fmt: skip
        return (table, rows)

    core = Attention(name="attn.attention", heads=heads, kv_heads=heads, qk_dim=head_dim, v_dim=head_dim, mask="full")
    nodes: tuple[Node, ...] = (
        Linear(name="attn.qkv", in_features=h, out_features=3 * h, bias=biased),
        *((*met("h", sides[0]), *met("w", sides[1])) if relative else ()),
        core,
        Linear(name="attn.proj", in_features=h, out_features=h, bias=True),
    )
    return (Module(name="", stream=stream, children=nodes),)


def sam(vision: Config, at: str) -> Sam:
    """The encoder with its neck. Most layers look within windows, which are padded to be whole."""
    h = vision.need("hidden_size")
    heads, layers, ffn = heads_of(vision, h), vision.layers("num_hidden_layers"), vision.need("mlp_dim")
    patch, size = patch_of(vision), tile_size(vision)
    grid, out = grid_of(vision, size, patch), vision.need("output_channels")
    window = vision.whole("window_size", default=14, low=0)
    everywhere = frozenset(range(layers) if not window else vision.wholes("global_attn_indexes") or ())
    biased, relative = vision.flag("qkv_bias", default=True), vision.flag("use_rel_pos", default=True)
    vision.check()

    def layer(whole: bool) -> tuple[Node, ...]:
        sides = grid if whole else (window, window)
        return (
            norm("layer_norm1", h, "layer"),
            *_attention(h, heads, GRID if whole else WINDOWS, sides, biased=biased, relative=relative),
            norm("layer_norm2", h, "layer"),
            *mlp(h, ffn, names=("lin1", "lin2"), bias=True),
        )

    channels = vision.whole("num_channels", default=3)
    learned = (
        (Parameter(name=f"{at}.pos_embed", shape=(1, *grid, h)),) if vision.flag("use_abs_pos", default=True) else ()
    )
    nodes = (
        of_picture(patch_conv(f"{at}.patch_embed.projection", channels, h, patch, size, grid, bias=True)),
        *learned,
        *stack(f"{at}.layers", tuple(i in everywhere for i in range(layers)), layer),
        of_picture(*neck(f"{at}.neck", h, out, grid)),
    )
    windows = (-(-grid[0] // window)) * (-(-grid[1] // window)) if window else 1
    sides = sorted({*grid, window} - {0})
    streams = (
        Stream(name=GRID, length=grid[0] * grid[1]),
        Stream(name=WINDOWS, length=window * window, copies=windows),
        *(Stream(name=f"{side} sides", length=side) for side in sides),
    )
    return Sam(
        nodes=(Module(name="", stream=GRID, children=nodes),), streams=streams, grid=grid, size=size, width=h, out=out
    )


def neck(at: str, h: int, out: int, grid: Size) -> tuple[Node, ...]:
    """Two convolutions that leave the grid as it is, each normed."""
    area = grid[0] * grid[1]

    def conv(name: str, channels: int, side: int) -> Conv:
        return Conv(
            name=f"{at}.{name}", in_channels=channels, out_channels=out, kernel=(side, side), in_size=grid,
            out_size=grid, bias=False,
        )  # fmt: skip

    return (
        conv("conv1", h, 1),
        norm(f"{at}.layer_norm1", out, "layer", per=area),
        conv("conv2", out, 3),
        norm(f"{at}.layer_norm2", out, "layer", per=area),
    )  # fmt: skip


def halved(name: str, c_in: int, c_out: int, size: Size) -> tuple[Conv, Size]:
    """A 3×3 convolution that takes every second position."""
    left = (size[0] + 1) // 2, (size[1] + 1) // 2
    conv = Conv(name=name, in_channels=c_in, out_channels=c_out, kernel=(3, 3), in_size=size, out_size=left, bias=False)
    return conv, left


def read_got_ocr2(config: Config, name: str) -> Arch:
    """GOT-OCR 2: two halving convolutions and a matrix after the encoder."""
    language = Language(default="qwen2", tied=True)
    seen = sam(config.part("vision_config"), "model.vision_tower")
    refuse_picture(config, seen.size)
    at, out = "model.multi_modal_projector", text_width(config, language)
    one, size = halved(f"{at}.conv_upsampler1", seen.out, 2 * seen.out, seen.grid)
    two, size = halved(f"{at}.conv_upsampler2", 2 * seen.out, out, size)
    last = Linear(name=f"{at}.multimodal_projector", in_features=out, out_features=out, bias=True)
    vision = Vision(
        nodes=(*seen.nodes, of_picture(one, two), of_image(last)),
        streams=(*seen.streams, image_stream(size[0] * size[1])),
        tokens=size[0] * size[1],
        note=f"one picture {seen.size[0]}x{seen.size[1]} ({seen.grid[0] * seen.grid[1]:,} positions)",
    )
    return with_vision(config, name, vision, language)


def read_deepseek_vl_hybrid(config: Config, name: str) -> Arch:
    """DeepSeek-VL 7B: SigLIP on a small picture, Segment Anything on a large one, joined patch by patch."""
    language = Language(tied=True)
    tower = siglip_tower(config.part("vision_config"), "model.vision_model")
    high = sam(config.part("high_res_vision_config"), "model.high_res_vision_model.vision_encoder")
    out = text_width(config, language)
    if out % 2 and not isinstance(out, StandIn):
        config.fault("contradiction", "the decoder's width cannot be halved", "text_config", got=f"{out:,}")
    place, sides = "model.high_res_vision_proj", (4 * tower.grid[0], 4 * tower.grid[1])
    one, size = halved(f"{place}.conv1", high.out, 2 * high.out, sides)
    two, _ = halved(f"{place}.conv2", 2 * high.out, 4 * high.out, size)
    second = neck("model.high_res_vision_neck", high.width, high.out, high.grid)
    at, half = "model.aligner", max(1, out // 2)
    joined = (
        Linear(name=f"{at}.vision_proj", in_features=tower.width, out_features=half, bias=True),
        Linear(name=f"{at}.high_res_vision_proj", in_features=4 * high.out, out_features=half, bias=True),
        Linear(name=f"{at}.proj", in_features=out, out_features=out, bias=True),
    )
    nodes = (
        *high.nodes,
        of_picture(Parameter(name="model.high_res_vision_alpha", shape=(1,)), *second),
        Module(name="", stream=TWICE, children=(one, two)),  # what the last layer leaves, and a middle one
        *tower.nodes,
        of_image(*joined),
    )
    streams = (*high.streams, Stream(name=TWICE, length=2), *tower.streams, image_stream(tower.patches))
    small, large = tower.size, high.size
    note = f"one picture as {small[0]}x{small[1]} ({tower.positions:,} positions) and as {large[0]}x{large[1]}"
    vision = Vision(nodes=nodes, streams=streams, tokens=tower.patches, note=note)
    return with_vision(config, name, vision, language)


FAMILIES = {
    "got_ocr2": read_got_ocr2,
    "pp_chart2table": read_got_ocr2,
    "deepseek_vl_hybrid": read_deepseek_vl_hybrid,
}
