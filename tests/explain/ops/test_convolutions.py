"""Convolutions by their shapes and values, by hand, and where values are missing."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.explain.ops.call import Call, Cost
from suanli.explain.ops.convolutions import NO_STRIDES
from suanli.explain.ops.table import cost_of
from suanli.nouns.trace import OpDetail

X, W = (32, 3, 224, 224), (64, 3, 7, 7)
STEM = 2 * 32 * 112 * 112 * 64 * 3 * 49  # stride 2, padding 3: (224 + 6 − 7)/2 + 1 = 112


def cost(name: str, dims: tuple[Any, ...], concrete: tuple[str, ...] | None = None, **more: Any) -> Cost:
    found = cost_of(Call(name, OpDetail(dims=dims, concrete=concrete, types=("float",) * len(dims)), **more))
    assert found is not None
    return found


CONV = ("", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1")
TABLE: list[tuple[str, tuple[Any, ...], tuple[str, ...], float]] = [
    ("aten::convolution", (X, W), CONV, STEM),
    ("aten::_convolution", (X, W), (*CONV, "False", "False", "True"), STEM),
    ("aten::conv2d", (X, W), ("", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "1"), STEM),
    ("aten::cudnn_convolution", (X, W), ("", "", "[3, 3]", "[2, 2]", "[1, 1]", "1"), STEM),
    ("aten::miopen_convolution", (X, W), ("", "", "", "[3, 3]", "[2, 2]", "[1, 1]", "1"), STEM),
    ("aten::mkldnn_convolution", (X, W), ("", "", "", "[3, 3]", "[2, 2]", "[1, 1]", "1"), STEM),
    ("aten::_slow_conv2d_forward", (X, W), ("", "", "[7, 7]", "", "[2, 2]", "[3, 3]"), STEM),
    ("aten::cudnn_convolution_relu", (X, W), ("", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "1"), STEM),
    # one number for both dimensions
    ("aten::conv2d", (X, W), ("", "", "", "[2]", "[3]", "[1]", "1"), STEM),
    ("aten::conv2d", (X, W), ("", "", "", "[1, 1]", "same", "[1, 1]", "1"), 2 * 32 * 224 * 224 * 64 * 3 * 49),
    ("aten::conv2d", (X, W), ("", "", "", "[1, 1]", "valid", "[1, 1]", "1"), 2 * 32 * 218 * 218 * 64 * 3 * 49),
    # a window of 3 spread by 2 covers 5: 10 − 5 + 1 = 6 positions
    ("aten::conv1d", ((1, 4, 10), (8, 4, 3)), ("", "", "", "[1]", "[0]", "[2]", "1"), 2 * 6 * 8 * 4 * 3),
    ("aten::conv1d", ((4, 10), (8, 4, 3)), ("", "", "", "[1]", "[0]", "[2]", "1"), 2 * 6 * 8 * 4 * 3),  # no batch
    # depthwise: 64 groups of one channel
    ("aten::_conv_depthwise2d", ((2, 64, 8, 8), (64, 1, 3, 3)),
     ("", "", "[3, 3]", "", "[1, 1]", "[1, 1]", "[1, 1]"), 2 * 2 * 64 * 64 * 9),
    ("aten::conv2d", ((2, 64, 8, 8), (32, 16, 3, 3)), ("", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "4"),
     2 * 2 * 64 * 32 * 16 * 9),
    # transposed: each of 8·8 input positions uses the kernel once, 16 channels to 2·4 in 2 groups
    ("aten::conv_transpose2d", ((2, 16, 8, 8), (16, 8, 4, 4)),
     ("", "", "", "[2, 2]", "[1, 1]", "[0, 0]", "1", "[1, 1]"), 2 * 2 * 64 * 16 * 8 * 16),
    ("aten::convolution", ((2, 16, 8, 8), (16, 8, 4, 4)),
     ("", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[0, 0]", "1"), 2 * 2 * 64 * 16 * 8 * 16),
    ("aten::conv3d", ((1, 2, 5, 6, 7), (3, 2, 1, 1, 1)), ("", "", "", "[1]", "[0]", "[1]", "1"), 2 * 210 * 3 * 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dims", "values", "flops"), TABLE)
def test_forward(name: str, dims: tuple[Any, ...], values: tuple[str, ...], flops: float) -> None:
    found = cost(name, dims, values)
    assert (found.flops, found.formula, found.operands) == (flops, "conv_flops", ("float", "float"))


def test_without_strides_the_output_tells_and_without_it_nothing_does() -> None:
    assert cost("aten::cudnn_convolution", (X, W)).reason == NO_STRIDES
    assert cost("aten::cudnn_convolution", (X, W), output=(32, 64, 112, 112)).flops == STEM


BACK = ("", "", "", "[0]", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1")


@pytest.mark.parametrize(
    ("mask", "times"), [("[True, True, False]", 2), ("[False, True, True]", 1), ("[True, False, False]", 1)]
)
def test_backward_is_as_many_forwards_as_gradients_are_wanted(mask: str, times: int) -> None:
    found = cost("aten::convolution_backward", ((32, 64, 112, 112), X, W), (*BACK, mask))
    assert (found.flops, found.formula) == (times * STEM, "conv_backward_flops")


def test_backward_of_a_transposed_one_counts_input_positions() -> None:
    values = ("", "", "", "[0]", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[0, 0]", "1", "[True, True, False]")
    found = cost("aten::convolution_backward", ((2, 8, 16, 16), (2, 16, 8, 8), (16, 8, 4, 4)), values)
    assert found.flops == 2 * (2 * 2 * 64 * 16 * 8 * 16)


def test_backward_without_its_mask_is_unknown() -> None:
    found = cost("aten::convolution_backward", ((32, 64, 112, 112), X, W))
    assert found.flops is None
    assert found.reason == "convolution_backward without its output mask (shapes recorded, values not)"


def test_each_gradient_of_older_torch_has_the_shapes_of_its_caller() -> None:
    caller = Call("aten::cudnn_convolution_backward", OpDetail(dims=(X, (32, 64, 112, 112), W)))
    for side in ("input", "weight"):
        name = f"aten::cudnn_convolution_backward_{side}"
        assert cost(name, ((), (32, 64, 112, 112), W), parent=caller).flops == STEM
        alone = cost(name, ((), (32, 64, 112, 112), W))
        assert alone.reason == "gradient of a convolution whose caller is not in the trace"
