"""The lesson of one training step: the article's digits, any network, gradients against differences and autograd."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas.backprop import backprop_forward, backprop_train
from suanli.learn import teach
from suanli.learn.backprop import Network, article_network, losses, printed_claims, shown_steps
from suanli.nouns.lesson import Grid, Lesson, Plot

NUMBER = st.floats(-3, 3, allow_nan=False)
NETWORKS = st.builds(
    Network, inputs=st.tuples(NUMBER, NUMBER), targets=st.tuples(NUMBER, NUMBER), weights=st.tuples(*[NUMBER] * 8),
    hidden_bias=NUMBER, output_bias=NUMBER, learning_rate=st.floats(0, 2), steps=st.integers(0, 30),
)  # fmt: skip

# The article's figures, to the digits it prints; and those it shows as pictures, computed apart (source facts §5).
PRINTED = {
    "out_h2": "0.63064853", "w1_after": "0.19933483", "w2_after": "0.29922866", "w3_after": "0.39922866",
    "w5_after": "0.57150144", "w6_after": "0.66939351", "w7_after": "0.76916515", "loss_after": "0.36277389",
}  # fmt: skip
COMPUTED = {
    "net_h1": "0.51500000", "net_h2": "0.53500000", "out_h1": "0.62597786", "net_y1": "1.29137804",
    "net_y2": "1.54270332", "y1": "0.78438035", "y2": "0.82385736", "e1": "0.14278118", "e2": "0.22704187",
    "loss_before": "0.36982305", "delta_y1": "0.09037858", "delta_y2": "0.09778776", "delta_h1": "0.02660665",
    "delta_h2": "0.03085342", "dw0": "0.00133033", "dw1": "0.00133033", "dw2": "0.00154267", "dw3": "0.00154267",
    "dw4": "0.05657499", "dw5": "0.05699712", "dw6": "0.06121297", "dw7": "0.06166971", "w0_after": "0.09933483",
    "w4_after": "0.47171250",
}  # fmt: skip


@pytest.fixture(scope="module")
def taught() -> Lesson:
    return teach("backprop", "en")


@pytest.mark.parametrize(("name", "digits"), [*PRINTED.items(), *COMPUTED.items()])
def test_the_article_s_figures_to_eight_decimals(taught: Lesson, name: str, digits: str) -> None:
    assert f"{taught.values[name]:.8f}" == digits


@pytest.mark.parametrize(("name", "digits"), [*PRINTED.items(), *COMPUTED.items()])
def test_every_intermediate_is_printed(taught: Lesson, name: str, digits: str) -> None:
    cells = [f"{value:.8f}" for block in taught.blocks if isinstance(block, Grid) for row in block.rows
             for value in row if isinstance(value, float)]  # fmt: skip
    said = " ".join(text for block in taught.blocks if block.kind == "text" for text in block.paragraphs)
    assert digits in cells or digits in said


def test_after_a_thousand_steps(taught: Lesson) -> None:
    assert taught.values["steps"] == 1000
    assert f"{taught.values['loss_last']:.6e}" == "9.705962e-09"


def test_the_slip_is_noted(taught: Lesson) -> None:
    said = " ".join(taught.blocks[-2].paragraphs)
    assert "0.36982311" in said and "0.36982305" in said and "6e-08" in said
    rows = {row[0]: row for row in taught.blocks[-1].rows}
    assert len(rows) == len(printed_claims()) == 9
    assert [name for name, row in rows.items() if row[3] == "no"] == ["loss"]


def test_flops_forward_1_backward_2(taught: Lesson) -> None:
    assert taught.values["forward_flops"] == 2 * (2 * 1 * 2 * 2)  # two products [1, 2] × [2, 2]
    assert taught.values["backward_flops_by_rule"] == 2 * taught.values["forward_flops"]
    # autograd leaves out the gradient of the network's own inputs: one product of 8
    assert taught.values["backward_flops_counted"] == 2 * 16 - 8


def test_the_curve_falls_from_step_to_step(taught: Lesson) -> None:
    plot = next(block for block in taught.blocks if isinstance(block, Plot))
    points = plot.series[0].points
    assert points[0][0] == 1 and points[-1] == (1000, taught.values["loss_last"])
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)


@pytest.mark.parametrize(
    ("last", "steps"),
    [
        (0, ()),
        (1, (1,)),
        (2, (1, 2)),
        (6, (1, 2, 3, 5, 6)),
        (10, (1, 2, 3, 5, 7, 10)),
        (25, (1, 2, 3, 5, 7, 10, 20, 25)),
    ],
)
def test_steps_that_are_shown(last: int, steps: tuple[int, ...]) -> None:
    assert shown_steps(last) == steps


@given(st.integers(1, 100_000))
def test_shown_steps_rise_and_end_with_the_last(last: int) -> None:
    steps = shown_steps(last)
    assert steps[-1] == last and steps[0] == 1
    assert list(steps) == sorted(set(steps)) and len(steps) <= 32


@given(NETWORKS)
def test_the_curve_is_that_of_training(net: Network) -> None:
    for steps, loss in losses(net):
        assert loss == pytest.approx(net.trained(steps)["loss"], rel=1e-12, abs=1e-300)


@given(NETWORKS)
def test_gradients_equal_finite_differences(net: Network) -> None:
    """Central differences of the loss, for any inputs, weights, biases and targets."""
    values = teach("backprop", "en", {**net.start, "learning_rate": net.learning_rate, "steps": 1}).values
    h = 1e-5
    for place in range(8):
        losses_at = []
        for sign in (1, -1):
            weights = list(net.weights)
            weights[place] += sign * h
            losses_at.append(backprop_forward(**(net.start | {"weights": weights}))["loss"])
        numeric = (losses_at[0] - losses_at[1]) / (2 * h)
        assert values[f"dw{place}"] == pytest.approx(numeric, rel=1e-5, abs=1e-8)


@given(NETWORKS)
def test_an_update_goes_against_the_gradient(net: Network) -> None:
    values = teach("backprop", "en", {**net.start, "learning_rate": net.learning_rate, "steps": 0}).values
    for place in range(8):
        stepped = net.weights[place] - net.learning_rate * values[f"dw{place}"]
        assert values[f"w{place}_after"] == stepped


def test_another_network_says_nothing_of_the_article() -> None:
    other = teach("backprop", "en", {"learning_rate": 1.0})
    assert "article" not in " ".join(block.title for block in other.blocks)
    assert other.values["loss_before"] == pytest.approx(0.36982305, abs=5e-9)
    assert other.values["loss_after"] < 0.36277389  # a step twice as long on the same slope


def test_a_loss_of_nothing_has_no_curve() -> None:
    """Targets that the network already gives: 0 cannot be drawn on a logarithmic axis."""
    net = article_network()
    at = backprop_forward(**net.start)
    done = teach("backprop", "zh", {"targets": (at["y1"], at["y2"])})
    assert done.values["loss_before"] == done.values["loss_last"] == 0
    assert not [block for block in done.blocks if isinstance(block, Plot)]


@pytest.mark.torch
@given(NETWORKS)
def test_torch_autograd_agrees_to_1e_12(net: Network) -> None:
    import torch

    def tensor(values: tuple[float, ...]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float64)

    weights = tensor(net.weights).requires_grad_()
    hidden = torch.sigmoid(weights[:4].reshape(2, 2) @ tensor(net.inputs) + net.hidden_bias)
    out = torch.sigmoid(weights[4:].reshape(2, 2) @ hidden + net.output_bias)
    loss = ((tensor(net.targets) - out) ** 2).sum() / 2
    loss.backward()
    values = teach("backprop", "en", {**net.start, "learning_rate": net.learning_rate, "steps": 0}).values
    assert values["loss_before"] == pytest.approx(loss.item(), abs=1e-12)
    assert [values[f"dw{i}"] for i in range(8)] == pytest.approx(weights.grad.tolist(), abs=1e-12)


@pytest.mark.torch
def test_torch_sgd_agrees_after_a_thousand_steps() -> None:
    import torch

    net = article_network()
    weights = torch.tensor(net.weights, dtype=torch.float64, requires_grad=True)
    inputs, targets = (torch.tensor(each, dtype=torch.float64) for each in (net.inputs, net.targets))
    optimizer = torch.optim.SGD([weights], lr=net.learning_rate)
    for _ in range(net.steps):
        optimizer.zero_grad()
        hidden = torch.sigmoid(weights[:4].reshape(2, 2) @ inputs + net.hidden_bias)
        out = torch.sigmoid(weights[4:].reshape(2, 2) @ hidden + net.output_bias)
        (((targets - out) ** 2).sum() / 2).backward()
        optimizer.step()
    found = backprop_train(**net.start, learning_rate=net.learning_rate, steps=net.steps)
    assert [found[f"w{i}"] for i in range(8)] == pytest.approx(weights.tolist(), abs=1e-12)


def test_the_example_is_the_claims_own() -> None:
    net = article_network()
    assert net.inputs == (0.05, 0.05) and net.targets == (0.25, 0.15)
    assert net.weights == tuple(i / 10 for i in range(1, 9))
    assert (net.hidden_bias, net.output_bias, net.learning_rate, net.steps) == (0.5, 0.6, 0.5, 1000)
    assert math.isclose(net.trained(0)["loss"], backprop_forward(**net.start)["loss"])
