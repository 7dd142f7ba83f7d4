"""Convolutions, forward and backward: positions of the output from strides and padding, or from who used it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from suanli.explain.ops.call import NO_SHAPES, Call, Cost, Shape, misfit, unknown
from suanli.formulas import counting, operators

NO_STRIDES = "convolution without strides recorded (torch before 2.0), and no later op shows its output"


@dataclass(frozen=True)
class Places:
    """Which arguments of a forward operator hold what; -1 where it has none."""

    stride: int
    padding: int
    dilation: int
    transposed: int = -1
    groups: int = -1
    always_transposed: bool = False


_AFTER_BIAS = Places(stride=3, padding=4, dilation=5, groups=6)
FORWARD: dict[str, Places] = {
    "aten::convolution": Places(3, 4, 5, 6, 8),
    "aten::_convolution": Places(3, 4, 5, 6, 8),
    "aten::convolution_overrideable": Places(3, 4, 5, 6, 8),
    "aten::conv1d": _AFTER_BIAS,
    "aten::conv2d": _AFTER_BIAS,
    "aten::conv3d": _AFTER_BIAS,
    "aten::conv_transpose1d": Places(3, 4, 7, groups=6, always_transposed=True),
    "aten::conv_transpose2d": Places(3, 4, 7, groups=6, always_transposed=True),
    "aten::conv_transpose3d": Places(3, 4, 7, groups=6, always_transposed=True),
    "aten::cudnn_convolution": Places(stride=3, padding=2, dilation=4, groups=5),
    "aten::cudnn_convolution_transpose": Places(4, 2, 5, groups=6, always_transposed=True),
    "aten::cudnn_convolution_relu": Places(stride=3, padding=4, dilation=5, groups=6),
    "aten::cudnn_convolution_add_relu": Places(stride=5, padding=6, dilation=7, groups=8),
    "aten::miopen_convolution": Places(stride=4, padding=3, dilation=5, groups=6),
    "aten::miopen_convolution_transpose": Places(5, 3, 6, groups=7, always_transposed=True),
    "aten::miopen_depthwise_convolution": Places(stride=4, padding=3, dilation=5, groups=6),
    "aten::_conv_depthwise2d": Places(stride=4, padding=5, dilation=6),
    "aten::thnn_conv2d": Places(stride=4, padding=5, dilation=-1),
    "aten::_slow_conv2d_forward": Places(stride=4, padding=5, dilation=-1),
    "aten::slow_conv3d": Places(stride=4, padding=5, dilation=-1),
    "aten::mkldnn_convolution": Places(stride=4, padding=3, dilation=5, groups=6),
}


def forward(call: Call) -> Cost:
    """[N, C_in, …] by [C_out, C_in/g, …]; a transposed one uses its kernel once for each input position."""
    x, weight = call.shape(0), call.shape(1)
    if x is None or weight is None:
        return unknown(NO_SHAPES)
    if not _conforming(x, weight):
        return misfit(call)
    places = FORWARD[call.name]
    transposed = places.always_transposed or bool(call.flag(places.transposed) if places.transposed >= 0 else False)
    batch, spatial = _batched(x, weight)
    positions = spatial if transposed else _output(call, places, spatial, weight)
    if positions is None:
        return unknown(NO_STRIDES)
    if min(positions, default=0) < 0:
        return misfit(call)
    name = counting.conv_flops.__name__
    flops = counting.conv_flops(batch, prod(positions), *_channels(x, weight, transposed), prod(weight[2:]))
    return Cost(flops, name, (call.type(0), call.type(1)))


def _conforming(x: Shape, weight: Shape) -> bool:
    """Whether a kernel can move over an input: as many dimensions, or one fewer without a batch; no side is nothing."""
    return len(weight) > 2 and len(x) in (len(weight), len(weight) - 1) and 0 not in weight


def _batched(x: Shape, weight: Shape) -> tuple[int, Shape]:
    """Samples, and the sizes that the window moves over."""
    return (1, x[1:]) if len(x) == len(weight) - 1 else (x[0], x[2:])


def _channels(x: Shape, weight: Shape, transposed: bool) -> tuple[int, int, int]:
    """Channels in and out, and groups, which the shapes themselves say."""
    inputs = x[0] if len(x) == len(weight) - 1 else x[1]
    if transposed:
        groups = max(inputs // weight[0], 1)
        return inputs, weight[1] * groups, groups
    return inputs, weight[0], max(inputs // weight[1], 1)


def _output(call: Call, places: Places, spatial: Shape, weight: Shape) -> Shape | None:
    """Output sizes from the window's steps, else from the output itself."""
    window = weight[2:]
    stride, padding = call.wholes(places.stride), call.wholes(places.padding)
    dilation = call.wholes(places.dilation) if places.dilation >= 0 else (1,)
    if call.text(places.padding) == "same":
        return spatial
    if call.text(places.padding) == "valid":
        padding = (0,)
    if stride is None or padding is None or dilation is None:
        return None if call.output is None else call.output[2:]
    sides = [_wide(values, window) for values in (stride, padding, dilation)]
    if any(len(side) != len(window) for side in sides) or 0 in sides[0]:
        return (-1,)  # nothing that a convolution was given
    steps = zip(spatial, window, *sides, strict=True)
    return tuple((size + 2 * pad - spread * (k - 1) - 1) // step + 1 for size, k, step, pad, spread in steps)


def _wide(values: Shape, window: Shape) -> Shape:
    """One number stands for every dimension."""
    return values * len(window) if len(values) == 1 else values


# --- backward ---------------------------------------------------------------------------------------------------

# gradient of the output, input, weight, then what tells which gradients are wanted
_BACKWARD_NAMES = ("aten::convolution_backward", "aten::convolution_backward_overrideable")
_OLD_BACKWARD = ("aten::cudnn_convolution_backward", "aten::miopen_convolution_backward")
_ONE_GRADIENT = (
    *(
        f"aten::{maker}_{kind}_backward_{side}"
        for maker in ("cudnn", "miopen")
        for kind in ("convolution", "convolution_transpose")
        for side in ("input", "weight")
    ),
    "aten::miopen_depthwise_convolution_backward_input",
    "aten::miopen_depthwise_convolution_backward_weight",
)


def backward(call: Call) -> Cost:
    """Input's and kernel's gradient, by the output mask: each as much as the forward."""
    wanted = call.flags(10)
    if wanted is None:
        return unknown("convolution_backward without its output mask (shapes recorded, values not)")
    return _gradients(call, 0, 1, 2, sum(wanted[:2]), bool(call.flag(7)))


def one_gradient(call: Call) -> Cost:
    """`…_backward_input` or `…_backward_weight` of older torch: one product, shapes from the op that called it."""
    parent = call.parent
    if parent is None or parent.name not in _OLD_BACKWARD:
        return unknown("gradient of a convolution whose caller is not in the trace")
    return _gradients(parent, 1, 0, 2, 1, "transpose" in call.name)


def _gradients(call: Call, grad: int, x: int, weight: int, count: int, transposed: bool) -> Cost:
    """`count` gradients of the convolution whose output's gradient, input and kernel stand at these places."""
    out, given, kernel = call.shape(grad), call.shape(x), call.shape(weight)
    if out is None or given is None or kernel is None:
        return unknown(NO_SHAPES)
    if not _conforming(given, kernel) or len(out) != len(given):
        return misfit(call)
    batch, spatial = _batched(given if transposed else out, kernel)
    form = operators.conv_backward_flops
    channels = _channels(given, kernel, transposed)
    flops = form(batch, prod(spatial), *channels, prod(kernel[2:]), count)
    return Cost(flops, form.__name__, (call.type(grad), call.type(weight)))


BACKWARD = dict.fromkeys(_BACKWARD_NAMES, backward) | dict.fromkeys(_ONE_GRADIENT, one_gradient)
