"""Every named number of the 2-2-2 network on one asymmetric example, each from the definition written out."""

from __future__ import annotations

import math
from typing import Any

import pytest

from suanli.formulas.backprop import backprop_forward, backprop_gradients, backprop_train, sigmoid

X, T, W, BH, BY = (0.3, -0.7), (0.2, 0.9), (0.1, -0.2, 0.4, 0.5, -0.6, 0.8, 0.25, -0.35), 0.15, -0.45
EXAMPLE: dict[str, Any] = {"inputs": X, "targets": T, "weights": W, "hidden_bias": BH, "output_bias": BY}


def s(x: float) -> float:
    return 1 / (1 + math.exp(-x))


NET_H = (0.1 * 0.3 + -0.2 * -0.7 + BH, 0.4 * 0.3 + 0.5 * -0.7 + BH)
H = (s(NET_H[0]), s(NET_H[1]))
NET_Y = (-0.6 * H[0] + 0.8 * H[1] + BY, 0.25 * H[0] - 0.35 * H[1] + BY)
Y = (s(NET_Y[0]), s(NET_Y[1]))
E = ((0.2 - Y[0]) ** 2 / 2, (0.9 - Y[1]) ** 2 / 2)
DY = ((Y[0] - 0.2) * Y[0] * (1 - Y[0]), (Y[1] - 0.9) * Y[1] * (1 - Y[1]))
DH = (
    (DY[0] * -0.6 + DY[1] * 0.25) * H[0] * (1 - H[0]),
    (DY[0] * 0.8 + DY[1] * -0.35) * H[1] * (1 - H[1]),
)

FORWARD = {
    "net_h1": NET_H[0], "net_h2": NET_H[1], "out_h1": H[0], "out_h2": H[1], "net_y1": NET_Y[0], "net_y2": NET_Y[1],
    "y1": Y[0], "y2": Y[1], "e1": E[0], "e2": E[1], "loss": E[0] + E[1],
}  # fmt: skip
GRADIENTS = {
    "delta_y1": DY[0], "delta_y2": DY[1], "delta_h1": DH[0], "delta_h2": DH[1],
    "dw0": DH[0] * 0.3, "dw1": DH[0] * -0.7, "dw2": DH[1] * 0.3, "dw3": DH[1] * -0.7,
    "dw4": DY[0] * H[0], "dw5": DY[0] * H[1], "dw6": DY[1] * H[0], "dw7": DY[1] * H[1],
}  # fmt: skip


def test_forward_by_name() -> None:
    assert backprop_forward(**EXAMPLE) == pytest.approx(FORWARD, rel=1e-12)


def test_gradients_by_name() -> None:
    assert backprop_gradients(**EXAMPLE) == pytest.approx(GRADIENTS, rel=1e-12)


def test_a_step_moves_each_weight_against_its_gradient() -> None:
    after = backprop_train(**EXAMPLE, learning_rate=2.0, steps=1)
    moved = [w - 2.0 * GRADIENTS[f"dw{i}"] for i, w in enumerate(W)]
    assert [after[f"w{i}"] for i in range(8)] == pytest.approx(moved, rel=1e-12)
    assert after["loss"] == pytest.approx(backprop_forward(**{**EXAMPLE, "weights": moved})["loss"], rel=1e-12)
    assert after["loss"] < FORWARD["loss"]


def test_two_steps_are_one_and_one_more() -> None:
    one = backprop_train(**EXAMPLE, learning_rate=0.5, steps=1)
    again = {**EXAMPLE, "weights": [one[f"w{i}"] for i in range(8)]}
    assert backprop_train(**again, learning_rate=0.5, steps=1) == backprop_train(**EXAMPLE, learning_rate=0.5, steps=2)


@pytest.mark.parametrize(
    ("x", "value"), [(0, 0.5), (1, 0.7310585786300049), (-1, 0.2689414213699951), (800, 1.0), (-800, 0.0)]
)
def test_sigmoid(x: float, value: float) -> None:
    assert sigmoid(x) == pytest.approx(value, abs=1e-15)
