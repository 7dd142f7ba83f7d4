"""The model's FLOPs against those of the kernels: sentences word by word."""

from __future__ import annotations

import pytest

from suanli.explain.useful import check
from suanli.nouns.roofline import UsefulCheck


def of(
    model: float, done: float, fraction: float | None = 1.0, again: float = 0.0, steps: int = 1, ranks: int = 1
) -> UsefulCheck:
    return check(model, done, again, fraction, steps=steps, ranks=ranks)


def test_they_agree() -> None:
    found = of(100 * 10**12, 101e12)
    assert (found.useful_flops, found.attributed_flops, found.agrees) == (1e14, 1.01e14, True)
    assert found.ratio == pytest.approx(1.01)
    assert found.message == (
        "the model needs 100.0 TFLOPs for 1 step, "
        "the kernels did 101.0 TFLOPs without recomputation (101.0 %): they agree"
    )


def test_recomputation_is_taken_out() -> None:
    found = of(100 * 10**12, 100e12, again=30e12)
    assert (found.attributed_flops, found.recompute_flops, found.agrees) == (1e14, 3e13, True)


def test_steps_and_ranks() -> None:
    found = of(8 * 10**12, 2e12, steps=2, ranks=8)
    assert found.useful_flops == 2e12
    assert found.message.startswith("the model needs 2.000 TFLOPs for 2 steps on one of 8 devices, the kernels did")


def test_a_part_is_a_lower_bound() -> None:
    found = of(100 * 10**12, 60e12, fraction=0.62)
    assert found.agrees is None
    assert found.message.endswith("(60.0 %), a lower bound: 62.0 % of matmul time is attributed")


def test_more_than_the_model_needs_is_wrong_however_little_is_known() -> None:
    found = of(100 * 10**12, 160e12, fraction=0.62)
    assert found.agrees is False
    assert found.message.endswith(
        "more than the model needs. Check --seq, --batch and the steps, or look for work done twice"
    )


def test_less_than_the_model_needs() -> None:
    found = of(100 * 10**12, 50e12)
    assert found.agrees is False
    assert found.message.endswith("less than the model needs. Check --seq, --batch and how many devices share a step")


def test_nothing_to_compare() -> None:
    assert of(0, 1e12).message == "no FLOPs to compare: the model needs none"
    found = of(10**12, 0.0, fraction=None)
    assert (found.message, found.agrees) == ("no FLOPs to compare: the trace has no products", None)
    assert of(0, 1e12).ratio is None
