"""GLM's towers for pictures of any size: GLM-4.1V to 4.6V, and GLM-OCR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from suanli.nouns.arch import Arch
from suanli.nouns.layers import Conv, Embedding, Linear
from suanli.readers.blocks import Node, norm
from suanli.readers.config import Config
from suanli.readers.hf.composed import Language, with_vision
from suanli.readers.hf.native_vision import FUSED, read_blocks, seen_in_blocks
from suanli.readers.hf.towers import TowerLayer, Vision


@dataclass(frozen=True, kw_only=True)
class GlmTraits:
    """Where the GLM-V towers differ."""

    ffn: str = "out_hidden_size"
    positions: bool = True
    first_norm: bool = True
    qk_norm: str | None = None
    merger_ffn: Callable[[Config], int] = field(default=lambda vision: vision.need("intermediate_size"))
    mlp_bias: Callable[[Config], bool] = field(default=lambda _: False)


def glm_tower(config: Config, at: str, traits: GlmTraits) -> Vision:
    """GLM-4.1V's tower: RMS norms, gated MLP, a convolution that merges squares, a gated merger."""
    vision = config.part("vision_config")
    blocks = read_blocks(config, at, conv_bias=True)
    h, out = blocks.hidden, blocks.out
    biased = vision.flag("attention_bias", default=False)
    layer = TowerLayer(
        hidden=h, heads=blocks.heads, ffn=vision.need(traits.ffn), names=FUSED, norms=("norm1", "norm2"),
        norm_kind="rms", mlp_names=("gate_proj", "up_proj", "down_proj"), mlp_bias=traits.mlp_bias(vision),
        qkv_bias=biased, o_bias=biased, qk_norm=traits.qk_norm,
    )  # fmt: skip
    learned: tuple[Node, ...] = ()
    if traits.positions:
        rows = (vision.need("image_size", high=100_000) // blocks.patch) ** 2
        learned = (Embedding(name=f"{at}.embeddings.position_embedding", num=rows, dim=h, role="position"),)
    first = (norm(f"{at}.post_conv_layernorm", h),) if traits.first_norm else ()
    square = (blocks.merge, blocks.merge)
    down = Conv(
        name=f"{at}.downsample", in_channels=h, out_channels=out, kernel=square, in_size=square, out_size=(1, 1)
    )
    merger, inner = f"{at}.merger", traits.merger_ffn(vision)
    merged = (
        down,
        Linear(name=f"{merger}.proj", in_features=out, out_features=out),
        norm(f"{merger}.post_projection_norm", out, "layer"),
        Linear(name=f"{merger}.gate_proj", in_features=out, out_features=inner),
        Linear(name=f"{merger}.up_proj", in_features=out, out_features=inner, shares_input=True),
        Linear(name=f"{merger}.down_proj", in_features=inner, out_features=out),
    )
    return seen_in_blocks(blocks, (*first, *learned, *blocks.stack(layer), norm(f"{at}.post_layernorm", h)), merged)


def read_glm4v(config: Config, name: str) -> Arch:
    """GLM-4.1V, GLM-4.6V-Flash."""
    return with_vision(config, name, glm_tower(config, "model.visual", GlmTraits()), Language(default="glm4v_text"))


def read_glm4v_moe(config: Config, name: str) -> Arch:
    """GLM-4.5V: the same tower before a mixture."""
    return with_vision(config, name, glm_tower(config, "model.visual", GlmTraits()), Language(default="glm4v_moe_text"))


def read_glm_ocr(config: Config, name: str) -> Arch:
    """GLM-OCR: biases, norms of queries and keys, no learned positions."""
    traits = GlmTraits(
        ffn="intermediate_size", positions=False, first_norm=False, qk_norm="head",
        merger_ffn=lambda vision: vision.need("out_hidden_size") * vision.whole("in_channels", default=3),
        mlp_bias=lambda vision: vision.flag("attention_bias", default=True),
    )  # fmt: skip
    language = Language(default="glm_ocr_text", more={"attention_bias": False})
    return with_vision(config, name, glm_tower(config, "model.visual", traits), language)


FAMILIES = {
    "glm4v": read_glm4v,
    "glm46v": read_glm4v,
    "glmga": read_glm4v,
    "glm4v_moe": read_glm4v_moe,
    "glm_ocr": read_glm_ocr,
}
