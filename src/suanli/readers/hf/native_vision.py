"""Towers that take a picture of any size: Qwen-VL, Pixtral and what is built like them.

A picture is a grid of patches; squares of patches become one token. Without a size of its own a description is read
with a picture of 448×448, which is said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from suanli.nouns.arch import Arch, Module, Stream
from suanli.nouns.layers import Conv, Embedding, Linear
from suanli.readers.blocks import AttentionNames, Node, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf.composed import Language, Projector, image_stream, of_image, projector, with_vision
from suanli.readers.hf.towers import (
    PATCHES,
    Size,
    Tower,
    TowerLayer,
    Vision,
    heads_of,
    in_patches,
    of_picture,
    patch_conv,
    patch_of,
    picture,
)

ASSUMED: Size = (448, 448)  # a whole number of merged patches of 14 and of 16 pixels


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A picture, its patches, and how many of a side become one token."""

    size: Size
    sides: Size
    merge: int
    assumed: bool = False

    @property
    def patches(self) -> int:
        """Positions of the tower."""
        return self.sides[0] * self.sides[1]

    @property
    def tokens(self) -> int:
        """Positions of the decoder."""
        return (self.sides[0] // self.merge) * (self.sides[1] // self.merge)

    def streams(self) -> tuple[Stream, ...]:
        """Patches, and the tokens they become."""
        return (Stream(name=PATCHES, length=self.patches), image_stream(self.tokens))

    def said(self) -> str:
        """The picture and the tower's positions, in words."""
        why = " assumed, --image HxW gives another" if self.assumed else ""
        return f"one picture {self.size[0]}x{self.size[1]}{why} ({self.patches:,} positions)"


def read_grid(config: Config, vision: Config, merge: int, default: Size | None = None) -> Grid:
    """The grid of the picture asked for."""
    patch = patch_of(vision)
    own = vision.has("image_size") and default is None
    chosen = vision if own else Config({}, vision.where)
    size = picture(config, chosen, patch * merge, default or ASSUMED)
    return Grid(
        size=size, sides=(max(1, size[0] // patch), max(1, size[1] // patch)), merge=merge,
        assumed=not own and not config.has("image_size"),
    )  # fmt: skip


# --- Pixtral ------------------------------------------------------------------------------------------------------


def pixtral_tower(config: Config, vision: Config, at: str, merge: int = 1) -> Tower:
    """Pixtral's tower: RMS norms, gated MLP, rotary positions on both sides."""
    h = vision.need("hidden_size")
    heads, ffn, layers = heads_of(vision, h), vision.need("intermediate_size"), vision.layers("num_hidden_layers")
    grid = read_grid(config, vision, merge)
    layer = TowerLayer(
        hidden=h, heads=heads, ffn=ffn, names=AttentionNames(at="attention"), norms=("attention_norm", "ffn_norm"),
        norm_kind="rms", mlp_at="feed_forward", mlp_names=("gate_proj", "up_proj", "down_proj"), mlp_bias=False,
        qkv_bias=False, o_bias=False,
    )  # fmt: skip
    channels = vision.whole("num_channels", default=3)
    conv = patch_conv(f"{at}.patch_conv", channels, h, patch_of(vision), grid.size, grid.sides, bias=False)
    layered = stack(f"{at}.transformer.layers", (0,) * layers, lambda _: layer.nodes())
    nodes = in_patches((of_picture(conv), norm(f"{at}.ln_pre", h), *layered))
    return Tower(nodes=(nodes,), width=h, grid=grid.sides, size=grid.size, positions=grid.patches)


def _pixtral_merged(config: Config, name: str, language: Language, at: str, projector_at: str, bias: str) -> Arch:
    """A Pixtral tower whose squares of patches are merged by one matrix before the projector."""
    vision = config.part("vision_config")
    merge = config.whole("spatial_merge_size", default=2)
    tower = pixtral_tower(config, vision, at, merge)
    out, width = config.part("text_config").need("hidden_size"), tower.width
    layers = config.raw("vision_feature_layer")
    if isinstance(layers, list | tuple) and len(layers) > 1:
        config.fault("unsupported", "several layers of this tower side by side are not read", "vision_feature_layer")
    biased = config.flag(bias, default=False)
    nodes = (
        Linear(
            name=f"{projector_at}.patch_merger.merging_layer", in_features=width * merge * merge, out_features=width
        ),
        *projector(Projector(at=projector_at, bias=biased), width, out, out),
    )
    before = in_patches((norm(f"{projector_at}.norm", width),))
    grid = Grid(size=tower.size, sides=tower.grid, merge=merge)
    found = Vision(
        nodes=(*tower.nodes, before, of_image(*nodes)), streams=grid.streams(), tokens=grid.tokens, note=grid.said()
    )
    return with_vision(config, name, found, language)


def read_mistral3(config: Config, name: str) -> Arch:
    """Mistral Small 3.1 and later: Pixtral's tower, squares of two by two patches merged."""
    language = Language(default="mistral", tied=True)
    return _pixtral_merged(
        config, name, language, "model.vision_tower", "model.multi_modal_projector", "multimodal_projector_bias"
    )


def read_lighton_ocr(config: Config, name: str) -> Arch:
    """LightOnOCR: as Mistral Small 3.1 before a Qwen3 decoder."""
    language = Language(default="qwen3", tied=True)
    return _pixtral_merged(
        config, name, language, "model.vision_encoder", "model.vision_projection", "multimodal_projector_bias"
    )


# --- Qwen-VL ------------------------------------------------------------------------------------------------------

FUSED = AttentionNames(at="attn", fused="qkv", o="proj")


def cubes(name: str, channels: int, h: int, patch: int, frames: int, *, bias: bool) -> Conv:
    """A patch of two frames (a picture is given twice) as one position: the convolution covers it once."""
    block = (frames, patch, patch)
    return Conv(
        name=name, in_channels=channels, out_channels=h, kernel=block, in_size=block, out_size=(1, 1, 1), bias=bias,
        raw_input=True,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """A tower of `blocks`: what the vision description says of it."""

    at: str
    hidden: int
    heads: int
    depth: int
    patch: int
    merge: int
    out: int
    conv: Conv
    grid: Grid

    @property
    def merged(self) -> int:
        """Width of a square of patches."""
        return self.hidden * self.merge * self.merge

    def stack(self, layer: TowerLayer) -> tuple[Module, ...]:
        """Equal layers."""
        return stack(f"{self.at}.blocks", (0,) * self.depth, lambda _: layer.nodes())


def read_blocks(config: Config, at: str, *, hidden: str = "hidden_size", conv_bias: bool) -> Blocks:
    """Widths of a tower in Qwen-VL's spelling."""
    vision = config.part("vision_config")
    h = vision.need(hidden)
    merge, patch = vision.whole("spatial_merge_size", default=2), patch_of(vision)
    out = vision.need("hidden_size") if hidden == "embed_dim" else vision.need("out_hidden_size")
    frames = vision.whole("temporal_patch_size", default=2)
    channels = vision.whole("in_channels", "in_chans", default=3)
    return Blocks(
        at=at, hidden=h, heads=heads_of(vision, h, "num_heads"), depth=vision.layers("depth"), patch=patch,
        merge=merge, out=out, conv=cubes(f"{at}.patch_embed.proj", channels, h, patch, frames, bias=conv_bias),
        grid=read_grid(config, Config({"patch_size": patch}, vision.where), merge),
    )  # fmt: skip


def seen_in_blocks(blocks: Blocks, patches: tuple[Node, ...], merged: tuple[Node, ...], *more: Stream) -> Vision:
    """The tower's nodes on patches, then those on merged squares."""
    grid = blocks.grid
    nodes = (in_patches((blocks.conv, *patches)), of_image(*merged))
    return Vision(nodes=nodes, streams=(*grid.streams(), *more), tokens=grid.tokens, note=grid.said())


def read_qwen2_vl(config: Config, name: str) -> Arch:
    """Qwen2-VL: layer norms, plain MLP, full attention over a picture."""
    blocks = read_blocks(config, "model.visual", hidden="embed_dim", conv_bias=False)
    h = blocks.hidden
    ffn = h * config.part("vision_config").whole("mlp_ratio", default=4, high=1000)
    layer = TowerLayer(hidden=h, heads=blocks.heads, ffn=ffn, names=FUSED, norms=("norm1", "norm2"))
    at = f"{blocks.at}.merger"
    merged = projector(Projector(at=f"{at}.mlp", names=("0", "2")), blocks.merged, blocks.merged, blocks.out)
    vision = seen_in_blocks(blocks, (*blocks.stack(layer), norm(f"{at}.ln_q", h, "layer")), merged)
    return with_vision(config, name, vision, Language(default="qwen2_vl_text", flat=True))


def windows(grid: Grid, side: int) -> tuple[tuple[int, int], ...]:
    """(positions, how many) of the windows of `side` merged patches, those cut by the picture's edge apart."""

    def cuts(length: int) -> list[tuple[int, int]]:
        whole, rest = divmod(length, side)
        return [(side, whole)] * (whole > 0) + [(rest, 1)] * (rest > 0)

    found: dict[int, int] = {}
    square = grid.merge * grid.merge
    for rows, times in cuts(grid.sides[0] // grid.merge):
        for columns, again in cuts(grid.sides[1] // grid.merge):
            length = rows * columns * square
            found[length] = found.get(length, 0) + times * again
    return tuple(found.items())


def window_streams(grid: Grid, side: int) -> tuple[Stream, ...]:
    """Streams in which each window's positions see only one another."""
    return tuple(
        Stream(name=f"windows of {length}", length=length, copies=copies) for length, copies in windows(grid, side)
    )


def windowed_tower(config: Config, at: str, attention: AttentionNames = FUSED) -> tuple[Blocks, Vision]:
    """Qwen2.5-VL's tower: RMS norms, gated MLP, windows in all layers but a few."""
    vision = config.part("vision_config")
    blocks = read_blocks(config, at, conv_bias=False)
    h = blocks.hidden
    layer = TowerLayer(
        hidden=h, heads=blocks.heads, kv_heads=vision.kv_heads(blocks.heads), ffn=vision.need("intermediate_size"),
        names=attention, norms=("norm1", "norm2"), norm_kind="rms", mlp_names=("gate_proj", "up_proj", "down_proj"),
    )  # fmt: skip
    side = max(1, vision.whole("window_size", default=112) // blocks.merge // blocks.patch)
    streams = window_streams(blocks.grid, side)
    listed = vision.wholes("fullatt_block_indexes")
    full = frozenset((7, 15, 23, 31) if listed is None else listed)
    config.check()
    names = tuple(stream.name for stream in streams)
    layered = stack(
        f"{at}.blocks", tuple(i in full for i in range(blocks.depth)), lambda whole: layer.nodes(() if whole else names)
    )
    merger = f"{at}.merger"
    merged = projector(Projector(at=f"{merger}.mlp", names=("0", "2")), blocks.merged, blocks.merged, blocks.out)
    return blocks, seen_in_blocks(blocks, (*layered, norm(f"{merger}.ln_q", h)), merged, *streams)


def read_qwen2_5_vl(config: Config, name: str) -> Arch:
    """Qwen2.5-VL."""
    _, vision = windowed_tower(config, "model.visual")
    return with_vision(config, name, vision, Language(default="qwen2_5_vl_text", flat=True))


def read_hyperclovax(config: Config, name: str) -> Arch:
    """HyperCLOVA X SEED Vision: Qwen2.5-VL's tower and one matrix."""
    blocks, vision = windowed_tower(config, "model.vision_model")
    out = config.part("text_config").need("hidden_size")
    last = of_image(Linear(name="model.projector", in_features=blocks.out, out_features=out, bias=True))
    return with_vision(config, name, vision, Language(default="hyperclovax", tied=True), more=(last,))


@dataclass(frozen=True, kw_only=True)
class Merging:
    """How a tower calls what merges its squares of patches, and what does so for the decoder's deeper layers."""

    norm: str = "norm"
    names: tuple[str, str] = ("linear_fc1", "linear_fc2")
    deeper: str = "deepstack_merger_list"


def deep_tower(config: Config, at: str, merging: Merging | None = None) -> Vision:
    """Qwen3-VL's tower: learned positions, plain MLP; what some layers leave is merged for the decoder too."""
    vision = config.part("vision_config")
    blocks = read_blocks(config, at, conv_bias=True)
    h = blocks.hidden
    rows = vision.need("num_position_embeddings")
    layer = TowerLayer(
        hidden=h, heads=blocks.heads, ffn=vision.need("intermediate_size"), names=FUSED, norms=("norm1", "norm2"),
        mlp_names=("linear_fc1", "linear_fc2"),
    )  # fmt: skip
    deep = vision.wholes("deepstack_visual_indexes", low=0) or ()
    if any(index >= blocks.depth for index in deep) and not config.faults.faults:
        config.fault(
            "contradiction", "a layer that is to be merged is not there", "deepstack_visual_indexes",
            got=str(list(deep)), expected=f"numbers below {blocks.depth}",
        )  # fmt: skip
    called = merging or Merging()
    merger = Projector(at=f"{at}.merger", names=called.names)
    each = Projector(at="", names=called.names, norm=called.norm)
    deeper = tuple(
        Module(
            name=f"{at}.{called.deeper}", indices=range(len(deep)),
            children=tuple(_bare(node) for node in projector(each, blocks.merged, blocks.merged, blocks.out)),
        )
        for _ in deep[:1]
    )  # fmt: skip
    patches: tuple[Node, ...] = (
        Embedding(name=f"{at}.pos_embed", num=rows, dim=h, role="position"),
        *blocks.stack(layer),
        norm(f"{at}.merger.{called.norm}", h, "layer"),
    )
    return seen_in_blocks(blocks, patches, (*projector(merger, blocks.merged, blocks.merged, blocks.out), *deeper))


def _bare(node: Node) -> Node:
    return replace(node, name=node.name.lstrip("."))


def read_qwen3_vl(config: Config, name: str) -> Arch:
    """Qwen3-VL."""
    return with_vision(config, name, deep_tower(config, "model.visual"), Language(default="qwen3_vl_text"))


def read_qwen3_vl_moe(config: Config, name: str) -> Arch:
    """Qwen3-VL with a mixture."""
    return with_vision(config, name, deep_tower(config, "model.visual"), Language(default="qwen3_vl_moe_text"))


def read_qwen3_5(config: Config, name: str) -> Arch:
    """Qwen3.5: Qwen3-VL's tower, nothing passed to deeper layers."""
    default = f"{config.values.get('model_type')}_text"
    return with_vision(config, name, deep_tower(config, "model.visual"), Language(default=default))


FAMILIES = {
    "mistral3": read_mistral3,
    "lighton_ocr": read_lighton_ocr,
    "qwen2_vl": read_qwen2_vl,
    "qwen2_5_vl": read_qwen2_5_vl,
    "hyperclovax_vision_v2": read_hyperclovax,
    "qwen3_vl": read_qwen3_vl,
    "cosmos3_omni": read_qwen3_vl,
    "qwen3_vl_moe": read_qwen3_vl_moe,
    "qwen3_5": read_qwen3_5,
    "qwen3_5_moe": read_qwen3_5,
}
