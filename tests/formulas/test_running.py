"""Utilisation, time, money and energy: values by hand, ways round that come back, and proportions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas import memory, running

# function, arguments, value: no two arguments of a row are equal, so that none can stand for another
TABLE: list[tuple[Callable[..., float], tuple[float, ...], float]] = [
    (running.achieved_flop_per_s, (60, 40, 8), 60 * 40 / 8),
    (running.tokens_per_s, (16, 2048, 4), 16 * 2048 / 4),
    (running.utilisation, (300, 400), 0.75),
    (running.gpu_hours, (3600 * 7200, 1800, 0.5), 3600 * 7200 / 900 / 3600),
    (running.wall_days, (960, 8, 0.5), 960 / 24 / (8 * 0.5)),
    (running.gpus_for_deadline, (960, 8, 0.5), 960 / 24 / (8 * 0.5)),
    (running.run_cost, (100, 3, 0.5), 600),
    (running.run_energy_kwh, (100, 700, 1.2, 0.5), 100 * 0.7 * 1.2 / 0.5),
    (running.run_co2_kg, (100, 0.4), 40),
    # 3·7·5·2·(34 + 5·a·s/h) with a = 11, s = 7, h = 2: L·(34sbh + 5as²b)
    (memory.gpt_activation_bytes, (5, 7, 3, 2, 11), 3 * (34 * 7 * 5 * 2 + 5 * 11 * 49 * 5)),
    (memory.gpt_activation_bytes_selective, (5, 7, 3, 2), 3 * 34 * 7 * 5 * 2),
    (memory.gpt_activation_bytes_full, (5, 7, 3, 2), 3 * 2 * 7 * 5 * 2),
    (memory.kv_cache_bytes, (5, 7, 3, 16), 5 * 7 * 3 * 2),
    (memory.kv_cache_bytes, (1, 1, 3, 4), 2),  # 12 bits
    (memory.weights_bytes, (5, 6), 4),  # 30 bits
    (memory.optimizer_bytes, (7, 8, 4), 84),
    (memory.state_bytes, (2, 3, 5, 7), 4 * 2 * 3 * 5 * 7),
]


@pytest.mark.parametrize(("function", "arguments", "value"), TABLE, ids=[row[0].__name__ for row in TABLE])
def test_values(function: Callable[..., float], arguments: tuple[float, ...], value: float) -> None:
    assert function(*arguments) == pytest.approx(value, rel=1e-12)


REAL = st.floats(1e-3, 1e6)
PART = st.floats(0.01, 1)
GPUS = st.integers(1, 10_000)


@given(REAL, st.integers(1, 10**4), st.integers(1, 10**5), REAL, GPUS)
def test_from_a_step_to_a_rate_and_back(per_token: float, batch: int, seq: int, seconds: float, gpus: int) -> None:
    """FLOPs of a step over its seconds and GPUs is what one GPU achieves."""
    rate = running.achieved_flop_per_s(per_token, running.tokens_per_s(batch, seq, seconds), gpus)
    assert rate * gpus * seconds == pytest.approx(per_token * batch * seq)


@given(REAL, REAL, PART)
def test_hours_at_a_utilisation_have_that_utilisation(flops: float, peak: float, mfu: float) -> None:
    hours = running.gpu_hours(flops, peak, mfu)
    assert running.utilisation(flops / (hours * 3600), peak) == pytest.approx(mfu)


@given(REAL, GPUS, PART)
def test_gpus_that_meet_the_days_they_take(hours: float, gpus: int, goodput: float) -> None:
    days = running.wall_days(hours, gpus, goodput)
    assert running.gpus_for_deadline(hours, days, goodput) == pytest.approx(gpus)


@given(REAL, REAL, PART, REAL, st.floats(1, 2))
def test_lost_time_is_paid_and_powered(hours: float, price: float, goodput: float, watts: float, pue: float) -> None:
    """Cost and energy at a goodput are those of the longer run without loss."""
    paid = hours / goodput
    assert running.run_cost(hours, price, goodput) == pytest.approx(running.run_cost(paid, price, 1))
    energy = running.run_energy_kwh(hours, watts, pue, goodput)
    assert energy == pytest.approx(running.run_energy_kwh(paid, watts, pue, 1))
    assert energy == pytest.approx(paid * watts * pue / 1000)


# function, sound arguments, power of each argument in the value
POWERS: list[tuple[Callable[..., Any], tuple[float, ...], tuple[int, ...]]] = [
    (running.achieved_flop_per_s, (3.0, 5.0, 7.0), (1, 1, -1)),
    (running.tokens_per_s, (3.0, 5.0, 7.0), (1, 1, -1)),
    (running.utilisation, (3.0, 5.0), (1, -1)),
    (running.gpu_hours, (3.0, 5.0, 0.7), (1, -1, -1)),
    (running.wall_days, (3.0, 5.0, 0.7), (1, -1, -1)),
    (running.gpus_for_deadline, (3.0, 5.0, 0.7), (1, -1, -1)),
    (running.run_cost, (3.0, 5.0, 0.7), (1, 1, -1)),
    (running.run_energy_kwh, (3.0, 5.0, 1.1, 0.7), (1, 1, 1, -1)),
    (running.run_co2_kg, (3.0, 5.0), (1, 1)),
]


@pytest.mark.parametrize(("function", "arguments", "powers"), POWERS, ids=[row[0].__name__ for row in POWERS])
def test_proportions(function: Callable[..., Any], arguments: tuple[float, ...], powers: tuple[int, ...]) -> None:
    """Twice an argument is twice the value, or half of it."""
    for index, power in enumerate(powers):
        doubled = [2 * value if i == index else value for i, value in enumerate(arguments)]
        assert function(*doubled) == pytest.approx(function(*arguments) * 2.0**power)
