"""ResNets of two small stages: sizes, parameters and FLOPs of every convolution by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.errors import ConfigError
from suanli.nouns.layers import Conv
from suanli.readers.hf import read_hf_config
from suanli.readers.hf.resnet import conv_out

NET: dict[str, Any] = {
    "model_type": "resnet", "depths": [1, 2], "hidden_sizes": [8, 16], "embedding_size": 4, "image_size": 32,
    "num_labels": 5,
}  # fmt: skip

# Picture 32, stem 7×7 stride 2: 16; pooled: 8. Stage 0 keeps 8, stage 1 halves to 4.
STEM = 3 * 4 * 49
FIRST = (4 * 8, 4 * 2, 2 * 2 * 9, 2 * 8)  # shortcut, 1×1 down to a quarter, 3×3, 1×1 up
SECOND = (8 * 16, 8 * 4, 4 * 4 * 9, 4 * 16)
THIRD = (16 * 4, 4 * 4 * 9, 4 * 16)  # nothing changes: no shortcut
NORMS = 2 * (4 + (8 + 2 + 2 + 8) + (16 + 4 + 4 + 16) + (4 + 4 + 16))
CLASSES = 16 * 5 + 5
BOTTLENECK = STEM + sum(FIRST) + sum(SECOND) + sum(THIRD) + NORMS + CLASSES
# 3×3 twice: 4→8→8, 8→16→16, 16→16→16, with shortcuts where widths change
PLAIN = (4 * 8 + 8 * 8) * 9 + 32 + (8 * 16 + 16 * 16) * 9 + 128 + 2 * 256 * 9
PLAIN_NORMS = 2 * (4 + 3 * 8 + 3 * 16 + 2 * 16)

PARAMS = [
    ({}, BOTTLENECK),
    ({"layer_type": "basic"}, STEM + PLAIN + PLAIN_NORMS + CLASSES),
    ({"downsample_in_bottleneck": True}, BOTTLENECK),  # where the stride lies changes no weight
    ({"downsample_in_first_stage": True}, BOTTLENECK),
    ({"image_size": 64}, BOTTLENECK),
    ({"num_channels": 1}, BOTTLENECK - 2 * 4 * 49),
    ({"num_labels": None}, BOTTLENECK - 3 * 17),
]


@pytest.mark.parametrize(("changed", "params"), PARAMS)
def test_parameters(changed: dict[str, Any], params: int, reading: Callable[..., Any]) -> None:
    assert reading({**NET, **changed}).params == params


HEAD = 2 * 16 * 5
STAGE_0 = 2 * 64 * sum(FIRST)
REST = 2 * 16 * sum(THIRD) + HEAD

FORWARD = [
    # shortcut at 16 positions, 1×1 still at 64, 3×3 and the last at 16
    ({}, 2 * 256 * STEM + STAGE_0 + 2 * (16 * 128 + 64 * 32 + 16 * 144 + 16 * 64) + REST),
    # the stride in the 1×1: all at 16
    ({"downsample_in_bottleneck": True}, 2 * 256 * STEM + STAGE_0 + 2 * 16 * sum(SECOND) + REST),
    # stage 0 at 4×4 but for its 1×1, stage 1 at 2×2 but for its 1×1
    (
        {"downsample_in_first_stage": True},
        2 * 256 * STEM + 2 * (16 * 32 + 64 * 8 + 16 * 36 + 16 * 16)
        + 2 * (4 * 128 + 16 * 32 + 4 * 144 + 4 * 64) + 2 * 4 * sum(THIRD) + HEAD,
    ),
    (
        {"layer_type": "basic"},
        2 * 256 * STEM + 2 * 64 * ((32 + 64) * 9 + 32) + 2 * 16 * ((128 + 256) * 9 + 128) + 2 * 16 * 512 * 9 + HEAD,
    ),
    ({"image_size": 64}, 4 * (2 * 256 * STEM + STAGE_0 + 2 * (2048 + 2048 + 2304 + 1024) + REST - HEAD) + HEAD),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "flops"), FORWARD, ids=[str(row[0]) for row in FORWARD])
def test_flops(changed: dict[str, Any], flops: int, reading: Callable[..., Any]) -> None:
    assert reading({**NET, **changed}).forward == flops
    assert reading({**NET, **changed}, batch=3).forward == 3 * flops


def test_pixels_need_no_gradient(reading: Callable[..., Any]) -> None:
    assert reading(NET, phase="train").forward == 3 * reading(NET).forward - 2 * 256 * STEM


# size, kernel, stride, padding: what is left
OUT = [
    ((224, 224), 7, 2, 3, (112, 112)),
    ((112, 112), 3, 2, 1, (56, 56)),
    ((57, 56), 3, 2, 1, (29, 28)),
    ((56, 56), 1, 2, 0, (28, 28)),
    ((5,), 3, 1, 1, (5,)),
    ((7, 8, 9), 2, 2, 0, (3, 4, 4)),
]


@pytest.mark.parametrize(("size", "kernel", "stride", "padding", "out"), OUT)
def test_sizes(size: tuple[int, ...], kernel: int, stride: int, padding: int, out: tuple[int, ...]) -> None:
    assert conv_out(size, kernel, stride, padding) == out


def test_every_convolution_with_its_sizes() -> None:
    found = [(p.path, p.layer.in_size[0], p.layer.out_size[0]) for p in read_hf_config(NET, "net").leaves()
             if isinstance(p.layer, Conv)]  # fmt: skip
    at = "resnet.encoder.stages"
    assert found == [
        ("resnet.embedder.embedder.convolution", 32, 16),
        (f"{at}.0.layers.0.shortcut.convolution", 8, 8),
        (f"{at}.0.layers.0.layer.0.convolution", 8, 8),
        (f"{at}.0.layers.0.layer.1.convolution", 8, 8),
        (f"{at}.0.layers.0.layer.2.convolution", 8, 8),
        (f"{at}.1.layers.0.shortcut.convolution", 8, 4),
        (f"{at}.1.layers.0.layer.0.convolution", 8, 8),
        (f"{at}.1.layers.0.layer.1.convolution", 8, 4),
        (f"{at}.1.layers.0.layer.2.convolution", 4, 4),
        (f"{at}.1.layers.1.layer.0.convolution", 4, 4),
        (f"{at}.1.layers.1.layer.1.convolution", 4, 4),
        (f"{at}.1.layers.1.layer.2.convolution", 4, 4),
    ]


def test_running_means_are_buffers() -> None:
    """Mean and variance of each channel, and a counter: eleven norms over NORMS/2 channels."""
    assert read_hf_config(NET, "net").buffer_elements == NORMS + 12


@pytest.mark.parametrize(("changed", "where"), [({}, "3×3"), ({"downsample_in_bottleneck": True}, "1×1")])
def test_notes(changed: dict[str, Any], where: str) -> None:
    assert read_hf_config({**NET, **changed}, "net").notes == ("picture 32x32", f"stride in the {where}")


def test_the_published_net_is_the_default() -> None:
    """ResNet-50: 25,557,032 with 1,000 classes (torchvision)."""
    assert read_hf_config({"model_type": "resnet", "num_labels": 1000}, "net").params_total == 25_557_032


FAULTS = [
    ({"depths": [1]}, "depths and hidden_sizes differ in length in config: depths; got 1 and 2."),
    (
        {"depths": [1] * 101, "hidden_sizes": [4] * 101},
        "too many stages in config: depths; got 101; expected at most 100.",
    ),
    (
        {"layer_type": "wide"},
        "layer_type is not possible in config: layer_type; got 'wide'; expected one of basic, bottleneck.",
    ),
    (
        {"depths": [1, 0]},
        "depths is not possible in config: depths; got 0; expected a whole number from 1 to 10,000.",
    ),
]


@pytest.mark.parametrize(("changed", "sentence"), FAULTS)
def test_faults(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_hf_config({**NET, **changed}, "net")
    assert sentence in [fault.sentence() for fault in caught.value.faults]
