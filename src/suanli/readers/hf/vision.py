"""Vision transformers and CLIP: patches are positions, the picture's size fixes how many."""

from __future__ import annotations

from typing import Any

from suanli.nouns.arch import SAMPLE, TOKENS, Arch, Module, Shape, Stream
from suanli.nouns.layers import Conv, Embedding, Linear, Parameter, Similarity
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, dropped, mlp, norm, stack
from suanli.readers.config import Config, StandIn

PATCHES = "patches"


def image_size(config: Config, default: int = 224) -> tuple[int, int]:
    """Height and width: one number or a pair."""
    value: Any = config.raw("image_size")
    if isinstance(value, list | tuple) and len(value) == 2:
        found = config.wholes("image_size", low=1, high=100_000) or (1, 1)
        return found[0], found[1]
    side = config.whole("image_size", default=default, high=100_000)
    return side, side


def patch_grid(config: Config, patch: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The picture, and its patches in height and width."""
    size = image_size(config)
    if min(size) < patch:
        config.fault(
            "contradiction",
            "the patch is larger than the picture",
            "patch_size",
            got=f"{patch}, picture {size[0]}x{size[1]}",
        )
    return size, (max(1, size[0] // patch), max(1, size[1] // patch))


def vit_layer(
    h: int, heads: int, ffn: int, *, names: AttentionNames, norms: tuple[str, str], mask: str = "full"
) -> tuple[Node, ...]:
    """Pre-norm layer with biased projections."""
    spec = AttentionSpec(
        hidden=h,
        heads=heads,
        kv_heads=heads,
        head_dim=max(1, h // heads),
        names=names,
        qkv_bias=True,
        o_bias=True,
        mask=mask,
    )
    return (
        norm(norms[0], h, "layer"),
        *attention(spec),
        norm(norms[1], h, "layer"),
        *mlp(h, ffn, names=("fc1", "fc2"), bias=True),
    )


def _patch_conv(
    name: str, channels: int, h: int, patch: int, size: tuple[int, int], grid: tuple[int, int], bias: bool
) -> Module:
    conv = Conv(
        name=name,
        in_channels=channels,
        out_channels=h,
        kernel=(patch, patch),
        in_size=size,
        out_size=grid,
        bias=bias,
        raw_input=True,
    )
    return Module(name="", stream=SAMPLE, children=(conv,))


def heads_of(config: Config, hidden: int) -> int:
    """Heads, which must divide the width."""
    heads = config.need("num_attention_heads", high=1_000_000)
    if hidden % heads and not isinstance(hidden, StandIn):
        config.fault(
            "contradiction", "the number of heads does not divide the width", "num_attention_heads",
            got=f"{heads} heads, width {hidden}",
        )  # fmt: skip
    return heads


def read_vit(config: Config, name: str) -> Arch:
    """ViT with its classifier on the class token."""
    h = config.need("hidden_size")
    heads, layers, ffn = (
        heads_of(config, h),
        config.layers("num_hidden_layers"),
        config.need("intermediate_size"),
    )
    patch, channels = (
        config.whole("patch_size", default=16, high=100_000),
        config.whole("num_channels", default=3),
    )
    size, grid = patch_grid(config, patch)
    labels = config.maybe("num_labels") or labels_of(config) or 2
    config.check()
    positions = grid[0] * grid[1] + 1
    children: tuple[Node, ...] = (
        Parameter(name="vit.embeddings.cls_token", shape=(1, 1, h)),
        Parameter(name="vit.embeddings.position_embeddings", shape=(1, positions, h)),
        _patch_conv("vit.embeddings.patch_embeddings.projection", channels, h, patch, size, grid, True),
        *dropped("vit.embeddings.dropout", h),
        *stack(
            "vit.layers",
            (0,) * layers,
            lambda _: vit_layer(
                h,
                heads,
                ffn,
                names=AttentionNames(at="attention"),
                norms=("layernorm_before", "layernorm_after"),
            ),
        ),
        norm("vit.layernorm", h, "layer"),
        Module(
            name="",
            stream=SAMPLE,
            children=(Linear(name="classifier", in_features=h, out_features=labels, bias=True),),
        ),
    )
    return Arch(
        name=name,
        root=Module(name="", children=children),
        streams=(Stream(name=PATCHES, length=positions),),
        main_stream=PATCHES,
        shape=Shape(
            num_layers=layers,
            hidden=h,
            heads=heads,
            kv_heads=heads,
            head_dim=h // heads,
            ffn=ffn,
            vocab=labels,
        ),
        max_positions=positions,
        task="image-classification",
        unit="patch",
        notes=(f"picture {size[0]}x{size[1]}: {positions} positions with the class token",),
    )


def labels_of(config: Config) -> int | None:
    """Classes, from the mapping a config may carry in place of a number."""
    for key in ("id2label", "label2id"):
        value = config.values.get(key)
        if isinstance(value, dict) and value:
            return len(value)
    return None


def _tower(prefix: str, h: int, heads: int, ffn: int, layers: int, mask: str) -> tuple[Node, ...]:
    return stack(
        f"{prefix}.encoder.layers",
        (0,) * layers,
        lambda _: vit_layer(
            h, heads, ffn, names=AttentionNames(o="out_proj"), norms=("layer_norm1", "layer_norm2"), mask=mask
        ),
    )


def read_clip(config: Config, name: str) -> Arch:
    """CLIP: a causal text tower of --seq tokens and a picture tower, each projected once a sample."""
    text, picture = config.part("text_config"), config.part("vision_config")
    out = config.whole("projection_dim", default=512)
    h, v = text.need("hidden_size"), picture.need("hidden_size")
    text_heads, heads = heads_of(text, h), heads_of(picture, v)
    patch = picture.need("patch_size", high=100_000)
    size, grid = patch_grid(picture, patch)
    vocab, rows = text.whole("vocab_size", default=49408), text.whole("max_position_embeddings", default=77)
    text_ffn, ffn = text.need("intermediate_size"), picture.need("intermediate_size")
    text_layers, layers = text.layers("num_hidden_layers"), picture.layers("num_hidden_layers")
    channels = picture.whole("num_channels", default=3)
    config.check()
    positions = grid[0] * grid[1] + 1
    words = (
        Embedding(name="text_model.embeddings.token_embedding", num=vocab, dim=h),
        Embedding(name="text_model.embeddings.position_embedding", num=rows, dim=h, role="position"),
        *_tower("text_model", h, text_heads, text_ffn, text_layers, "causal"),
        norm("text_model.final_layer_norm", h, "layer"),
    )
    pixels = (
        Parameter(name="vision_model.embeddings.class_embedding", shape=(v,)),
        _patch_conv("vision_model.embeddings.patch_embedding", channels, v, patch, size, grid, False),
        Embedding(name="vision_model.embeddings.position_embedding", num=positions, dim=v, role="position"),
        norm("vision_model.pre_layrnorm", v, "layer"),
        *_tower("vision_model", v, heads, ffn, layers, "full"),
    )
    joined = (
        norm("vision_model.post_layernorm", v, "layer"),
        Linear(name="visual_projection", in_features=v, out_features=out),
        Linear(name="text_projection", in_features=h, out_features=out),
        Parameter(name="logit_scale", shape=()),
        Similarity(name="logits", dim=out),
    )
    return Arch(
        name=name,
        root=Module(
            name="",
            children=(
                *words,
                Module(name="", stream=PATCHES, children=pixels),
                Module(name="", stream=SAMPLE, children=joined),
            ),
        ),
        streams=(Stream(name=TOKENS), Stream(name=PATCHES, length=positions)),
        shape=Shape(
            num_layers=text_layers, hidden=h, heads=text_heads, kv_heads=text_heads, head_dim=h // text_heads,
            ffn=text_ffn, vocab=vocab,
        ),
        max_positions=rows,
        task="contrastive",
        notes=(f"one text of --seq tokens with one picture {size[0]}x{size[1]} ({positions} positions)",),
    )  # fmt: skip


FAMILIES = {"vit": read_vit, "clip": read_clip}
