"""Convolutional nets by their config: RegNet, BiT, MobileNets, EfficientNet, FocalNet."""

from __future__ import annotations

import math
from typing import Any

from suanli.nouns.arch import Arch
from suanli.readers.config import Config, brief
from suanli.readers.hf.maps import Net, Size, linear, per_stage, start
from suanli.readers.hf.resnet import conv_out


def number(config: Config, key: str, default: float) -> float:
    """A positive number, whole or not; a bad one is a fault."""
    value = config.values.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1000:
        config.fault("bad_value", f"{key} is not possible", key, got=brief(value), expected="a positive number")
        return default
    return float(value)


def halves(size: Size, stride: int) -> Size:
    """A map padded as TensorFlow pads: as many positions as steps, rounded up."""
    return tuple(-(-each // stride) for each in size)


def divisible(value: float, divisor: int, low: int | None = None) -> int:
    """A width rounded to a multiple of `divisor`, never more than a tenth below `value` (arXiv:1801.04381)."""
    rounded = max(divisor if low is None else low, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


# --- RegNet, BiT --------------------------------------------------------------------------------------------------


def read_regnet(config: Config, name: str) -> Arch:
    """RegNet X and Y (arXiv:2003.13678): grouped bottlenecks of one width, Y with squeeze and excitation."""
    net, labels = start(config)
    widths, depths = per_stage(config, "hidden_sizes", "depths")
    stem, group = config.whole("embedding_size", default=32), config.whole("groups_width", default=64)
    squeezed = config.choice("layer_type", ("x", "y"), "y") == "y"
    first_halves = config.flag("downsample_in_first_stage", default=True)
    for width in widths:
        if width % max(1, width // group):
            config.fault("contradiction", "groups_width does not divide a stage", "groups_width", got=str(group))
    config.check()
    net.conv_norm("regnet.embedder.embedder", stem, 3, 2)

    def layer(width: int, stride: int) -> None:
        c_in, size = net.channels, net.size
        if c_in != width or stride != 1:
            net.conv_norm("shortcut", width, 1, stride)
            net.channels, net.size = c_in, size
        net.conv_norm("layer.0", width, 1)
        net.conv_norm("layer.1", width, 3, stride, groups=max(1, width // group))
        if squeezed:
            net.squeeze("layer.2.attention.0", "layer.2.attention.2", round(c_in / 4))
        net.conv_norm("layer.3" if squeezed else "layer.2", width, 1)

    for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        stride = 2 if i or first_halves else 1
        make = lambda first, w=width, s=stride: layer(w, s if first else 1)  # noqa: E731
        net.stage(f"regnet.encoder.stages.{i}.layers", depth, make)
    net.head("classifier.1", labels)
    return net.arch(name)


def read_bit(config: Config, name: str) -> Arch:
    """BiT (arXiv:1912.11370): ResNet v2 with group norms and standardised weights."""
    net, labels = start(config)
    widths, depths = per_stage(config, "hidden_sizes", "depths")
    stem = config.whole("embedding_size", default=64)
    if config.whole("width_factor", default=1) != 1:
        config.fault("unsupported", "a net wider than its classifier is not read", "width_factor")
    before = config.choice("layer_type", ("preactivation", "bottleneck"), "preactivation") == "preactivation"
    padding = str(config.values.get("global_padding") or "").lower()
    if padding not in ("", "same"):
        config.fault("unsupported", "this padding is not read", "global_padding", got=padding)
    dynamic = config.flag("embedding_dynamic_padding", default=False)
    limit = config.whole("output_stride", default=32)
    config.check()
    same = padding == "same"

    def conv(at: str, width: int, kernel: int, stride: int = 1) -> None:
        pads = (stride - 1 + kernel - 1) // 2
        net.conv(at, width, kernel, stride, padding=pads, out=halves(net.size, stride) if same else None)

    def layer(width: int, stride: int, first: bool) -> None:
        c_in, size, middle = net.channels, net.size, divisible(width / 4, 8)
        if first:
            conv("downsample.conv", width, 1, stride)
            if not before:
                net.norm("downsample.norm")
            net.channels, net.size = c_in, size
        for i, (out, kernel, step) in enumerate(((middle, 1, 1), (middle, 3, stride), (width, 1, 1)), 1):
            if before:
                net.norm(f"norm{i}")
            conv(f"conv{i}", out, kernel, step)
            if not before:
                net.norm(f"norm{i}")

    conv("bit.embedder.convolution", stem, 7, 2)
    if not before:
        net.norm("bit.embedder.norm")
    padded = net.size if same else tuple(each + 2 for each in net.size)
    net.pool(halves(padded, 2) if dynamic else conv_out(padded, 3, 2, 0))
    reached = 4
    for i, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        stride = 1 if i == 0 or reached >= limit else 2
        if i and reached >= limit:
            config.fault("unsupported", "dilated stages are not read", "output_stride")
            config.check()
        reached *= stride
        wide = divisible(width, 8)
        make = lambda first, w=wide, s=stride: layer(w, s if first else 1, first)  # noqa: E731
        net.stage(f"bit.encoder.stages.{i}.layers", depth, make)
    if before:
        net.norm("bit.norm")
    net.head("classifier.1", labels)
    return net.arch(name)


# --- MobileNets, EfficientNet -------------------------------------------------------------------------------------

V1_STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)
V2_WIDTHS = (16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320)
V2_STRIDES = (2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1)


def _mobile(config: Config) -> tuple[Net, int, Any]:
    """A net, its classes, and its convolution: padded as TensorFlow pads, or by half the kernel."""
    net, labels = start(config)
    tf = config.flag("tf_padding", default=True)

    def conv(at: str, width: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        out = halves(net.size, stride) if tf else None
        net.conv_norm(at, width, kernel, stride, groups=groups, out=out)

    return net, labels, conv


def read_mobilenet_v1(config: Config, name: str) -> Arch:
    """MobileNet (arXiv:1704.04861): thirteen pairs of depthwise and pointwise convolutions."""
    net, labels, conv = _mobile(config)
    factor, low = number(config, "depth_multiplier", 1.0), config.whole("min_depth", default=8)
    config.check()
    depth = 32
    conv("mobilenet_v1.conv_stem", max(int(depth * factor), low), 3, 2)
    for i, stride in enumerate(V1_STRIDES):
        if stride == 2 or i == 0:
            depth *= 2
        at = "mobilenet_v1.layer"
        conv(f"{at}.{2 * i}", net.channels, 3, stride, net.channels)
        conv(f"{at}.{2 * i + 1}", max(int(depth * factor), low), 1)
    net.head("classifier", labels)
    return net.arch(name)


def read_mobilenet_v2(config: Config, name: str) -> Arch:
    """MobileNet v2 (arXiv:1801.04381): inverted residuals; past `output_stride` kernels are dilated, not strided."""
    net, labels, conv = _mobile(config)
    factor, ratio = number(config, "depth_multiplier", 1.0), number(config, "expand_ratio", 6.0)
    divisor, low = config.whole("depth_divisible_by", default=8), config.whole("min_depth", default=8)
    limit = config.whole("output_stride", default=32)
    plain = config.flag("first_layer_is_expansion", default=True)
    fine = config.flag("finegrained_output", default=True)
    config.check()

    def wide(value: float) -> int:
        return divisible(round(value), divisor, low)

    stem, reached = "mobilenet_v2.conv_stem", 2
    conv(f"{stem}.first_conv", wide(32 * factor), 3, 2)
    if not plain:
        conv(f"{stem}.expand_1x1", net.channels, 1)
    conv(f"{stem}.conv_3x3", net.channels, 3, 1, net.channels)
    conv(f"{stem}.reduce_1x1", wide(V2_WIDTHS[0] * factor), 1)
    for i, (width, stride) in enumerate(zip(V2_WIDTHS[1:], V2_STRIDES, strict=True)):
        step = 1 if reached == limit else stride
        reached *= step
        at = f"mobilenet_v2.layer.{i}"
        conv(f"{at}.expand_1x1", wide(net.channels * ratio), 1)
        conv(f"{at}.conv_3x3", net.channels, 3, step, net.channels)
        conv(f"{at}.reduce_1x1", wide(width * factor), 1)
    conv("mobilenet_v2.conv_1x1", 1280 if fine and factor < 1 else wide(1280 * factor), 1)
    net.head("classifier", labels)
    return net.arch(name)


def read_efficientnet(config: Config, name: str) -> Arch:
    """EfficientNet (arXiv:1905.11946): widths and depths of seven stages scaled by two coefficients."""
    net, labels = start(config, 600)
    keys = ("in_channels", "out_channels", "kernel_sizes", "strides", "num_block_repeats", "expand_ratios")
    c_ins, c_outs, kernels, strides, repeats, ratios = per_stage(config, *keys)
    wider, deeper = number(config, "width_coefficient", 2.0), number(config, "depth_coefficient", 3.1)
    divisor, squeezed = config.whole("depth_divisor", default=8), number(config, "squeeze_expansion_ratio", 0.25)
    top = config.whole("hidden_dim", default=2560)
    odd = set(config.wholes("depthwise_padding") or ())
    config.check()

    def wide(value: int) -> int:
        return divisible(value * wider, divisor)

    def depthwise(kernel: int, stride: int, adjust: bool) -> None:
        pads = kernel - 2 if adjust else kernel - 1  # both sides together: one less at the start where adjusted
        pads += kernel % 2 == 0
        out = net.size if stride != 2 else tuple((each + pads - kernel) // 2 + 1 for each in net.size)
        at = ("depthwise_conv", "depthwise_norm")
        net.conv_norm("depthwise_conv", net.channels, kernel, stride, groups=net.channels, out=out, at=at)

    def block(c_out: int, kernel: int, stride: int, ratio: int, adjust: bool) -> None:
        c_in = net.channels
        if ratio != 1:
            net.conv_norm("expansion", c_in * ratio, 1, at=("expand_conv", "expand_bn"))
        depthwise(kernel, stride, adjust)
        net.squeeze("squeeze_excite.reduce", "squeeze_excite.expand", max(1, int(c_in * squeezed)))
        net.conv_norm("projection", c_out, 1, at=("project_conv", "project_bn"))

    at = "efficientnet.embeddings"
    stem = tuple((each + 1 - 3) // 2 + 1 for each in net.size)
    net.conv_norm(at, wide(32), 3, 2, at=("convolution", "batchnorm"), out=stem)
    index = 0
    for c_in, c_out, kernel, stride, repeat, ratio in zip(
        c_ins, c_outs, kernels, strides, repeats, ratios, strict=True
    ):
        net.channels = wide(c_in)
        for j in range(math.ceil(deeper * repeat)):
            step, adjust = stride if j == 0 else 1, index not in odd
            width = wide(c_out)
            make = lambda c=width, k=kernel, s=step, r=ratio, a=adjust: block(c, k, s, r, a)  # noqa: E731
            net.block("efficientnet.encoder.blocks", make, index)
            index += 1
    net.conv_norm("efficientnet.encoder", wide(1280), 1, at=("top_conv", "top_bn"))
    if net.channels != top:
        config.fault("contradiction", "hidden_dim is not the width of the last convolution", "hidden_dim")
        config.check()
    net.head("classifier", labels)
    return net.arch(name)


# --- FocalNet --------------------------------------------------------------------------------------------------------


def read_focalnet(config: Config, name: str) -> Arch:
    """FocalNet (arXiv:2203.11926): context from depthwise convolutions of growing size in place of attention."""
    net, labels = start(config)
    depths, levels, windows = per_stage(config, "depths", "focal_levels", "focal_windows")
    width, patch = config.need("embed_dim"), config.need("patch_size", high=10_000)
    overlapping = config.flag("use_conv_embed", default=False)
    normed = config.flag("use_post_layernorm_in_modulation", default=False)
    scaled, ratio = config.flag("use_layerscale", default=False), number(config, "mlp_ratio", 4.0)
    config.check()

    def embed(at: str, c_out: int, kernel: int, first: bool) -> None:
        if overlapping:
            net.conv(at, c_out, 7 if first else 3, 4 if first else 2, padding=2 if first else 1, bias=True)
        else:
            net.conv(at, c_out, kernel, kernel, bias=True, out=halves(net.size, kernel))

    def layer(level: int, window: int) -> None:
        h, at = net.channels, "modulation"
        net.norm("norm1")
        net.over(linear(f"{at}.projection_in", h, 2 * h + level + 1))
        for k in range(level):
            net.conv(f"{at}.focal_layers.{k}.0", h, 2 * k + window, groups=h)
        net.conv(f"{at}.projection_context", h, 1, bias=True)
        if normed:
            net.norm(f"{at}.layernorm")
        net.over(linear(f"{at}.projection_out", h, h))
        net.norm("norm2")
        net.mlp("mlp.fc1", "mlp.fc2", int(h * ratio))
        if scaled:
            net.scale("gamma_1")
            net.scale("gamma_2")

    base = "focalnet.embeddings"
    embed(f"{base}.patch_embeddings.projection", width, patch, True)
    net.norm(f"{base}.norm")
    for i, (depth, level, window) in enumerate(zip(depths, levels, windows, strict=True)):
        make = lambda _, n=level, w=window: layer(n, w)  # noqa: E731
        net.stage(f"focalnet.encoder.stages.{i}.layers", depth, make)
        if i < len(depths) - 1:
            at = f"focalnet.encoder.stages.{i}.downsample"
            embed(f"{at}.projection", 2 * net.channels, 2, False)
            net.norm(f"{at}.norm")
    net.norm("focalnet.layernorm")
    net.head("classifier", labels)
    return net.arch(name)


FAMILIES = {
    "regnet": read_regnet,
    "bit": read_bit,
    "mobilenet_v1": read_mobilenet_v1,
    "mobilenet_v2": read_mobilenet_v2,
    "efficientnet": read_efficientnet,
    "focalnet": read_focalnet,
}
