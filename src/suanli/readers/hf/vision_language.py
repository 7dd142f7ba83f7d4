"""Pictures before a decoder, towers of fixed size: LLaVA and what follows its plan (tower, projector, decoder)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isqrt

from suanli.nouns.arch import Arch, Module, Stream
from suanli.nouns.layers import Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, Node, norm
from suanli.readers.config import Config
from suanli.readers.hf.anyres import Pinpoints
from suanli.readers.hf.composed import Language, Projector, image_stream, of_image, projector, with_vision
from suanli.readers.hf.native_vision import pixtral_tower
from suanli.readers.hf.towers import (
    Tower,
    TowerLayer,
    Vision,
    clip_tower,
    grid_of,
    heads_of,
    in_patches,
    of_picture,
    patch_conv,
    patch_of,
    refuse_picture,
    siglip_tower,
    tile_size,
    tower_stack,
)
from suanli.readers.hf.vision import image_size

TOWER = "model.vision_tower"
TOWERS: dict[str, Callable[[Config, str], Tower]] = {
    "clip_vision_model": clip_tower,
    "siglip_vision_model": siglip_tower,
}


def fixed_tower(config: Config, default: str, at: str = TOWER, known: tuple[str, ...] = tuple(TOWERS)) -> Tower:
    """The tower the nested description names, for pictures of the size it takes."""
    vision = config.part("vision_config")
    tower = TOWERS[vision.choice("model_type", known, default)](vision, at)
    refuse_picture(config, tower.size)
    return tower


def said(tower: Tower) -> str:
    """The picture and the tower's positions, in words."""
    tiles = "" if tower.tiles == 1 else f" in {tower.tiles} tiles"
    return f"one picture {tower.size[0]}x{tower.size[1]}{tiles} ({tower.positions:,} positions)"


def seen_by(tower: Tower, nodes: tuple[Node, ...], tokens: int, *, more: tuple[Node, ...] = ()) -> Vision:
    """A tower with a projector that makes `tokens` of every tile; with none, a tower that sees nothing.

    Some descriptions (transformers' own defaults among them) cannot take a picture of the size they name: their
    weights are held, no picture is counted, and it is said.
    """
    if not tokens:
        return _blind(tower, (*tower.nodes, *nodes, *more))
    return Vision(
        nodes=(*tower.nodes, of_image(*nodes), *more),
        streams=(*tower.streams, image_stream(tokens, tower.tiles)),
        tokens=tokens * tower.tiles,
        note=said(tower),
    )


def _blind(tower: Tower, nodes: tuple[Node, ...]) -> Vision:
    size = f"{tower.size[0]}x{tower.size[1]}"
    note = f"pictures of {size} cannot be cut into tokens as the description says, so none is counted"
    streams = (*tower.streams, image_stream(0), Stream(name=IDLE, length=0))
    return Vision(nodes=(idle(*nodes),), streams=streams, tokens=0, note=note)


def mutual(vision: Vision) -> Vision:
    """The same where the picture's tokens see one another: what is ahead is in convention full, not in causal."""
    ahead = "whose tokens see one another; pairs that look ahead are charged by convention full alone"
    return replace(vision, note=f"{vision.note}, {ahead}") if vision.tokens else vision


def text_width(config: Config, language: Language) -> int:
    """Width of the decoder, to which the projector goes."""
    return config.part(language.part).need("hidden_size", "n_embd", "d_model")


def feature_layers(config: Config, default: int = 1) -> int:
    """How many layers' outputs the projector reads side by side."""
    value = config.raw("vision_feature_layer")
    if isinstance(value, list | tuple):
        return len(config.wholes("vision_feature_layer", low=-100_000) or (0,))
    return default if value is None else 1


def kept_positions(config: Config, tower: Tower, default: str = "default") -> int:
    """Positions the projector reads: all, or all but the first."""
    strategy = config.choice("vision_feature_select_strategy", ("default", "full"), default)
    return tower.positions - (strategy == "default")


# --- LLaVA --------------------------------------------------------------------------------------------------------


def _llava_projector(config: Config, tower: Tower, language: Language) -> tuple[Node, ...]:
    out = text_width(config, language)
    biased = config.flag("multimodal_projector_bias", default=True)
    return projector(Projector(bias=biased), tower.width * feature_layers(config), out, out)


def read_llava(config: Config, name: str) -> Arch:
    """LLaVA 1.5: CLIP's patches through two matrices; with a Pixtral tower, pictures of any size."""
    language = Language()
    if config.part("vision_config").values.get("model_type") == "pixtral":
        tower = pixtral_tower(config, config.part("vision_config"), TOWER)
    else:
        tower = fixed_tower(config, "clip_vision_model")
    tokens = kept_positions(config, tower)
    return with_vision(config, name, seen_by(tower, _llava_projector(config, tower, language), tokens), language)


def read_vipllava(config: Config, name: str) -> Arch:
    """ViP-LLaVA: several layers of the tower side by side, normed, through two matrices."""
    language = Language()
    tower = fixed_tower(config, "clip_vision_model", known=("clip_vision_model",))
    out = text_width(config, language)
    nodes = projector(Projector(norm="projector_layernorm"), tower.width * feature_layers(config, 5), out, out)
    return with_vision(config, name, seen_by(tower, nodes, tower.positions - 1), language)


def read_video_llava(config: Config, name: str) -> Arch:
    """Video-LLaVA on one picture: its tower for videos is held and does not run."""
    language = Language()
    tower = fixed_tower(config, "clip_vision_model", "model.image_tower")
    video = fixed_tower(config, "clip_vision_model", "model.video_tower")
    idle = tuple(unused(node) for node in video.nodes)
    nodes = _llava_projector(config, tower, language)
    found = seen_by(tower, nodes, kept_positions(config, tower), more=idle)
    return with_vision(config, name, with_idle(found), language)


IDLE = "not run"


def unused(node: Node) -> Node:
    """A part that a picture does not pass through: held, and run on no position."""
    if not isinstance(node, Module):
        return node
    children = tuple(unused(child) for child in node.children)
    return replace(node, stream=None if node.stream is None else IDLE, children=children)


def idle(*nodes: Node) -> Module:
    """Parts that a picture does not pass through."""
    return Module(name="", stream=IDLE, children=tuple(unused(node) for node in nodes))


def with_idle(vision: Vision) -> Vision:
    """The same with a stream of no positions for the parts that do not run."""
    return replace(vision, streams=(*vision.streams, Stream(name=IDLE, length=0)))


def _tiled(config: Config, name: str, language: Language, *, onevision: bool = False) -> Arch:
    """LLaVA-NeXT's plan: the whole picture and its tiles, each through the tower, rows ended by a newline."""
    tower = _tile_tower(config, "siglip_vision_model" if onevision else "clip_vision_model")
    size = image_size(config) if config.has("image_size") else tower.size
    points = Pinpoints.read(config, tower.size[0])
    nodes = _llava_projector(config, tower, language)
    newline = Parameter(name="model.image_newline", shape=(text_width(config, language),))
    config.check()
    tower = tower.retiled(points.tiles(size))
    each = kept_positions(config, tower, "full" if onevision else "default")
    vision = seen_by(tower, (newline, *nodes), each)
    shape = points.unpadded(size, tower.grid[0], points.largest(config) if onevision else None)
    tokens = each + shape[0] * (shape[1] + 1)
    note = f"one picture {size[0]}x{size[1]} in {tower.tiles} tiles of {tower.size[0]}x{tower.size[1]}"
    return with_vision(config, name, replace(vision, tokens=tokens, note=note), language)


def _tile_tower(config: Config, default: str) -> Tower:
    """The tower of a tile, square, whatever the size of the picture."""
    vision = config.part("vision_config")
    tower = TOWERS[vision.choice("model_type", tuple(TOWERS), default)](vision, TOWER)
    if tower.size[0] != tower.size[1]:
        vision.fault("unsupported", "tiles that are not square are not read", "image_size")
    return tower


def read_llava_next(config: Config, name: str) -> Arch:
    """LLaVA-NeXT, and its video model on one picture."""
    return _tiled(config, name, Language())


def read_llava_onevision(config: Config, name: str) -> Arch:
    """LLaVA-OneVision: as LLaVA-NeXT with SigLIP, shrunk where there would be too many tokens."""
    return _tiled(config, name, Language(default="qwen2"), onevision=True)


# --- SigLIP before Gemma, Command, DeepSeek -----------------------------------------------------------------------


def read_paligemma(config: Config, name: str) -> Arch:
    """PaliGemma 1 and 2: one matrix."""
    language = Language(default="gemma", tied=True)
    tower = fixed_tower(config, "siglip_vision_model")
    out = text_width(config, language)
    if config.part("vision_config").whole("projection_dim", default=out) != out:
        config.fault("contradiction", "the projection does not end at the decoder's width", "vision_config")
    nodes = (Linear(name="model.multi_modal_projector.linear", in_features=tower.width, out_features=out, bias=True),)
    return with_vision(config, name, mutual(seen_by(tower, nodes, tower.positions)), language)


def read_gemma3(config: Config, name: str) -> Arch:
    """Gemma 3: patches averaged to 256 tokens, a norm, one matrix."""
    language = Language(default="gemma3_text", tied=True)
    tower = fixed_tower(config, "siglip_vision_model")
    side = isqrt(config.whole("mm_tokens_per_image", default=256))
    pooled = tower.grid[0] // (tower.grid[0] // side) if side <= tower.grid[0] else 0
    at, out = "model.multi_modal_projector", text_width(config, language)
    nodes = (
        norm(f"{at}.mm_soft_emb_norm", tower.width),
        Linear(name=f"{at}.mm_input_projection_weight", in_features=tower.width, out_features=out),
    )
    return with_vision(config, name, mutual(seen_by(tower, nodes, pooled * pooled)), language)


def shuffled(tower: Tower, factor: int) -> int:
    """Tokens left where squares of `factor` patches become one; none where they are no whole number."""
    return 0 if any(side % factor for side in tower.grid) else tower.patches // (factor * factor)


def read_aya_vision(config: Config, name: str) -> Arch:
    """Aya Vision: squares of patches, a norm, a gated matrix and another; one tile."""
    return _shuffled_gate(config, name, Projector(norm="layernorm", halved=True))


def read_cohere2_vision(config: Config, name: str) -> Arch:
    """Command A Vision: as Aya Vision without the norm; one tile."""
    return _shuffled_gate(config, name, Projector(halved=True))


def _shuffled_gate(config: Config, name: str, spec: Projector) -> Arch:
    language = Language(default="cohere2", tied=True)
    tower = fixed_tower(config, "siglip_vision_model")
    factor = config.whole("downsample_factor", default=2)
    out = text_width(config, language)
    nodes = projector(
        spec, tower.width * factor * factor, config.whole("alignment_intermediate_size", default=out), out
    )
    return with_vision(config, name, seen_by(tower, nodes, shuffled(tower, factor)), language)


def read_deepseek_vl(config: Config, name: str) -> Arch:
    """DeepSeek-VL 1.3B: SigLIP and two matrices."""
    language = Language(tied=True)
    tower = fixed_tower(config, "siglip_vision_model", "model.vision_model")
    out = text_width(config, language)
    nodes = projector(Projector(at="model.aligner", names=("linear1", "linear2")), tower.width, out, out)
    return with_vision(config, name, seen_by(tower, nodes, tower.positions), language)


# --- InternVL -----------------------------------------------------------------------------------------------------


def internvl_tower(vision: Config, at: str, layers_at: str = "encoder.layer") -> Tower:
    """InternViT: class token, layer scales, norms of queries and keys where switched on."""
    h = vision.need("hidden_size")
    heads, ffn, layers = heads_of(vision, h), vision.need("intermediate_size"), vision.layers("num_hidden_layers")
    patch, size = patch_of(vision), tile_size(vision)
    grid = grid_of(vision, size, patch)
    kind = {"layer_norm": "layer", "rms_norm": "rms"}[
        vision.choice("norm_type", ("layer_norm", "rms_norm"), "layer_norm")
    ]
    layer = TowerLayer(
        hidden=h, heads=heads, ffn=ffn, names=AttentionNames(at="attention", o="projection_layer"), norm_kind=kind,
        norms=("layernorm_before", "layernorm_after"), qkv_bias=vision.flag("attention_bias", default=False),
        qk_norm="full" if vision.flag("use_qk_norm", default=False) else None, scales=("lambda_1", "lambda_2"),
    )  # fmt: skip
    conv = patch_conv(
        f"{at}.embeddings.patch_embeddings.projection", vision.whole("num_channels", default=3), h, patch, size, grid,
        bias=True,
    )  # fmt: skip
    positions = grid[0] * grid[1] + 1
    learned: list[Node] = [Parameter(name=f"{at}.embeddings.cls_token", shape=(1, 1, h))]
    if vision.flag("use_mask_token", default=False):
        learned.append(Parameter(name=f"{at}.embeddings.mask_token", shape=(1, 1, h)))
    if vision.flag("use_absolute_position_embeddings", default=True):
        learned.append(Embedding(name=f"{at}.embeddings.position_embeddings", num=positions, dim=h, role="position"))
    last = () if vision.flag("use_mean_pooling", default=True) else (norm(f"{at}.layernorm", h, "layer"),)
    nodes = (of_picture(conv), *learned, *tower_stack(f"{at}.{layers_at}", layers, layer), *last)
    return Tower(nodes=(in_patches(nodes),), width=h, grid=grid, size=size, positions=positions)


def read_internvl(config: Config, name: str) -> Arch:
    """InternVL 2.5 and 3: squares of patches, a norm, two matrices; one tile."""
    return _internvl(config, name, Language(default="qwen2", tied=True), "encoder.layer")


def read_qianfan_ocr(config: Config, name: str) -> Arch:
    """Qianfan-OCR: as InternVL before Qwen3."""
    return _internvl(config, name, Language(default="qwen3"), "layers")


def _internvl(config: Config, name: str, language: Language, layers_at: str) -> Arch:
    tower = internvl_tower(config.part("vision_config"), TOWER, layers_at)
    refuse_picture(config, tower.size)
    ratio = config.raw("downsample_ratio")
    factor = round(1 / ratio) if isinstance(ratio, int | float) and 0 < ratio <= 1 else 2
    out = text_width(config, language)
    nodes = projector(Projector(norm="layer_norm"), tower.width * factor * factor, out, out)
    tokens = shuffled(tower, factor)
    return with_vision(config, name, seen_by(tower, nodes, tokens), language)


FAMILIES = {
    "llava": read_llava,
    "vipllava": read_vipllava,
    "video_llava": read_video_llava,
    "llava_next": read_llava_next,
    "llava_next_video": read_llava_next,
    "llava_onevision": read_llava_onevision,
    "paligemma": read_paligemma,
    "gemma3": read_gemma3,
    "shieldgemma2": read_gemma3,
    "aya_vision": read_aya_vision,
    "cohere2_vision": read_cohere2_vision,
    "deepseek_vl": read_deepseek_vl,
    "internvl": read_internvl,
    "qianfan_ocr": read_qianfan_ocr,
}
