"""More towers for pictures of any size, their patches packed in one sequence: Kimi, VideoLLaMA 3, PaddleOCR, EXAONE."""

from __future__ import annotations

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Conv, Embedding, Linear
from suanli.readers.blocks import AttentionNames, Node, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf.composed import Language, Projector, of_image, projector, with_vision
from suanli.readers.hf.native_vision import Grid, cubes, read_grid, windowed_tower
from suanli.readers.hf.towers import TowerLayer, Vision, heads_of, in_patches, patch_of, pooling_head


def single_patch(name: str, channels: int, h: int, patch: int) -> Conv:
    """A convolution that covers one patch: it runs once a position."""
    side = (patch, patch)
    return Conv(
        name=name, in_channels=channels, out_channels=h, kernel=side, in_size=side, out_size=(1, 1), bias=True,
        raw_input=True,
    )  # fmt: skip


def _vision(grid: Grid, patches: tuple[Node, ...], tokens: tuple[Node, ...]) -> Vision:
    return Vision(
        nodes=(in_patches(patches), of_image(*tokens)), streams=grid.streams(), tokens=grid.tokens, note=grid.said()
    )


def _bare_grid(config: Config, vision: Config, merge: int) -> Grid:
    """The picture asked for, or the assumed one: the tower's own size is that of its table of positions."""
    return read_grid(config, Config({"patch_size": patch_of(vision)}, vision.where), merge)


def _packed(vision: Config, at: str, *, learned: int, last: str = "post_layernorm") -> tuple[Node, ...]:
    """SigLIP's layers on packed patches, with a table of `learned` positions where there is one."""
    h = vision.need("hidden_size")
    heads, ffn, layers = heads_of(vision, h), vision.need("intermediate_size"), vision.layers("num_hidden_layers")
    layer = TowerLayer(hidden=h, heads=heads, ffn=ffn)
    channels = vision.whole("num_channels", default=3)
    table = Embedding(name=f"{at}.embeddings.position_embedding", num=max(1, learned), dim=h, role="position")
    return (
        single_patch(f"{at}.embeddings.patch_embedding", channels, h, patch_of(vision)),
        *((table,) if learned else ()),
        *stack(f"{at}.encoder.layers", (0,) * layers, lambda _: layer.nodes()),
        norm(f"{at}.{last}", h, "layer"),
    )


def read_video_llama3(config: Config, name: str) -> Arch:
    """VideoLLaMA 3 on one picture: every patch becomes a token through two matrices."""
    vision = config.part("vision_config")
    grid = _bare_grid(config, vision, 1)
    out = config.part("text_config").need("hidden_size")
    tokens = projector(Projector(at="model.projector.readout", names=("0", "2")), vision.need("hidden_size"), out, out)
    found = _vision(grid, _packed(vision, "model.vision_model", learned=0), tokens)
    return with_vision(config, name, found, Language(default="qwen2"))


def read_paddleocr_vl(config: Config, name: str) -> Arch:
    """PaddleOCR-VL: squares of patches, a norm, two matrices, before an ERNIE decoder."""
    vision = config.part("vision_config")
    merge, patch = vision.whole("spatial_merge_size", default=2), patch_of(vision)
    grid = _bare_grid(config, vision, merge)
    rows = (vision.need("image_size", high=100_000) // patch) ** 2
    h, out = vision.need("hidden_size"), config.part("text_config").need("hidden_size")
    tokens = projector(Projector(at="model.projector"), h * merge * merge, h * merge * merge, out)
    patches = (
        *_packed(vision, "model.visual.vision_model", learned=rows),
        norm("model.projector.pre_norm", h, "layer"),
    )
    return with_vision(config, name, _vision(grid, patches, tokens), Language(default="paddleocr_vl_text", tied=True))


def read_kimi_k25(config: Config, name: str) -> Arch:
    """Kimi K2.5: MoonViT before DeepSeek-V3's shape."""
    vision = config.part("vision_config")
    h = vision.need("hidden_size")
    heads, ffn, layers = heads_of(vision, h), vision.need("intermediate_size"), vision.layers("num_hidden_layers")
    sides = vision.wholes("merge_kernel_size", low=1) or (2, 2)
    if len(sides) != 2 or sides[0] != sides[1]:
        vision.fault("unsupported", "squares of patches that are not square are not read", "merge_kernel_size")
    merge, at = sides[0], "model.vision_tower"
    grid = _bare_grid(config, vision, merge)
    rows = (vision.whole("pos_emb_height", default=64), vision.whole("pos_emb_width", default=64))
    layer = TowerLayer(
        hidden=h, heads=heads, ffn=ffn, names=AttentionNames(at="attn", o="proj"), norms=("norm1", "norm2")
    )
    patches: tuple[Node, ...] = (
        single_patch(f"{at}.patch_embed.proj", vision.whole("num_channels", default=3), h, patch_of(vision)),
        Embedding(name=f"{at}.patch_embed.pos_emb.position_embeddings", num=rows[0] * rows[1], dim=h, role="position"),
        *stack(f"{at}.layers", (0,) * layers, lambda _: layer.nodes()),
        norm(f"{at}.final_layernorm", h, "layer"),
        norm("model.mm_projector.pre_norm", h, "layer"),
    )
    wide = config.whole("projection_hidden_size", default=h) * merge * merge
    out = config.part("text_config").need("hidden_size")
    names = ("in_proj", "out_proj")
    tokens = projector(Projector(at="model.mm_projector", names=names), h * merge * merge, wide, out)
    return with_vision(config, name, _vision(grid, patches, tokens), Language(default="deepseek_v3", tied=True))


def read_lfm2_vl(config: Config, name: str) -> Arch:
    """LFM2-VL: SigLIP 2 with its pooling head, squares of patches, a norm, two matrices; one tile."""
    language = Language(default="lfm2", tied=True)
    vision = config.part("vision_config")
    h, patch = vision.need("hidden_size"), patch_of(vision)
    factor = config.whole("downsample_factor", default=2)
    grid = _bare_grid(config, vision, factor)
    at, pixels = "model.vision_tower", patch * patch * vision.whole("num_channels", default=3)
    made = Linear(
        name=f"{at}.embeddings.patch_embedding", in_features=pixels, out_features=h, bias=True, raw_input=True
    )
    # the table of positions is resized to the picture by a dense matrix: each patch mixes all its rows
    rows = vision.whole("num_patches", default=256)
    resized = Linear(name=f"{at}.embeddings.position_embedding", in_features=rows, out_features=h)
    packed = _packed(vision, at, learned=0)[1:]
    pooled = vision.flag("vision_use_head", default=True)
    head = pooling_head(f"{at}.head", h, heads_of(vision, h), vision.need("intermediate_size")) if pooled else ()
    inner = config.whole("projector_hidden_size", default=2560)
    spec = Projector(
        norm="layer_norm" if config.flag("projector_use_layernorm", default=True) else None,
        bias=config.flag("projector_bias", default=True),
    )
    tokens = projector(spec, h * factor * factor, inner, config.part("text_config").need("hidden_size"))
    return with_vision(config, name, _vision(grid, (made, resized, *packed, *head), tokens), language)


def read_minimax_m3(config: Config, name: str) -> Arch:
    """MiniMax M3: two matrices on patches, two more on squares of them."""
    vision = config.part("vision_config")
    h, merge = vision.need("hidden_size"), vision.whole("spatial_merge_size", default=2)
    grid = _bare_grid(config, vision, merge)
    layer = TowerLayer(hidden=h, heads=heads_of(vision, h), ffn=vision.need("intermediate_size"))
    at, layers = "model.vision_tower", vision.layers("num_hidden_layers")
    frames, channels = vision.whole("temporal_patch_size", default=2), vision.whole("num_channels", default=3)
    out = config.part("text_config").need("hidden_size")
    inner = config.whole("projector_hidden_size", default=out)
    place = "model.multi_modal_projector"
    patches = (
        cubes(f"{at}.embeddings.proj", channels, h, patch_of(vision), frames, bias=False),
        norm(f"{at}.pre_layrnorm", h, "layer"),
        *stack(f"{at}.layers", (0,) * layers, lambda _: layer.nodes()),
        *projector(Projector(at=place), h, inner, out),
    )
    names = ("merge_linear_1", "merge_linear_2")
    tokens = projector(Projector(at=place, names=names), out * merge * merge, inner, out)
    return with_vision(config, name, _vision(grid, patches, tokens), Language(default="minimax_m3_vl_text"))


def read_exaone4_5(config: Config, name: str) -> Arch:
    """EXAONE 4.5: Qwen2.5-VL's tower with grouped queries before EXAONE 4."""
    _, vision = windowed_tower(config, "model.visual")
    return with_vision(config, name, vision, Language(default="exaone4"))


FAMILIES = {
    "video_llama_3": read_video_llama3,
    "paddleocr_vl": read_paddleocr_vl,
    "kimi_k25": read_kimi_k25,
    "exaone4_5": read_exaone4_5,
    "lfm2_vl": read_lfm2_vl,
    "minimax_m3_vl": read_minimax_m3,
}
