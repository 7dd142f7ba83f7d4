"""Nets in stages: Swin with its windows, PVT and SegFormer with fewer keys, ConvNeXt, PoolFormer."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from suanli.nouns.arch import Arch, Module, Stream
from suanli.nouns.layers import Parameter
from suanli.readers.blocks import AttentionNames, Node
from suanli.readers.config import Config
from suanli.readers.hf.encoders import refuse
from suanli.readers.hf.maps import Net, attend, linear, per_stage, plain_norm, start

# --- ConvNeXt, PoolFormer -----------------------------------------------------------------------------------------


def read_convnext(config: Config, name: str) -> Arch:
    """ConvNeXt (arXiv:2201.03545): depthwise 7×7, then an MLP on each position; version 2 has a response norm."""
    base = str(config.values["model_type"])
    net, labels = start(config)
    widths, depths = per_stage(config, "hidden_sizes", "depths")
    patch = config.whole("patch_size", default=4, high=10_000)
    value = config.values.get("layer_scale_init_value", 0)
    scaled = base == "convnext" and isinstance(value, int | float) and value > 0
    config.check()
    at = f"{base}.encoder.stages"
    net.conv(f"{base}.embeddings.patch_embeddings", widths[0], patch, patch, padding=0, bias=True)
    net.norm(f"{base}.embeddings.layernorm")

    def layer(_: bool) -> None:
        width = net.channels
        net.conv("dwconv", width, 7, groups=width, bias=True)
        net.norm("layernorm")
        net.over(linear("pwconv1", width, 4 * width))
        if base == "convnextv2":
            net.add(Parameter(name="grn", shape=(2, 4 * width)))
        net.over(linear("pwconv2", 4 * width, width))
        if scaled:
            net.scale("layer_scale_parameter")

    for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        if i:
            net.norm(f"{at}.{i}.downsampling_layer.0")
            net.conv(f"{at}.{i}.downsampling_layer.1", width, 2, 2, padding=0, bias=True)
        net.stage(f"{at}.{i}.layers", depth, layer)
    net.norm(f"{base}.layernorm")
    net.head("classifier", labels)
    return net.arch(name)


def read_poolformer(config: Config, name: str) -> Arch:
    """PoolFormer (arXiv:2111.11418): pooling in place of attention."""
    net, labels = start(config)
    widths, depths, sizes, strides = per_stage(config, "hidden_sizes", "depths", "patch_sizes", "strides")
    paddings = config.wholes("padding") or ()
    ratio, scaled = config.whole("mlp_ratio", default=4), config.flag("use_layer_scale", default=True)
    if len(paddings) != len(widths):
        config.fault("contradiction", "padding is not a list of one number a stage", "padding")
    config.check()

    def layer(_: bool) -> None:
        width = net.channels
        for each in ("before_norm", "after_norm"):
            net.norm(each)
        net.conv("output.conv1", ratio * width, 1, bias=True)
        net.conv("output.conv2", width, 1, bias=True)
        if scaled:
            net.scale("layer_scale_1")
            net.scale("layer_scale_2")

    for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        at = f"poolformer.encoder.patch_embeddings.{i}.projection"
        net.conv(at, width, sizes[i], strides[i], padding=paddings[i], bias=True)
        net.stage(f"poolformer.encoder.block.{i}", depth, layer)
    net.norm("norm")
    net.head("classifier", labels)
    return net.arch(name)


# --- Swin ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Swin:
    """Where a family of Swin keeps its parts. Version 2 makes its biases by a small MLP and norms what it merges."""

    base: str
    names: AttentionNames
    mlp: tuple[str, str]
    table: str | None = None
    last_norm: bool = True


_OLD = AttentionNames(at="attention", q="self.query", k="self.key", v="self.value", o="output.dense")
SWINS = {
    "swin": Swin(
        base="swin", names=AttentionNames(at="attention"), mlp=("mlp.fc1", "mlp.fc2"),
        table="attention.relative_position_bias.relative_position_bias_table",
    ),
    "donut-swin": Swin(
        base="donut", names=_OLD, mlp=("intermediate.dense", "output.dense"),
        table="attention.self.relative_position_bias_table", last_norm=False,
    ),
    "swinv2": Swin(base="swinv2", names=_OLD, mlp=("intermediate.dense", "output.dense")),
}  # fmt: skip
BIAS_WIDTH = 512  # of the MLP that makes Swin v2's position biases, arXiv:2111.09883 §3.3


def _bias_mlp(net: Net, heads: int, window: int) -> tuple[Node, ...]:
    """Position biases of version 2, made once for the batch from the (2w−1)² differences in a window."""
    at, span = "attention.self.continuous_position_bias_mlp", 2 * window - 1
    stream = f"differences {span}x{span}"
    net.streams[stream] = Stream(name=stream, length=span * span, once=True)
    made = (linear(f"{at}.0", 2, BIAS_WIDTH), linear(f"{at}.2", BIAS_WIDTH, heads, bias=False))
    return (
        Parameter(name="attention.self.logit_scale", shape=(heads, 1, 1)),
        Module(name="", stream=stream, children=made),
    )


def _swin_block(net: Net, family: Swin, heads: int, window: int, ffn: int, bias: bool) -> None:
    """Attention within windows of a map padded to whole windows; the MLP sees the map itself."""
    h, names, at = net.channels, family.names, family.names.at
    padded = tuple(-(-each // window) * window for each in net.size)
    if family.table:
        net.add(Parameter(name=family.table, shape=((2 * window - 1) ** 2, heads)))
    else:
        net.add(*_bias_mlp(net, heads, window))
    net.norm("layernorm_before")
    net.over(
        linear(f"{at}.{names.q}", h, h, bias=bias),
        linear(f"{at}.{names.k}", h, h, bias=bias and family.table is not None),
        linear(f"{at}.{names.v}", h, h, bias=bias),
        attend(f"{at}.attention", heads, h, keys=window * window),
        linear(f"{at}.{names.o}", h, h),
        size=padded,
    )
    net.norm("layernorm_after")
    net.mlp(*family.mlp, ffn)


def read_swin(config: Config, name: str) -> Arch:
    """Swin (arXiv:2103.14030, version 2 arXiv:2111.09883) with its classifier."""
    family = SWINS[str(config.values["model_type"])]
    net, labels = start(config)
    depths, all_heads = per_stage(config, "depths", "num_heads")
    patch, width = config.need("patch_size", high=10_000), config.need("embed_dim")
    window, ratio = config.need("window_size", high=10_000), config.whole("mlp_ratio", default=4)
    bias, placed = config.flag("qkv_bias", default=True), config.flag("use_absolute_embeddings", default=False)
    for i, heads in enumerate(all_heads):
        if width * 2**i % heads:
            config.fault("contradiction", "the heads of a stage do not divide its width", "num_heads")
    size = tuple(-(-each // patch) for each in net.size)
    if all_heads and min(size) < window * 2 ** (len(all_heads) - 1):
        config.fault("unsupported", "a last map smaller than the window is not read by formula", "image_size")
    config.check()
    base, at = family.base, f"{family.base}.encoder.layers"
    net.conv(f"{base}.embeddings.patch_embeddings.projection", width, patch, patch, bias=True, out=size)
    net.norm(f"{base}.embeddings.norm")
    if placed:
        net.add(Parameter(name=f"{base}.embeddings.position_embeddings", shape=(1, prod(size), width)))
    for i, (depth, heads) in enumerate(zip(depths, all_heads, strict=True)):
        make = lambda _, n=heads: _swin_block(net, family, n, window, ratio * net.channels, bias)  # noqa: E731
        net.stage(f"{at}.{i}.blocks", depth, make)
        if i < len(depths) - 1:
            h = net.channels
            halved = tuple(-(-each // 2) for each in net.size)
            net.add(plain_norm(f"{at}.{i}.downsample.norm", 2 * h if base == "swinv2" else 4 * h))
            net.over(linear(f"{at}.{i}.downsample.reduction", 4 * h, 2 * h, bias=False), size=halved)
            net.channels, net.size = 2 * h, halved
    if family.last_norm:
        net.norm(f"{base}.layernorm")
    net.head("classifier", labels)
    return net.arch(name)


# --- PVT, SegFormer -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Pyramid:
    """Where a pyramid keeps its parts. PVT v1 has learned positions and a class token in its last stage."""

    patches: str
    patch_norm: str
    layers: str
    stage_norm: str | None
    norms: tuple[str, str]
    names: AttentionNames
    reduction: str
    reduction_norm: str
    mlp: tuple[str, str]
    depthwise: str | None
    ratios: str = "sr_ratios"
    biased_key: str | None = "qkv_bias"
    tokens: bool = False
    half_padded: bool = True
    last_norm: str | None = None


PYRAMIDS = {
    "pvt": Pyramid(
        patches="pvt.encoder.patch_embeddings.{}.projection", patch_norm="pvt.encoder.patch_embeddings.{}.layer_norm",
        layers="pvt.encoder.block.{}", stage_norm=None, norms=("layer_norm_1", "layer_norm_2"),
        names=AttentionNames(at="attention", q="self.query", k="self.key", v="self.value", o="output.dense"),
        reduction="self.sequence_reduction", reduction_norm="self.layer_norm", mlp=("mlp.dense1", "mlp.dense2"),
        depthwise=None, ratios="sequence_reduction_ratios", tokens=True, half_padded=False,
        last_norm="pvt.encoder.layer_norm",
    ),
    "pvt_v2": Pyramid(
        patches="pvt_v2.encoder.layers.{}.patch_embedding.proj",
        patch_norm="pvt_v2.encoder.layers.{}.patch_embedding.layer_norm", layers="pvt_v2.encoder.layers.{}.blocks",
        stage_norm="pvt_v2.encoder.layers.{}.layer_norm", norms=("layer_norm_1", "layer_norm_2"),
        names=AttentionNames(at="attention", q="query", k="key", v="value", o="proj"), reduction="spatial_reduction",
        reduction_norm="layer_norm", mlp=("mlp.dense1", "mlp.dense2"), depthwise="mlp.dwconv.dwconv",
    ),
    "segformer": Pyramid(
        patches="segformer.stages.{}.patch_embeddings.proj",
        patch_norm="segformer.stages.{}.patch_embeddings.layer_norm", layers="segformer.stages.{}.blocks",
        stage_norm="segformer.stages.{}.layer_norm", norms=("layernorm_before", "layernorm_after"),
        names=AttentionNames(at="attention"), reduction="sequence_reduction.sequence_reduction",
        reduction_norm="sequence_reduction.layer_norm", mlp=("mlp.fc1", "mlp.fc2"), depthwise="mlp.dwconv.dwconv",
        biased_key=None,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Reach:
    """Heads, reduction ratio and MLP ratio of a stage; `more` is 1 where a class token goes along."""

    heads: int
    reduce: int
    ratio: int
    more: int


def _pyramid_block(net: Net, family: Pyramid, reach: Reach, bias: bool) -> None:
    h, names, more = net.channels, family.names, reach.more
    at, size = names.at, net.size
    net.norm(family.norms[0])
    net.over(linear(f"{at}.{names.q}", h, h, bias=bias), more=more)
    kept = (linear(f"{at}.{names.k}", h, h, bias=bias), linear(f"{at}.{names.v}", h, h, bias=bias))
    if reach.reduce > 1:
        net.conv(f"{at}.{family.reduction}", h, reach.reduce, reach.reduce, padding=0, bias=True)
        net.norm(f"{at}.{family.reduction_norm}")
    fewer, net.size = net.size, size
    net.over(*kept, size=fewer, more=more)
    core = attend(f"{at}.attention", reach.heads, h, key_stream=net.stream(fewer, more))
    net.over(core, linear(f"{at}.{names.o}", h, h), more=more)
    net.norm(family.norms[1])
    net.over(linear(family.mlp[0], h, reach.ratio * h), more=more)
    if family.depthwise:
        net.channels = reach.ratio * h
        net.conv(family.depthwise, net.channels, 3, groups=net.channels, bias=True)
        net.channels = h
    net.over(linear(family.mlp[1], reach.ratio * h, h), more=more)


def read_pyramid(config: Config, name: str) -> Arch:
    """PVT (arXiv:2102.12122), PVT v2 (arXiv:2106.13797) or SegFormer (arXiv:2105.15203) with its classifier."""
    family = PYRAMIDS[str(config.values["model_type"])]
    net, labels = start(config)
    lists = ("depths", "hidden_sizes", "patch_sizes", "strides", "num_attention_heads", "mlp_ratios", family.ratios)
    depths, widths, patches, strides, heads, ratios, reductions = per_stage(config, *lists)
    bias = config.flag(family.biased_key, default=True) if family.biased_key else True
    refuse(config, ("linear_attention", True, "linear attention is not read"))
    for n, width in zip(heads, widths, strict=True):
        if width % n:
            config.fault("contradiction", "the heads of a stage do not divide its width", "num_attention_heads")
    config.check()
    for i, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        padding = patches[i] // 2 if family.half_padded else 0
        last = family.tokens and i == len(depths) - 1
        net.conv(family.patches.format(i), width, patches[i], strides[i], padding=padding, bias=True)
        net.norm(family.patch_norm.format(i))
        if family.tokens:
            at, rows = f"pvt.encoder.patch_embeddings.{i}", prod(net.size) + int(last)
            net.add(Parameter(name=f"{at}.position_embeddings", shape=(1, rows, width)))
            net.add(*((Parameter(name=f"{at}.cls_token", shape=(1, 1, width)),) if last else ()))
        reach = Reach(heads[i], reductions[i], ratios[i], int(last))
        net.stage(family.layers.format(i), depth, lambda _, r=reach: _pyramid_block(net, family, r, bias))  # type: ignore[misc]
        if family.stage_norm:
            net.norm(family.stage_norm.format(i))
    if family.last_norm:
        net.norm(family.last_norm)
    net.head("classifier", labels)
    return net.arch(name)


FAMILIES = {
    "convnext": read_convnext,
    "convnextv2": read_convnext,
    "poolformer": read_poolformer,
    **dict.fromkeys(SWINS, read_swin),
    **dict.fromkeys(PYRAMIDS, read_pyramid),
}
