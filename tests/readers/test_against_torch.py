"""Layer expressions against plain torch modules: parameters, forward FLOPs, and backward as autograd runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.catalog.conventions import find_convention
from suanli.count import build_ledger
from suanli.nouns.workload import Workload
from suanli.readers.layer_expr import read_layer_expression

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = pytest.mark.torch

Build = Callable[[], Any]


def vgg(plan: str) -> Any:
    """VGG from its plan: numbers are 3×3 convolutions, M a pooling."""
    layers: list[Any] = []
    width = 3
    for step in plan.split():
        if step == "M":
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(width, int(step), 3, padding=1), nn.ReLU()]
            width = int(step)
    classifier = (nn.Linear(512 * 49, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), *classifier)


def alexnet() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, stride=2),
        nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, stride=2),
        nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(), nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, stride=2),
        nn.AdaptiveAvgPool2d(6), nn.Flatten(), nn.Dropout(),
        nn.Linear(9216, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000),
    )  # fmt: skip


ALEXNET = (
    "conv2d(3, 64, 11, stride=4, padding=2) @ 224x224 -> relu -> maxpool(3, stride=2) -> conv2d(64, 192, 5, padding=2)"
    " -> relu -> maxpool(3, stride=2) -> conv2d(192, 384, 3, padding=1) -> relu -> conv2d(384, 256, 3, padding=1)"
    " -> relu -> conv2d(256, 256, 3, padding=1) -> relu -> maxpool(3, stride=2) -> adaptiveavgpool(6) -> flatten"
    " -> dropout -> linear(9216, 4096) -> relu -> dropout -> linear(4096, 4096) -> relu -> linear(4096, 1000)"
)
VGG_PLAN = "64 64 M 128 128 M 256 256 256 M 512 512 512 M 512 512 512 M"


def vgg_expression() -> str:
    parts, width = [], 3
    for step in VGG_PLAN.split():
        parts.append("maxpool(2)" if step == "M" else f"conv2d({width}, {step}, 3, padding=1) -> relu")
        width = width if step == "M" else int(step)
    parts[0] = parts[0].replace(" -> relu", " @ 224x224 -> relu")
    parts += ["adaptiveavgpool(7)", "flatten", "linear(25088, 4096)", "relu", "linear(4096, 4096)", "relu"]
    return " -> ".join((*parts, "linear(4096, 1000)"))


# expression, torch module, input shape, workload
SPATIAL: list[tuple[str, Build, tuple[int, ...]]] = [
    (ALEXNET, alexnet, (3, 224, 224)),
    (vgg_expression(), lambda: vgg(VGG_PLAN), (3, 224, 224)),
    ("conv1d(6, 8, 5, stride=2, padding=1, dilation=2) @ 41", lambda: nn.Conv1d(6, 8, 5, 2, 1, 2), (6, 41)),
    ("conv2d(6, 8, (3, 5), groups=2, bias=false) @ 20x31",
     lambda: nn.Conv2d(6, 8, (3, 5), groups=2, bias=False), (6, 20, 31)),
    (
        "conv2d(6, 12, kernel=3, stride=(2, 1), padding=(1, 0), dilation=(1, 3), groups=6) @ 20x31",
        lambda: nn.Conv2d(6, 12, 3, (2, 1), (1, 0), (1, 3), 6),
        (6, 20, 31),
    ),
    ("conv3d(3, 4, kernel_size=(1, 3, 2), stride=2) @ 5x12x13", lambda: nn.Conv3d(3, 4, (1, 3, 2), 2), (3, 5, 12, 13)),
    (
        "conv2d(192, 384, 2, stride=2, bias=false, transposed) @ 30x96",  # pytorch issue 119806, one sample
        lambda: nn.ConvTranspose2d(192, 384, 2, stride=2, bias=False),
        (192, 30, 96),
    ),
    (
        "convtranspose2d(6, 4, 3, stride=3, padding=1, output_padding=2) @ 9x7 -> conv2d(4, 2, 1)",
        lambda: nn.Sequential(nn.ConvTranspose2d(6, 4, 3, 3, 1, 2), nn.Conv2d(4, 2, 1)),
        (6, 9, 7),
    ),
    ("convtranspose1d(6, 4, 5, stride=2, dilation=3) @ 9", lambda: nn.ConvTranspose1d(6, 4, 5, 2, dilation=3), (6, 9)),
    (
        "conv2d(3, 8, 3) @ 16x12 -> batchnorm -> relu -> avgpool((2, 3)) -> flatten -> linear(168, 5)",
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d((2, 3)), nn.Flatten(), nn.Linear(168, 5)
        ),
        (3, 16, 12),
    ),
]  # fmt: skip

SEQUENTIAL: list[tuple[str, Build, int]] = [
    ("linear(40, 24)", lambda: nn.Linear(40, 24), 40),
    ("linear(40, 24, bias=false) -> gelu -> layernorm -> linear(24, 7)",
     lambda: nn.Sequential(nn.Linear(40, 24, bias=False), nn.GELU(), nn.LayerNorm(24), nn.Linear(24, 7)), 40),
    ("lstm(40, 24)", lambda: nn.LSTM(40, 24, batch_first=True), 40),
    ("lstm(40, 24, layers=3, bidirectional)", lambda: nn.LSTM(40, 24, 3, batch_first=True, bidirectional=True), 40),
    ("lstm(40, 24, layers=2, proj=10)", lambda: nn.LSTM(40, 24, 2, proj_size=10, batch_first=True), 40),
    ("lstm(40, 24, num_layers=2, bidirectional, proj_size=10, bias=false)",
     lambda: nn.LSTM(40, 24, 2, bias=False, proj_size=10, bidirectional=True, batch_first=True), 40),
    ("gru(40, 24, layers=2, bidirectional)", lambda: nn.GRU(40, 24, 2, batch_first=True, bidirectional=True), 40),
    ("rnn(40, 24, layers=2)", lambda: nn.RNN(40, 24, 2, batch_first=True), 40),
]  # fmt: skip


def params(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(("text", "build", "shape"), SPATIAL, ids=[row[0][:40] for row in SPATIAL])
def test_spatial(text: str, build: Build, shape: tuple[int, ...], traced_flops: Any, counted: Any) -> None:
    with torch.device("meta"):
        module, x = build().eval(), torch.zeros(2, *shape)
    arch = read_layer_expression(text)
    with torch.no_grad():
        assert counted(arch, batch=2) == traced_flops(lambda: module(x))
    assert arch.params_total == params(module)


@pytest.mark.parametrize(("text", "build", "width"), SEQUENTIAL, ids=[row[0] for row in SEQUENTIAL])
def test_sequential(text: str, build: Build, width: int, traced_flops: Any, counted: Any) -> None:
    with torch.device("meta"):
        module, x = build().eval(), torch.zeros(2, 9, width)
    arch = read_layer_expression(text)
    with torch.no_grad():
        assert counted(arch, batch=2, seq=9) == traced_flops(lambda: module(x))
    assert arch.params_total == params(module)


@pytest.mark.parametrize(("text", "heads"), [("attention(448, 4)", 4), ("attention(448, 8)", 8)])
def test_multihead_attention(text: str, heads: int, traced_flops: Any, counted: Any) -> None:
    """fvcore issue 153: as much with four heads as with eight, and that is right."""
    with torch.device("meta"):
        module, x = nn.MultiheadAttention(448, heads, batch_first=True), torch.zeros(1, 300, 448)
    arch = read_layer_expression(text)
    assert counted(arch, seq=300) == traced_flops(lambda: module(x, x, x, need_weights=False)) == 642_969_600
    assert arch.params_total == params(module)


# --- backward: the input of the whole needs no gradient, so the first layer has one product less -------------------

TRAINED: list[tuple[str, Build, tuple[int, ...], dict[str, int]]] = [
    ("linear(64, 128)", lambda: nn.Linear(64, 128), (4, 9, 64), {"batch": 4, "seq": 9}),
    ("linear(64, 128) -> relu -> linear(128, 32)",
     lambda: nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32)), (4, 9, 64), {"batch": 4, "seq": 9}),
    ("layernorm(64) -> linear(64, 64) -> linear(64, 8)",
     lambda: nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 64), nn.Linear(64, 8)), (4, 9, 64), {"batch": 4, "seq": 9}),
    ("conv2d(3, 8, 3, padding=1) @ 12x14 -> relu -> conv2d(8, 16, 3, stride=2) -> flatten -> linear(480, 5)",
     lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.Flatten(),
                           nn.Linear(480, 5)), (2, 3, 12, 14), {"batch": 2}),
    ("convtranspose2d(3, 8, 2, stride=2) @ 5x4 -> conv2d(8, 4, 3)",
     lambda: nn.Sequential(nn.ConvTranspose2d(3, 8, 2, 2), nn.Conv2d(8, 4, 3)), (2, 3, 5, 4), {"batch": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "build", "shape", "workload"), TRAINED, ids=[row[0][:50] for row in TRAINED])
def test_backward(text: str, build: Build, shape: Any, workload: Any, traced_flops: Any, counted: Any) -> None:
    with torch.device("meta"):
        module, x = build(), torch.zeros(*shape)
    assert counted(read_layer_expression(text), phase="train", **workload) == traced_flops(
        lambda: module(x).sum().backward()
    )


def test_two_linears_take_five_units() -> None:
    """Equal squares of u FLOPs: 2u forward, u + 2u back (the first input needs no gradient): 5u, not 6u."""
    arch = read_layer_expression("linear(64, 64) -> linear(64, 64)")
    unit = 2 * 10 * 64 * 64
    assert build_ledger(arch, Workload(seq=10, phase="train"), find_convention("full")).model_flops == 5 * unit


def test_grouped_backward_is_right_where_torch_is_wrong(traced_flops: Any) -> None:
    """pytorch pull request 183405: a depthwise convolution's backward is counted as if it had no groups.

    Forward 2·56²·64·9 = 3,612,672; input's and weight's gradients cost as much each: 10,838,016 in all.
    """
    text = "conv2d(64, 64, 3, padding=1, groups=64, bias=false) @ 56x56"
    with torch.device("meta"):
        module = nn.Conv2d(64, 64, 3, padding=1, groups=64, bias=False)
        x = torch.zeros(1, 64, 56, 56, requires_grad=True)
    seen = traced_flops(lambda: module(x).sum().backward())
    arch = read_layer_expression(text)
    forward = build_ledger(arch, Workload(), find_convention("full")).model_flops
    assert forward == 2 * 56 * 56 * 64 * 9
    behind = read_layer_expression(
        "conv2d(1, 64, 1, bias=false) @ 56x56 -> " + text.partition(" @")[0]
    )  # needs the input's gradient
    rows = [
        row
        for row in build_ledger(behind, Workload(phase="train"), find_convention("full")).rows
        if "1.conv2d" in row.path
    ]
    right = sum(row.model_flops for row in rows)
    assert right == 3 * forward == 10_838_016
    assert seen == 238_436_352 == 22 * right, "torch counts groups in backward now: drop this row"
