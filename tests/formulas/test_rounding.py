"""Numbers of few bits against numpy and torch, for any number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas.rounding import largest_number, number_step, rounded_number, smallest_number

# exponent and mantissa bits, whether the top exponent is finite, torch's name
FORMATS = [
    (8, 23, False, "float32"), (5, 10, False, "float16"), (8, 7, False, "bfloat16"), (5, 2, False, "float8_e5m2"),
    (4, 3, True, "float8_e4m3fn"),
]  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("exponent", "mantissa", "finite", "name"), FORMATS)
def test_limits_are_torch_s(exponent: int, mantissa: int, finite: bool, name: str) -> None:
    import torch

    info = torch.finfo(getattr(torch, name))
    assert number_step(mantissa) == info.eps
    assert largest_number(exponent, mantissa, finite) == info.max
    assert smallest_number(exponent, mantissa) == info.tiny * info.eps  # the last subnormal


@given(st.floats(-60000, 60000))
def test_fp16_is_numpy_s(value: float) -> None:
    assert rounded_number(value, 5, 10) == float(np.float16(value))


@given(st.floats(-1e38, 1e38))
def test_fp32_is_numpy_s(value: float) -> None:
    assert rounded_number(value, 8, 23) == float(np.float32(value))


@pytest.mark.torch
@given(st.floats(-400, 400, width=32))
def test_narrow_formats_are_torch_s(value: float) -> None:
    """From single precision, so that torch rounds once."""
    import torch

    for exponent, mantissa, _, name in FORMATS[2:]:
        assert rounded_number(value, exponent, mantissa) == torch.tensor(value).to(getattr(torch, name)).double().item()


# value, exponent, mantissa → rounded, by hand
BY_HAND = [
    (0.0, 5, 10, 0.0),
    (1.0, 8, 7, 1.0),
    (1 + 2**-8, 8, 7, 1.0),  # half a step: to the even one
    (1 + 3 * 2**-8, 8, 7, 1 + 2**-6),
    (-1.1, 4, 3, -1.125),
    (1e-8, 5, 10, 0.0),  # below half of 2^-24
    (2**-24, 5, 10, 2**-24),  # the last subnormal
    (2**-25 * 1.5, 5, 10, 2**-24),
]


@pytest.mark.parametrize(("value", "exponent", "mantissa", "wanted"), BY_HAND)
def test_by_hand(value: float, exponent: int, mantissa: int, wanted: float) -> None:
    assert rounded_number(value, exponent, mantissa) == wanted


@given(st.floats(-1e6, 1e6), st.integers(1, 20))
def test_rounding_twice_changes_nothing_and_is_near(value: float, mantissa: int) -> None:
    once = rounded_number(value, 8, mantissa)
    assert rounded_number(once, 8, mantissa) == once
    assert math.isclose(
        once, value, rel_tol=number_step(mantissa) / 2 * (1 + 1e-12), abs_tol=smallest_number(8, mantissa)
    )
