"""Where labels of an axis stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.report.ticks import linear_ticks, log_ticks

LOG = [
    ([1, 1000], (1, 10, 100, 1000)),
    ([0.5, 200], (1, 10, 100)),
    ([1e-9, 1e-3], (1e-9, 1e-7, 1e-5, 1e-3)),  # seven powers: every second
    ([3072, 16384], (3072, 16384)),  # one power between: the ends say more
    ([2, 3], (2, 3)),
    ([5, 5], (5,)),
    ([1e-30, 1], (1e-30, 1e-24, 1e-18, 1e-12, 1e-06, 1)),
]


@pytest.mark.parametrize(("values", "wanted"), LOG)
def test_log_ticks(values: list[float], wanted: tuple[float, ...]) -> None:
    assert log_ticks(values) == pytest.approx(wanted)


LINEAR = [
    ([0, 1], (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
    ([0.003, 0.92], (0.2, 0.4, 0.6, 0.8)),
    ([10, 60], (10, 20, 30, 40, 50, 60)),
    ([0.147, 0.39], (0.15, 0.2, 0.25, 0.3, 0.35)),
    ([7, 7], (7,)),
]


@pytest.mark.parametrize(("values", "wanted"), LINEAR)
def test_linear_ticks(values: list[float], wanted: tuple[float, ...]) -> None:
    assert linear_ticks(values) == pytest.approx(wanted)


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=9))
def test_log_ticks_lie_between_the_ends_and_are_few(values: list[float]) -> None:
    ticks = log_ticks(values)
    assert 1 <= len(ticks) <= 6 and list(ticks) == sorted(ticks)
    assert all(min(values) * (1 - 1e-6) <= tick <= max(values) * (1 + 1e-6) for tick in ticks)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_linear_ticks_lie_between_the_ends_and_are_few(low: float, span: float) -> None:
    ticks = linear_ticks([low, low + span])
    assert 1 <= len(ticks) <= 7
    assert all(low - 1e-6 * span <= tick <= low + span + 1e-6 * span for tick in ticks)
