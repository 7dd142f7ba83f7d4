"""The worked 2-2-2 network: the article's digits, and gradients against numeric derivatives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas import all_formulas
from suanli.formulas.backprop import backprop_forward, backprop_gradients, backprop_train, sigmoid

EXAMPLE = {
    "inputs": [0.05, 0.05],
    "targets": [0.25, 0.15],
    "weights": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
    "hidden_bias": 0.5,
    "output_bias": 0.6,
}
NUMBER = st.floats(-2, 2, allow_nan=False)


def test_the_article_s_eight_decimals():
    after = backprop_train(**EXAMPLE, learning_rate=0.5, steps=1)
    printed = {
        "w1": "0.19933483",
        "w2": "0.29922866",
        "w3": "0.39922866",
        "w5": "0.57150144",
        "w6": "0.66939351",
        "w7": "0.76916515",
        "loss": "0.36277389",
    }
    assert {name: f"{after[name]:.8f}" for name in printed} == printed
    before = backprop_forward(**EXAMPLE)
    assert f"{before['out_h2']:.8f}" == "0.63064853"
    assert f"{before['loss']:.8f}" == "0.36982305"  # the article prints 0.36982311


def test_hidden_deltas_use_the_weights_before_the_update():
    gradients = backprop_gradients(**EXAMPLE)
    moved = dict(EXAMPLE, weights=[*EXAMPLE["weights"][:4], 0.4, 0.5, 0.6, 0.7])
    assert backprop_gradients(**moved)["delta_h1"] != gradients["delta_h1"]
    after = backprop_train(**EXAMPLE, learning_rate=0.5, steps=1)
    assert after["w0"] == 0.1 - 0.5 * gradients["dw0"]


@given(
    inputs=st.tuples(NUMBER, NUMBER),
    targets=st.tuples(NUMBER, NUMBER),
    weights=st.lists(NUMBER, min_size=8, max_size=8),
    hidden_bias=NUMBER,
    output_bias=NUMBER,
)
def test_gradients_equal_numeric_derivatives(inputs, targets, weights, hidden_bias, output_bias):
    exact = backprop_gradients(inputs, targets, weights, hidden_bias, output_bias)
    step = 1e-5
    for i in range(8):
        losses = []
        for sign in (1, -1):
            moved = [w + sign * step * (j == i) for j, w in enumerate(weights)]
            losses.append(backprop_forward(inputs, targets, moved, hidden_bias, output_bias)["loss"])
        assert exact[f"dw{i}"] == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=1e-8)


def test_no_steps_leave_everything():
    after = backprop_train(**EXAMPLE, learning_rate=0.5, steps=0)
    assert [after[f"w{i}"] for i in range(8)] == EXAMPLE["weights"]


@given(st.floats(-1e300, 1e300))
def test_sigmoid_never_overflows(x):
    assert 0 <= sigmoid(x) <= 1
    assert sigmoid(x) + sigmoid(-x) == pytest.approx(1)


def test_all_are_registered():
    assert {"backprop_forward", "backprop_gradients", "backprop_train"} <= set(all_formulas())
