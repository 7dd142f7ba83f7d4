"""Vision towers of models that read pictures: their layers, patches and streams, and the CLIP and SigLIP towers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from suanli.nouns.arch import SAMPLE, Module, Stream
from suanli.nouns.layers import Attention, Conv, Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, mlp, norm, stack
from suanli.readers.config import Config, StandIn
from suanli.readers.hf.vision import image_size

PATCHES, IMAGE, TILES, PROBE = "patches", "image tokens", "tiles", "pooled"
Size = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Vision:
    """What stands before the decoder: its nodes and streams, how many tokens it adds, and what to say of it."""

    nodes: tuple[Node, ...]
    streams: tuple[Stream, ...]
    tokens: int
    note: str
    what: str = "the picture"
    task: str = "image-text-to-text"


@dataclass(frozen=True, kw_only=True)
class TowerLayer:
    """One pre-norm layer of a tower. `scales` are the names of layer scales and gates, each of the width given."""

    hidden: int
    heads: int
    ffn: int
    kv_heads: int | None = None
    names: AttentionNames = field(default_factory=lambda: AttentionNames(o="out_proj"))
    norms: tuple[str, ...] = ("layer_norm1", "layer_norm2")
    after: tuple[str, ...] = ()
    norm_kind: str = "layer"
    mlp_at: str = "mlp"
    mlp_names: tuple[str, ...] = ("fc1", "fc2")
    mlp_bias: bool = True
    qkv_bias: bool = True
    k_bias: bool = True
    o_bias: bool = True
    head_dim: int | None = None
    qk_norm: str | None = None
    qk_norm_kind: str = "rms"
    scales: tuple[str, ...] = ()
    scale_width: int | None = None
    mask: str = "full"

    def nodes(self, windows: tuple[str, ...] = ()) -> tuple[Node, ...]:
        """The layer's nodes; its attention runs in each stream of `windows`, where given, in place of its own."""
        h = self.hidden
        spec = AttentionSpec(
            hidden=h, heads=self.heads, kv_heads=self.kv_heads or self.heads,
            head_dim=self.head_dim or max(1, h // self.heads), names=self.names, qkv_bias=self.qkv_bias,
            k_bias=self.k_bias, o_bias=self.o_bias, qk_norm=self.qk_norm, qk_norm_kind=self.qk_norm_kind,
            mask=self.mask,
        )  # fmt: skip
        attend = tuple(part for node in attention(spec) for part in _windowed(node, windows))
        width = h if self.scale_width is None else self.scale_width
        return (
            norm(self.norms[0], h, self.norm_kind),
            *attend,
            *(norm(name, h, self.norm_kind) for name in self.norms[1:]),
            *mlp(h, self.ffn, at=self.mlp_at, names=self.mlp_names, bias=self.mlp_bias),
            *(norm(name, h, self.norm_kind) for name in self.after),
            *(Parameter(name=name, shape=(width,)) for name in self.scales),
        )


def _windowed(node: Node, windows: tuple[str, ...]) -> tuple[Node, ...]:
    """Attention once for each kind of window, all of them sharing the projections around it."""
    if not windows or not isinstance(node, Attention):
        return (node,)
    return tuple(Module(name="", stream=stream, children=(node,)) for stream in windows)


def tower_stack(at: str, layers: int, layer: TowerLayer) -> tuple[Module, ...]:
    """Equal layers."""
    return stack(at, (0,) * layers, lambda _: layer.nodes())


# --- pictures -----------------------------------------------------------------------------------------------------


def heads_of(config: Config, hidden: int, *names: str) -> int:
    """Heads of a tower; they must divide its width."""
    key = names or ("num_attention_heads",)
    heads = config.need(*key, high=1_000_000)
    if hidden % heads and not isinstance(hidden, StandIn):
        config.fault(
            "contradiction", "the number of heads does not divide the width", key[0],
            got=f"{heads} heads, width {hidden}",
        )  # fmt: skip
    return heads


def patch_of(vision: Config) -> int:
    """Side of a square patch."""
    value = vision.raw("patch_size")
    if not isinstance(value, list | tuple):
        return vision.need("patch_size", high=100_000)
    sides = vision.wholes("patch_size", low=1, high=100_000) or (1,)
    if len(set(sides)) > 1:
        vision.fault("unsupported", "patches that are not square are not read", "patch_size", got=str(list(sides)))
    return sides[0]


def tile_size(vision: Config) -> Size:
    """The size a tower of fixed size takes."""
    if not vision.has("image_size"):
        vision.fault("missing_key", "missing key image_size", "image_size", expected="a size in pixels")
        return StandIn(1), StandIn(1)
    return image_size(vision)


def grid_of(vision: Config, size: Size, patch: int) -> Size:
    """Patches in height and width."""
    if min(size) < patch and not isinstance(patch, StandIn) and not isinstance(size[0], StandIn):
        vision.fault(
            "contradiction", "the patch is larger than the picture", "patch_size",
            got=f"{patch}, picture {size[0]}x{size[1]}",
        )  # fmt: skip
    return max(1, size[0] // patch), max(1, size[1] // patch)


def refuse_picture(config: Config, size: Size) -> None:
    """A tower of fixed size takes no other: a picture of another size is resized to it before."""
    if config.has("image_size") and image_size(config) != size:
        given = image_size(config)
        config.fault(
            "contradiction", "every picture is resized to the size the tower takes", "image_size",
            got=f"{given[0]}x{given[1]}", expected=f"{size[0]}x{size[1]}",
        )  # fmt: skip


def picture(config: Config, vision: Config, step: int, default: Size | None = None) -> Size:
    """The picture a tower of any resolution is given: the one asked for, else the config's own, else `default`.

    Both sides must be whole steps (patches, or merged patches): the preprocessor sees to that.
    """
    asked = next((each for each in (config, vision) if each.has("image_size")), None)
    if asked is None and default is None:
        config.fault(
            "missing_key", "missing key image_size", "image_size", expected="the picture's size in pixels",
            hint="This tower takes pictures of any size: give one, --image HxW.",
        )  # fmt: skip
        return StandIn(step), StandIn(step)
    size = default if asked is None else image_size(asked)
    assert size is not None
    if (size[0] % step or size[1] % step) and not isinstance(step, StandIn):
        (asked or config).fault(
            "bad_value", "image_size is no whole number of steps", "image_size", got=f"{size[0]}x{size[1]}",
            expected=f"multiples of {step}",
        )  # fmt: skip
    return size


# --- parts --------------------------------------------------------------------------------------------------------


def patch_conv(name: str, channels: int, h: int, patch: int, size: Size, grid: Size, *, bias: bool) -> Conv:
    """The convolution that makes patches of one picture; it stands in the stream of pictures."""
    return Conv(
        name=name, in_channels=channels, out_channels=h, kernel=(patch, patch), in_size=size, out_size=grid, bias=bias,
        raw_input=True,
    )  # fmt: skip


def tiled(tiles: int) -> tuple[str, tuple[Stream, ...]]:
    """Name of the stream of pictures, and what must be declared for it: several where a picture is cut into tiles."""
    return (SAMPLE, ()) if tiles == 1 else (TILES, (Stream(name=TILES, length=tiles),))


@dataclass(frozen=True, kw_only=True)
class Tower:
    """A tower that has been read: its nodes, the width and the grid it leaves, and its positions in a picture."""

    nodes: tuple[Node, ...]
    width: int
    grid: Size
    size: Size
    positions: int
    tiles: int = 1

    @property
    def patches(self) -> int:
        """Patches of one tile, class tokens apart."""
        return self.grid[0] * self.grid[1]

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The tower's positions, tile by tile."""
        return (Stream(name=PATCHES, length=self.positions, copies=self.tiles), *tiled(self.tiles)[1])

    def retiled(self, tiles: int) -> Tower:
        """The same tower over several tiles."""
        moved = tuple(_moved(node, tiled(tiles)[0]) for node in self.nodes)
        return replace(self, tiles=tiles, nodes=moved)


def _moved(node: Node, stream: str) -> Node:
    """The nodes of one picture put into the stream of tiles."""
    if not isinstance(node, Module):
        return node
    children = tuple(_moved(child, stream) for child in node.children)
    return replace(node, stream=stream if node.stream == SAMPLE else node.stream, children=children)


def of_picture(*nodes: Node) -> Module:
    """Nodes that run once a picture."""
    return Module(name="", stream=SAMPLE, children=nodes)


def in_patches(nodes: tuple[Node, ...]) -> Module:
    """Nodes of the tower's own positions."""
    return Module(name="", stream=PATCHES, children=nodes)


def clip_tower(vision: Config, at: str) -> Tower:
    """CLIP's picture tower: a class token, learned positions, norms before and after; all layers run."""
    h = vision.need("hidden_size")
    heads, ffn, layers = heads_of(vision, h), vision.need("intermediate_size"), vision.layers("num_hidden_layers")
    patch, size = patch_of(vision), tile_size(vision)
    grid = grid_of(vision, size, patch)
    positions = grid[0] * grid[1] + 1
    conv = patch_conv(
        f"{at}.embeddings.patch_embedding", vision.whole("num_channels", default=3), h, patch, size, grid, bias=False
    )
    nodes: tuple[Node, ...] = (
        of_picture(conv),
        Parameter(name=f"{at}.embeddings.class_embedding", shape=(h,)),
        Embedding(name=f"{at}.embeddings.position_embedding", num=positions, dim=h, role="position"),
        norm(f"{at}.pre_layrnorm", h, "layer"),
        *tower_stack(f"{at}.encoder.layers", layers, TowerLayer(hidden=h, heads=heads, ffn=ffn)),
        of_picture(norm(f"{at}.post_layernorm", h, "layer")),
    )
    return Tower(nodes=(in_patches(nodes),), width=h, grid=grid, size=size, positions=positions)


def siglip_tower(vision: Config, at: str, *, head: bool = True, size: Size | None = None) -> Tower:
    """SigLIP's picture tower: no class token; a pooling head that runs even where its output is not used.

    Idefics' tower has no such `head`, and takes pictures of another `size` than its positions were learned on.
    """
    h = vision.need("hidden_size")
    heads, ffn, layers = heads_of(vision, h), vision.need("intermediate_size"), vision.layers("num_hidden_layers")
    patch, own = patch_of(vision), tile_size(vision)
    learned = grid_of(vision, own, patch)
    size = own if size is None else size
    grid = grid_of(vision, size, patch)
    conv = patch_conv(
        f"{at}.embeddings.patch_embedding", vision.whole("num_channels", default=3), h, patch, size, grid, bias=True
    )
    pooled = head and vision.flag("vision_use_head", default=True)
    rows = learned[0] * learned[1]
    nodes: tuple[Node, ...] = (
        of_picture(conv),
        Embedding(name=f"{at}.embeddings.position_embedding", num=rows, dim=h, role="position"),
        *tower_stack(f"{at}.encoder.layers", layers, TowerLayer(hidden=h, heads=heads, ffn=ffn)),
        norm(f"{at}.post_layernorm", h, "layer"),
        *(pooling_head(f"{at}.head", h, heads, ffn) if pooled else ()),
    )
    return Tower(nodes=(in_patches(nodes),), width=h, grid=grid, size=size, positions=grid[0] * grid[1])


def pooling_head(at: str, h: int, heads: int, ffn: int) -> tuple[Node, ...]:
    """One learned query looks at all patches (torch's attention with packed projections), then an MLP."""
    query = Linear(name=f"{at}.attention", in_features=h, out_features=h, bias=True)
    keys = Linear(name=f"{at}.attention", in_features=h, out_features=2 * h, bias=True)
    core = Attention(
        name=f"{at}.attention.attention", heads=heads, kv_heads=heads, qk_dim=max(1, h // heads),
        v_dim=max(1, h // heads), mask="full", key_stream=PATCHES,
    )  # fmt: skip
    rest = (
        Linear(name=f"{at}.attention.out_proj", in_features=h, out_features=h, bias=True),
        norm(f"{at}.layernorm", h, "layer"),
        *mlp(h, ffn, at=f"{at}.mlp", names=("fc1", "fc2"), bias=True),
    )
    return (of_picture(Parameter(name=f"{at}.probe", shape=(1, 1, h)), query), keys, of_picture(core, *rest))
