"""The roofline, at the ridge and on both sides of it."""

from __future__ import annotations

import numpy as np
import pytest

from suanli.formulas.roofline import attainable_flop_per_s, operational_intensity


def test_intensity_of_a_square_product() -> None:
    """1000³ in 16 bits: 2e9 operations, three matrices of 2e6 bytes."""
    assert operational_intensity(2 * 1000**3, 3 * 2 * 1000**2) == pytest.approx(1000 / 3)


@pytest.mark.parametrize(("intensity", "roof"), [(10, 20.0), (50, 100.0), (51, 100.0), (0, 0.0)])
def test_the_roof_of_100_flops_and_2_bytes_a_second(intensity: float, roof: float) -> None:
    assert attainable_flop_per_s(intensity, 100.0, 2.0) == roof


def test_arrays_pass() -> None:
    found = attainable_flop_per_s(np.array([10.0, 60.0]), 100.0, 2.0)
    assert found.tolist() == [20.0, 100.0]
