"""ResNets by their config: depths and widths of four stages, stride in the 3×3 or, as in the paper, in the 1×1."""

from __future__ import annotations

from suanli.nouns.arch import SAMPLE, Arch, Module
from suanli.nouns.layers import Buffer, Conv, Elementwise, Linear
from suanli.readers.blocks import Node, norm
from suanli.readers.config import Config
from suanli.readers.hf.vision import image_size, labels_of

Size = tuple[int, ...]

MAX_STAGES = 100


def conv_out(size: Size, kernel: int, stride: int, padding: int) -> Size:
    """Spatial size after a convolution or pooling window."""
    return tuple((n + 2 * padding - kernel) // stride + 1 for n in size)


def _conv_norm(
    name: str, c_in: int, c_out: int, kernel: int, stride: int, size: Size, act: bool
) -> tuple[tuple[Node, ...], Size]:
    """Convolution without bias, batch norm, optional ReLU; and the size it leaves."""
    out = conv_out(size, kernel, stride, kernel // 2)
    area = out[0] * out[1]
    conv = Conv(
        name=f"{name}.convolution", in_channels=c_in, out_channels=c_out, kernel=(kernel, kernel), in_size=size,
        out_size=out, bias=False,
    )  # fmt: skip
    nodes: tuple[Node, ...] = (
        conv,
        norm(f"{name}.normalization", c_out, "layer", per=area),
        Buffer(name=f"{name}.normalization.running", shape=(2 * c_out + 1,)),
    )
    if act:
        nodes = (
            *nodes,
            Elementwise(name=f"{name}.act", op="activation", width=c_out * area, saved=c_out * area),
        )
    return nodes, out


def read_resnet(config: Config, name: str) -> Arch:
    """ResNet with its classifier on a picture of `image_size` (224×224 unless given)."""
    depths = config.wholes("depths", low=1, high=10_000) or (3, 4, 6, 3)
    widths = config.wholes("hidden_sizes", low=1) or (256, 512, 1024, 2048)
    if max(len(depths), len(widths)) > MAX_STAGES:
        config.fault("bad_value", "too many stages", "depths", got=str(len(depths)), expected=f"at most {MAX_STAGES}")
    if len(depths) != len(widths):
        config.fault(
            "contradiction",
            "depths and hidden_sizes differ in length",
            "depths",
            got=f"{len(depths)} and {len(widths)}",
        )
    bottleneck = config.choice("layer_type", ("basic", "bottleneck"), "bottleneck") == "bottleneck"
    first_stride_in_1x1 = config.flag("downsample_in_bottleneck", default=False)
    downsample_first = config.flag("downsample_in_first_stage", default=False)
    stem = config.whole("embedding_size", default=64)
    labels = config.maybe("num_labels") or labels_of(config) or 2
    size: Size = image_size(config)
    config.check()
    nodes, size = _conv_norm(
        "resnet.embedder.embedder", config.whole("num_channels", default=3), stem, 7, 2, size, True
    )
    pooled = conv_out(size, 3, 2, 1)
    children: list[Node] = [
        *nodes,
        Elementwise(name="resnet.embedder.pooler", op="pooling", width=stem * pooled[0] * pooled[1]),
    ]
    size, c_in = pooled, stem
    for stage, (depth, c_out) in enumerate(zip(depths, widths, strict=True)):
        stride = 2 if stage or downsample_first else 1
        at = f"resnet.encoder.stages.{stage}.layers"
        make = _bottleneck if bottleneck else _basic
        block, size = make(c_in, c_out, stride, size, first_stride_in_1x1)
        children.append(Module(name=at, indices=range(1), children=block, block=True))
        if depth > 1:
            rest, size = make(c_out, c_out, 1, size, first_stride_in_1x1)
            children.append(Module(name=at, indices=range(1, depth), children=rest, block=True))
        c_in = c_out
    children += [
        Elementwise(name="resnet.pooler", op="pooling", width=c_in),
        Linear(name="classifier.1", in_features=c_in, out_features=labels, bias=True),
    ]
    picture = image_size(config)
    return Arch(
        name=name,
        root=Module(name="", stream=SAMPLE, children=tuple(children)),
        streams=(),
        main_stream=SAMPLE,
        task="image-classification",
        unit="image",
        notes=(
            f"picture {picture[0]}x{picture[1]}",
            "stride in the 1×1" if first_stride_in_1x1 else "stride in the 3×3",
        ),
    )


def _shortcut(c_in: int, c_out: int, stride: int, size: Size) -> tuple[Node, ...]:
    if c_in == c_out and stride == 1:
        return ()
    out = conv_out(size, 1, stride, 0)
    conv = Conv(
        name="shortcut.convolution", in_channels=c_in, out_channels=c_out, kernel=(1, 1), in_size=size, out_size=out,
        bias=False,
    )  # fmt: skip
    running = Buffer(name="shortcut.normalization.running", shape=(2 * c_out + 1,))
    return (conv, norm("shortcut.normalization", c_out, "layer", per=out[0] * out[1]), running)


def _bottleneck(c_in: int, c_out: int, stride: int, size: Size, in_1x1: bool) -> tuple[tuple[Node, ...], Size]:
    """1×1 down to a quarter, 3×3, 1×1 up, with a projected shortcut where shapes change."""
    middle = max(1, c_out // 4)
    strides = (stride, 1) if in_1x1 else (1, stride)
    one, mid_size = _conv_norm("layer.0", c_in, middle, 1, strides[0], size, True)
    three, out_size = _conv_norm("layer.1", middle, middle, 3, strides[1], mid_size, True)
    last, _ = _conv_norm("layer.2", middle, c_out, 1, 1, out_size, True)
    return (*_shortcut(c_in, c_out, stride, size), *one, *three, *last), out_size


def _basic(c_in: int, c_out: int, stride: int, size: Size, _: bool) -> tuple[tuple[Node, ...], Size]:
    """Two 3×3 convolutions."""
    one, out_size = _conv_norm("layer.0", c_in, c_out, 3, stride, size, True)
    two, _size = _conv_norm("layer.1", c_out, c_out, 3, 1, out_size, True)
    return (*_shortcut(c_in, c_out, stride, size), *one, *two), out_size


FAMILIES = {"resnet": read_resnet}
