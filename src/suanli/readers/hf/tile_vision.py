"""One tile whose patches are merged by squares: Idefics 3, SmolVLM, Llama 4, Ovis 2; and Fuyu's bare patches."""

from __future__ import annotations

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, Node, norm
from suanli.readers.config import Config, StandIn
from suanli.readers.hf.composed import Language, Projector, image_stream, of_image, projector, with_vision
from suanli.readers.hf.towers import (
    Tower,
    TowerLayer,
    Vision,
    grid_of,
    heads_of,
    in_patches,
    of_picture,
    patch_conv,
    patch_of,
    picture,
    refuse_picture,
    siglip_tower,
    tile_size,
    tower_stack,
)
from suanli.readers.hf.vision_language import seen_by, shuffled, text_width


def read_idefics3(config: Config, name: str) -> Arch:
    """Idefics 3 and SmolVLM: SigLIP without its head, squares of patches through one matrix; one tile."""
    language = Language(at="model.text_model")
    tower = siglip_tower(config.part("vision_config"), "model.vision_model", head=False)
    refuse_picture(config, tower.size)
    factor = config.whole("scale_factor", default=2)
    nodes = (
        Linear(
            name="model.connector.modality_projection.proj", in_features=tower.width * factor * factor,
            out_features=text_width(config, language),
        ),
    )  # fmt: skip
    tokens = shuffled(tower, factor)
    return with_vision(config, name, seen_by(tower, nodes, tokens), language)


def _llama4_tower(vision: Config, at: str) -> Tower:
    """Llama 4's tower: a class token at the end, rotary and learned positions."""
    h = vision.need("hidden_size")
    heads, ffn, layers = heads_of(vision, h), vision.need("intermediate_size"), vision.layers("num_hidden_layers")
    patch, size = patch_of(vision), tile_size(vision)
    grid = grid_of(vision, size, patch)
    positions = grid[0] * grid[1] + 1
    layer = TowerLayer(
        hidden=h, heads=heads, ffn=ffn, names=AttentionNames(), norms=("input_layernorm", "post_attention_layernorm")
    )
    channels = vision.whole("num_channels", default=3)
    conv = patch_conv(f"{at}.patch_embedding.linear", channels, h, patch, size, grid, bias=False)
    nodes: tuple[Node, ...] = (
        of_picture(conv),
        Parameter(name=f"{at}.class_embedding", shape=(h,)),
        Embedding(name=f"{at}.positional_embedding_vlm", num=positions, dim=h, role="position"),
        norm(f"{at}.layernorm_pre", h, "layer"),
        *tower_stack(f"{at}.model.layers", layers, layer),
        norm(f"{at}.layernorm_post", h, "layer"),
    )
    return Tower(nodes=(in_patches(nodes),), width=h, grid=grid, size=size, positions=positions)


def read_llama4(config: Config, name: str) -> Arch:
    """Llama 4 with its tower: squares of patches through two matrices and a third; one tile."""
    language = Language(default="llama4_text", at="language_model", nested=True)
    vision = config.part("vision_config")
    tower = _llama4_tower(vision, "vision_model")
    refuse_picture(config, tower.size)
    ratio = vision.raw("pixel_shuffle_ratio")
    factor = round(1 / ratio) if isinstance(ratio, int | float) and 0 < ratio <= 1 else 2
    inner = vision.whole("projector_input_dim", default=4096)
    out = vision.whole("projector_output_dim", default=inner)
    ffn, width = vision.need("intermediate_size"), vision.need("vision_output_dim")
    if inner != out and not isinstance(inner, StandIn):
        vision.fault("contradiction", "the projector's widths differ", "projector_output_dim", got=f"{inner}, {out}")
    adapter = Projector(at="vision_model.vision_adapter.mlp", names=("fc1", "fc2"), bias=False)
    last = Linear(name="multi_modal_projector.linear_1", in_features=width, out_features=text_width(config, language))
    nodes = (*projector(adapter, ffn, inner, out), last)
    tokens = shuffled(tower, factor)
    return with_vision(config, name, seen_by(tower, nodes, tokens), language)


def read_ovis2(config: Config, name: str) -> Arch:
    """Ovis 2: patches become weights over a visual vocabulary, whose table they then multiply."""
    language = Language(default="qwen2", tied=True)
    vision = config.part("vision_config")
    h = vision.need("hidden_size")
    heads, ffn, layers = heads_of(vision, h), vision.need("intermediate_size"), vision.layers("num_hidden_layers")
    patch, size = patch_of(vision), tile_size(vision)
    refuse_picture(config, size)
    grid = grid_of(vision, size, patch)
    at, rows = "model.vision_tower", grid[0] * grid[1]
    biased = vision.flag("qkv_bias", default=False)
    layer = TowerLayer(
        hidden=h, heads=heads, ffn=ffn, names=AttentionNames(at="attention", o="out_proj"),
        norms=("rms_norm1", "rms_norm2"), norm_kind="rms", mlp_at="ffn", qkv_bias=biased, o_bias=biased,
        mlp_names=("gate_proj", "up_proj", "down_proj"), mlp_bias=vision.flag("mlp_bias", default=False),
    )  # fmt: skip
    channels = vision.whole("num_channels", default=3)
    conv = patch_conv(f"{at}.transformer.embeddings.patch_embedding", channels, h, patch, size, grid, bias=True)
    patches: tuple[Node, ...] = (
        of_picture(conv),
        norm(f"{at}.transformer.embeddings.rms_norm", h),
        Embedding(name=f"{at}.transformer.embeddings.position_embedding", num=rows, dim=h, role="position"),
        *tower_stack(f"{at}.transformer.encoder.layers", layers, layer),
        norm(f"{at}.transformer.rms_norm", h),
    )
    stride, words = vision.whole("hidden_stride", default=1), vision.need("vocab_size")
    indicators = vision.whole("num_visual_indicator_tokens", default=5, low=0)
    width = config.whole("hidden_size", default=config.part("text_config").need("hidden_size"))
    named = max(1, words - indicators)
    nodes = (
        Linear(name=f"{at}.head_linear", in_features=h * stride * stride, out_features=named),
        norm(f"{at}.head_norm", named, "layer"),
        Linear(name="model.visual_embeddings_table", in_features=words, out_features=width),
    )
    tower = Tower(nodes=(in_patches(patches),), width=h, grid=grid, size=size, positions=rows)
    tokens = shuffled(tower, stride)
    return with_vision(config, name, seen_by(tower, nodes, tokens), language)


def read_fuyu(config: Config, name: str) -> Arch:
    """Fuyu: no tower; a matrix makes each patch a token. A newline token ends each row."""
    language = Language(default="persimmon")
    patch = patch_of(config)
    size = picture(config, config, patch)
    rows, columns = max(1, size[0] // patch), max(1, size[1] // patch)
    pixels = patch * patch * config.whole("num_channels", default=3)
    out = text_width(config, language)
    made = Linear(name="model.vision_embed_tokens", in_features=pixels, out_features=out, bias=True, raw_input=True)
    vision = Vision(
        nodes=(of_image(made),), streams=(image_stream(rows * columns),), tokens=rows * columns,
        note=f"one picture {size[0]}x{size[1]}, the newline after each row of patches among the text",
    )  # fmt: skip
    return with_vision(config, name, vision, language)


FAMILIES = {
    "idefics3": read_idefics3,
    "smolvlm": read_idefics3,
    "llama4": read_llama4,
    "ovis2": read_ovis2,
    "fuyu": read_fuyu,
}
