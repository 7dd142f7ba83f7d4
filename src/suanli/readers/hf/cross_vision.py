"""Llama 3.2 Vision: a picture's tiles are never among the tokens; some layers of the decoder look across at them."""

from __future__ import annotations

from dataclasses import replace

from suanli.nouns.arch import TOKENS, Arch, Module, Stream
from suanli.nouns.layers import Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, mlp, norm
from suanli.readers.config import Config
from suanli.readers.decoder import DecoderNames, DecoderSpec, decoder
from suanli.readers.hf.common import read_widths
from suanli.readers.hf.towers import (
    PATCHES,
    TILES,
    TowerLayer,
    grid_of,
    heads_of,
    patch_conv,
    patch_of,
    refuse_picture,
    tile_size,
    tower_stack,
)

CROSSED, PADDED_TO, NEW_WORDS = "picture's states", 8, 8


def _tower(vision: Config, at: str) -> tuple[tuple[Node, ...], tuple[Stream, ...], str]:
    """Tiles side by side in one sequence, each padded to a multiple of eight; two stacks, the second gated."""
    h, tiles = vision.need("hidden_size"), vision.need("max_num_tiles")
    heads, ffn = heads_of(vision, h, "attention_heads", "num_attention_heads"), vision.need("intermediate_size")
    patch, size = patch_of(vision), tile_size(vision)
    grid = grid_of(vision, size, patch)
    rows = grid[0] * grid[1] + 1
    shapes = vision.raw("supported_aspect_ratios")
    ratios = vision.maybe("max_aspect_ratio_id") or (len(shapes) if isinstance(shapes, list | tuple) else 8)
    layer = TowerLayer(
        hidden=h, heads=heads, ffn=ffn, names=AttentionNames(), norms=("input_layernorm", "post_attention_layernorm"),
        qkv_bias=False, o_bias=False,
    )  # fmt: skip
    gated = replace(layer, scales=("gate_attn", "gate_ffn"), scale_width=1)
    place = f"{at}.gated_positional_embedding"
    conv = patch_conv(
        f"{at}.patch_embedding", vision.whole("num_channels", default=3), h, patch, size, grid, bias=False
    )

    def shaped(name: str) -> tuple[Node, ...]:
        return (
            Parameter(name=f"{at}.{name}.gate", shape=(1,)),
            Embedding(name=f"{at}.{name}.embedding", num=ratios + 1, dim=tiles * h, role="position"),
        )

    nodes = (
        Module(name="", stream=TILES, children=(conv,)),
        Parameter(name=f"{at}.class_embedding", shape=(h,)),
        *shaped("pre_tile_positional_embedding"),
        Parameter(name=f"{place}.gate", shape=(1,)),
        Embedding(name=f"{place}.embedding", num=rows, dim=h, role="position"),
        Embedding(name=f"{place}.tile_embedding", num=ratios + 1, dim=tiles * rows * h, role="position"),
        norm(f"{at}.layernorm_pre", h, "layer"),
        *tower_stack(f"{at}.transformer.layers", vision.layers("num_hidden_layers"), layer),
        norm(f"{at}.layernorm_post", h, "layer"),
        *shaped("post_tile_positional_embedding"),
        *tower_stack(f"{at}.global_transformer.layers", vision.layers("num_global_layers"), gated),
    )
    padded = -(-rows // PADDED_TO) * PADDED_TO
    streams = (
        Stream(name=TILES, length=tiles),
        Stream(name=PATCHES, length=tiles * padded),
        Stream(name=CROSSED, length=tiles * rows),
    )
    note = f"one picture in {tiles} tiles of {size[0]}x{size[1]} ({tiles * padded:,} positions, padding among them)"
    return nodes, streams, note


def _decoder(text: Config, name: str, *, tied: bool) -> Arch:
    """Llama 3.1's layers, and between them those that look at the picture instead of at the text."""
    widths = read_widths(text)
    crossing = frozenset(text.wholes("cross_attention_layers") or ())
    text.check()
    h = widths.hidden
    norms = (norm("input_layernorm", h), norm("post_attention_layernorm", h))

    def layer(crosses: bool) -> tuple[Node, ...]:
        spec = AttentionSpec(
            hidden=h, heads=widths.heads, kv_heads=widths.kv_heads, head_dim=h // widths.heads,
            names=AttentionNames(at="cross_attn" if crosses else "self_attn"), qk_norm="head" if crosses else None,
            key_stream=CROSSED if crosses else None, key_width=h if crosses else None,
            mask="full" if crosses else "causal",
        )  # fmt: skip
        gates = tuple(
            Parameter(name=gate, shape=(1,)) for gate in ("cross_attn_attn_gate", "cross_attn_mlp_gate") if crosses
        )
        return (norms[0], *attention(spec), norms[1], *mlp(h, widths.ffn), *gates)

    at = "model.language_model"
    spec = DecoderSpec(
        shape=widths.shape(gated=True), kinds=tuple(i in crossing for i in range(widths.layers)), make=layer,
        names=DecoderNames(embed=f"{at}.embed_tokens", layers=f"{at}.layers", norm=f"{at}.norm"), tied=tied,
        max_positions=widths.max_positions,
    )  # fmt: skip
    arch = decoder(name, spec)
    # the table holds the picture's words too, which are never said
    children = tuple(
        replace(child, num=child.num + NEW_WORDS) if isinstance(child, Embedding) else child
        for child in arch.root.children
    )
    return replace(arch, root=replace(arch.root, children=children))


def read_mllama(config: Config, name: str) -> Arch:
    """Llama 3.2 Vision: tower, one matrix, a decoder with crossing layers."""
    vision = config.part("vision_config")
    nodes, streams, note = _tower(vision, "model.vision_model")
    if config.has("image_size"):
        refuse_picture(config, tile_size(vision))
    text = config.part("text_config")
    width = vision.need("vision_output_dim")
    tied = text.flag("tie_word_embeddings", default=False)
    arch = _decoder(text, name, tied=tied)
    joined = Linear(
        name="model.multi_modal_projector", in_features=width, out_features=text.need("hidden_size"), bias=True
    )
    before = (
        Module(name="", stream=PATCHES, children=nodes),
        Module(name="", stream=CROSSED, children=(joined,)),
    )
    return replace(
        arch,
        root=Module(name="", children=(*before, *arch.root.children)),
        streams=(Stream(name=TOKENS, decodes=True), *streams),
        task="image-text-to-text",
        notes=(f"{note}; the decoder's positions are the --seq tokens of text",),
    )


FAMILIES = {"mllama": read_mllama}
