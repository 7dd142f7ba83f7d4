"""What a step waits for, by hand, as numbers and as arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas.steps import bubble_s, exchange_beside_s, exposed_exchange_s

# others, share, chunks → seconds: 7 of 8 equal stages of 0.2 s wait 1.4 s in 1F1B, half of it in two chunks
BUBBLES = [(1.4, 1, 1, 1.4), (1.4, 1, 2, 0.7), (1.5, 1 / 3, 1, 0.5), (2.0, 1 / 4, 1, 0.5), (0, 1, 1, 0)]


@pytest.mark.parametrize(("others", "share", "vpp", "expected"), BUBBLES)
def test_bubbles(others: float, share: float, vpp: int, expected: float) -> None:
    assert bubble_s(others, share, vpp) == pytest.approx(expected)


def test_equal_stages_have_the_published_bubble() -> None:
    # arXiv:2104.04473 §2.2.2: (p − 1)/(v·m) of the ideal time
    stages, chunks, micro_batches, one = 8, 4, 32, 0.2
    ideal = micro_batches * one
    assert bubble_s((stages - 1) * one, 1, chunks) / ideal == pytest.approx(7 / (4 * 32))


# whole, exposed, window → seconds: 0.3 · 10 are never hidden, of the other 7 a window of 4 leaves 3
EXPOSED = [(10, 0.3, 4, 6), (10, 0.3, 100, 3), (10, 1, 100, 10), (10, 0, 100, 0), (10, 0, 0, 10), (10, 1.5, 100, 10)]


@pytest.mark.parametrize(("whole", "exposed", "window", "expected"), EXPOSED)
def test_exposed_exchanges(whole: float, exposed: float, window: float, expected: float) -> None:
    assert exposed_exchange_s(whole, exposed, window) == pytest.approx(expected)


# busy, travel, exposed, p → seconds: side by side 3 and 4 take 5 with p 2
BESIDE = [(3, 4, 0, 2, 2), (4, 3, 0, 2, 1), (4, 4, 0, 1, 4), (100, 10, 0.3, 8, 3), (3, 0, 0.5, 8, 0)]


@pytest.mark.parametrize(("busy", "travel", "exposed", "sharpness", "expected"), BESIDE)
def test_exchanges_beside_kernels(
    busy: float, travel: float, exposed: float, sharpness: float, expected: float
) -> None:
    assert exchange_beside_s(busy, travel, exposed, sharpness) == pytest.approx(expected, abs=1e-6)


@given(st.floats(0.01, 100), st.floats(0, 100), st.floats(0, 1))
def test_between_nothing_and_the_whole(busy: float, travel: float, exposed: float) -> None:
    for found in (exposed_exchange_s(travel, exposed, busy), exchange_beside_s(busy, travel, exposed, 8.0)):
        assert exposed * travel * (1 - 1e-9) - 1e-9 <= found <= travel * (1 + 1e-9) + 1e-9


def test_arrays_are_numbers_side_by_side() -> None:
    whole, exposed, window = (np.array(column, dtype=float) for column in list(zip(*EXPOSED, strict=True))[:3])
    assert exposed_exchange_s(whole, exposed, window) == pytest.approx([row[3] for row in EXPOSED])
    busy, travel = np.array([3.0, 4.0]), np.array([4.0, 3.0])
    assert exchange_beside_s(busy, travel, 0.0, 2) == pytest.approx([2, 1])
