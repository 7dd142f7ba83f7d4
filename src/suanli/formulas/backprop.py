"""A network of two inputs, two hidden units and two outputs, sigmoid everywhere, trained by hand.

Weights w0, w1 lead to hidden unit 1, w2, w3 to hidden unit 2, w4, w5 to output 1, w6, w7 to output 2. Each layer has
one bias, which is not trained. Plain Python floats, so that every digit of a worked example can be followed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from suanli.formulas.registry import formula

_SOURCE = "chain rule; the 2-2-2 example of S2 1.1 solved"
_LEGEND = {
    "inputs": "x1, x2: inputs",
    "targets": "t1, t2: wanted outputs",
    "weights": "w0 … w7: weights",
    "hidden_bias": "b_h: bias of the hidden units",
    "output_bias": "b_y: bias of the outputs",
    "learning_rate": "η: learning rate",
    "steps": "steps of gradient descent",
}

Numbers = Sequence[float]


def sigmoid(x: float) -> float:
    """1/(1 + e^−x), without overflow on either side."""
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    grown = math.exp(x)
    return grown / (1 + grown)


def _layer(inputs: Numbers, weights: Numbers, bias: float) -> tuple[float, float]:
    """Net inputs of two units."""
    a, b = inputs
    return weights[0] * a + weights[1] * b + bias, weights[2] * a + weights[3] * b + bias


@formula(
    unit="named numbers",
    expression="net = Σ w·x + b; out = 1/(1 + e^−net); loss = ½Σ(t − y)²",
    source=_SOURCE,
    legend=_LEGEND,
)
def backprop_forward(
    inputs: Numbers, targets: Numbers, weights: Numbers, hidden_bias: float, output_bias: float
) -> dict[str, float]:
    """Forward pass: net inputs, outputs and loss by name."""
    net_h = _layer(inputs, weights[:4], hidden_bias)
    out_h = sigmoid(net_h[0]), sigmoid(net_h[1])
    net_y = _layer(out_h, weights[4:], output_bias)
    y = sigmoid(net_y[0]), sigmoid(net_y[1])
    errors = [(target - out) ** 2 / 2 for target, out in zip(targets, y, strict=True)]
    return {
        "net_h1": net_h[0], "net_h2": net_h[1], "out_h1": out_h[0], "out_h2": out_h[1],
        "net_y1": net_y[0], "net_y2": net_y[1], "y1": y[0], "y2": y[1],
        "e1": errors[0], "e2": errors[1], "loss": sum(errors),
    }  # fmt: skip


@formula(
    unit="named numbers",
    expression="δ_y = (y − t)·y·(1 − y); δ_h = Σ δ_y·w·out·(1 − out); dL/dw = δ·input of w",
    source=f"{_SOURCE}; hidden deltas use the weights before the update",
    legend=_LEGEND,
)
def backprop_gradients(
    inputs: Numbers, targets: Numbers, weights: Numbers, hidden_bias: float, output_bias: float
) -> dict[str, float]:
    """Backward pass: deltas of the four units and the gradient of every weight by name."""
    at = backprop_forward(inputs, targets, weights, hidden_bias, output_bias)
    hidden = at["out_h1"], at["out_h2"]
    d_y = [(y - t) * y * (1 - y) for y, t in zip((at["y1"], at["y2"]), targets, strict=True)]
    d_h = [(d_y[0] * weights[4 + i] + d_y[1] * weights[6 + i]) * out * (1 - out) for i, out in enumerate(hidden)]
    gradients = [delta * x for delta in d_h for x in inputs] + [delta * out for delta in d_y for out in hidden]
    named = {f"dw{i}": gradient for i, gradient in enumerate(gradients)}
    return {"delta_y1": d_y[0], "delta_y2": d_y[1], "delta_h1": d_h[0], "delta_h2": d_h[1], **named}


@formula(
    unit="named numbers",
    expression="w ← w − η·dL/dw, repeated; biases stay",
    source=_SOURCE,
    legend=_LEGEND,
)
def backprop_train(
    inputs: Numbers,
    targets: Numbers,
    weights: Numbers,
    hidden_bias: float,
    output_bias: float,
    learning_rate: float,
    steps: int,
) -> dict[str, float]:
    """Gradient descent: the weights after some steps, and the loss they give."""
    current = list(weights)
    for _ in range(steps):
        found = backprop_gradients(inputs, targets, current, hidden_bias, output_bias)
        current = [w - learning_rate * found[f"dw{i}"] for i, w in enumerate(current)]
    loss = backprop_forward(inputs, targets, current, hidden_bias, output_bias)["loss"]
    return {**{f"w{i}": w for i, w in enumerate(current)}, "loss": loss}
