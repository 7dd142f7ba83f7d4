"""Convolutional nets made to read text in pictures: PP-LCNet, TextNet, HGNet v2."""

from __future__ import annotations

from functools import partial
from typing import Any

from suanli.nouns.arch import Arch
from suanli.readers.config import Config, brief
from suanli.readers.hf.convnets import divisible, number
from suanli.readers.hf.encoders import refuse
from suanli.readers.hf.maps import Size, per_stage, start


def _rows(config: Config, key: str, length: int) -> list[list[list[int]]]:
    """A list a stage of lists of `length` numbers. A fault where it is none."""
    value: Any = config.values.get(key)
    try:
        rows = [[[int(item) for item in row] for row in stage] for stage in value]
    except (TypeError, ValueError):
        rows = []
    if not rows or not all(stage and all(len(row) == length and min(row) >= 0 for row in stage) for stage in rows):
        config.fault("bad_value", f"{key} is not a list a stage of lists of {length} numbers", key, got=brief(value))
        return []
    return rows


def read_pp_lcnet(config: Config, name: str) -> Arch:
    """PP-LCNet (arXiv:2109.15099): depthwise and pointwise pairs, squeeze and excitation near the end."""
    net, labels = start(config)
    stages, scale = _rows(config, "block_configs", 5), number(config, "scale", 1.0)
    divisor, reduction = config.whole("divisor", default=8), config.whole("reduction", default=4)
    stem, stride = config.whole("stem_channels", default=16), config.whole("stem_stride", default=2)
    last = config.whole("class_expand", default=1280)
    config.check()

    def layer(kernel: int, c_in: int, c_out: int, step: int, squeezed: int) -> None:
        net.channels = divisible(c_in * scale, divisor)
        net.conv_norm("depthwise_convolution", net.channels, kernel, step, groups=net.channels)
        if squeezed:
            at = "squeeze_excitation_module.convolutions"
            net.squeeze(f"{at}.0", f"{at}.2", net.channels // reduction)
        net.conv_norm("pointwise_convolution", divisible(c_out * scale, divisor), 1)

    net.conv_norm("encoder.convolution", divisible(stem * scale, divisor), 3, stride)
    for i, stage in enumerate(stages):
        for j, row in enumerate(stage):
            net.block(f"encoder.blocks.{i}.layers", partial(layer, *row), j)
    net.pool((1, 1))
    net.conv("last_convolution", last, 1)
    net.head("head", labels)
    return net.arch(name)


def read_textnet(config: Config, name: str) -> Arch:
    """TextNet: a kernel beside its column and its row, as it is trained."""
    net, labels = start(config, 640)
    stages = _rows(config, "conv_layer_kernel_sizes", 2)
    strides: Any = config.values.get("conv_layer_strides")
    widths = config.wholes("hidden_sizes", low=1) or ()
    lists = isinstance(strides, list | tuple) and all(isinstance(each, list | tuple) for each in strides)
    if not lists or [len(each) for each in strides] != [len(each) for each in stages]:
        config.fault("contradiction", "conv_layer_strides does not have one number a kernel", "conv_layer_strides")
    if len(widths) != len(stages) + 1:
        config.fault("contradiction", "hidden_sizes does not have one width more than stages", "hidden_sizes")
    kernel, stride = config.whole("stem_kernel_size", default=3), config.whole("stem_stride", default=2)
    stem = config.whole("stem_out_channels", default=64)
    config.check()
    assert isinstance(strides, list | tuple)

    def layer(window: Size, width: int, step: int) -> None:
        c_in, size = net.channels, net.size
        branches = [("main", window)]
        branches += [("vertical", (window[0], 1))] if window[1] != 1 else []
        branches += [("horizontal", (1, window[1]))] if window[0] != 1 else []
        for each, part in branches:
            net.channels, net.size = c_in, size
            pads = tuple((n - 1) // 2 for n in part)
            net.conv_norm("", width, part, step, padding=pads, at=(f"{each}_conv", f"{each}_batch_norm"))
        if c_in == width and step == 1:
            net.batch_norm("rbr_identity")

    net.conv_norm("textnet.stem", stem, kernel, stride, at=("conv", "batch_norm"))
    for i, (stage, steps, width) in enumerate(zip(stages, strides, widths[1:], strict=True)):
        for j, (window, step) in enumerate(zip(stage, steps, strict=True)):
            make = lambda w=tuple(window), c=width, s=step: layer(w, c, s)  # noqa: E731
            net.block(f"textnet.encoder.stages.{i}.stage", make, j)
    net.head("fc", labels)
    return net.arch(name)


def read_hgnet(config: Config, name: str) -> Arch:
    """HGNet v2: every block joins the outputs of its layers; light layers are pointwise, then depthwise."""
    net, labels = start(config)
    keys = ("stage_in_channels", "stage_mid_channels", "stage_out_channels", "stage_num_blocks",
            "stage_downsample_strides", "stage_kernel_size", "stage_numb_of_layers")  # fmt: skip
    lists = per_stage(config, *keys)
    flags = [config.values.get(f"stage_{each}") for each in ("downsample", "light_block")]
    if any(not isinstance(each, list | tuple) or len(each) != len(lists[0]) for each in flags):
        config.fault("contradiction", "stage_downsample and stage_light_block are not one flag a stage", keys[0])
    stem, steps = config.wholes("stem_channels", low=1) or (), config.wholes("stem_strides", low=1) or ()
    if len(stem) != 3 or len(steps) != 5:
        config.fault("bad_value", "stem_channels and stem_strides are not three and five numbers", "stem_channels")
    refuse(config, ("use_learnable_affine_block", True, "learned affine blocks are not read"))
    config.check()

    def layers(count: int, middle: int, kernel: int, light: bool) -> None:
        for i in range(count):
            if light:
                net.conv_norm(f"layers.{i}.conv1", middle, 1)
                net.conv_norm(f"layers.{i}.conv2", middle, kernel, groups=middle, padding=(kernel - 1) // 2)
            else:
                net.conv_norm(f"layers.{i}", middle, kernel, padding=(kernel - 1) // 2)

    def block(c_in: int, middle: int, c_out: int, count: int, kernel: int, light: bool) -> None:
        net.channels = c_in
        layers(count, middle, kernel, light)
        net.channels = c_in + count * middle
        net.conv_norm("aggregation.0", c_out // 2, 1)
        net.conv_norm("aggregation.1", c_out, 1)

    at, one = "embedder", stem[1]
    net.conv_norm(f"{at}.stem1", one, 3, steps[0])
    wide = tuple(each + 1 for each in net.size)
    for name_, width, step in (("stem2a", one // 2, steps[1]), ("stem2b", one, steps[2])):
        net.size = wide if name_ == "stem2a" else tuple(each + 1 for each in net.size)
        net.conv_norm(f"{at}.{name_}", width, 2, step, padding=0)
    net.channels = 2 * one
    net.conv_norm(f"{at}.stem3", one, 3, steps[3])
    net.conv_norm(f"{at}.stem4", stem[2], 1, steps[4])
    for i, row in enumerate(zip(*lists, *flags, strict=True)):
        c_in, middle, c_out, blocks, stride, kernel, count, down, light = row
        net.channels = c_in
        if down:
            net.conv_norm(f"encoder.stages.{i}.downsample", c_in, 3, stride, groups=c_in)
        make = lambda first, a=c_in, m=middle, c=c_out, n=count, k=kernel, g=light: block(  # noqa: E731
            a if first else c, m, c, n, k, g
        )
        net.stage(f"encoder.stages.{i}.blocks", blocks, make)
    net.head("fc", labels)
    return net.arch(name)


FAMILIES = {"pp_lcnet": read_pp_lcnet, "textnet": read_textnet, "hgnet_v2": read_hgnet}
