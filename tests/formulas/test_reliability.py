"""Intervals, losses and rates of long runs, against the papers' worked figures and against each other."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from suanli.formulas import reliability as r
from suanli.units import HOUR

M, R = 3.09 * HOUR, 600.0  # Llama 3: 54 days · 24 h / 419 interruptions; a restart of ten minutes


@pytest.mark.parametrize(
    ("save_s", "young_min", "daly_min", "first_order", "restart"),
    [
        (60, 19.3, 18.6, 0.104, 0.054),  # √(2·60·11,124) = 1,155 s; C/τ + τ/2M = 0.0519 + 0.0519
        (5, 5.6, 5.5, 0.030, 0.054),  # √(2·5·11,124) = 333.5 s
    ],
)
def test_worked_figures(save_s, young_min, daly_min, first_order, restart) -> None:
    young = r.young_interval(M, save_s)
    assert round(young / 60, 1) == young_min
    assert round(r.daly_interval(M, save_s) / 60, 1) == daly_min
    assert round(r.first_order_loss(M, save_s, young), 3) == first_order
    assert round(R / M, 3) == restart


def test_llama_3_interrupts() -> None:
    assert round(54 * 24 / 419, 2) == 3.09
    assert round(16_384 * 54 * 24 / 419) == 50_677
    assert r.mtti(50_677 * HOUR, 16_384) / HOUR == pytest.approx(3.09, abs=0.005)


def test_exact_loss_by_hand() -> None:
    # τ = 1,115.7 s: τ / (M·e^(600/11124)·(e^(1175.7/11124) − 1)) = 1115.7 / (11,124 · 1.05542 · 0.11148) = 0.8525
    assert r.exact_efficiency(M, 60, R, 18.595 * 60) == pytest.approx(0.85246, abs=1e-5)


def test_daly_gives_up_where_saving_takes_longer_than_a_failure() -> None:
    assert r.daly_interval(100.0, 250.0) == 100.0


POSITIVE = st.floats(1, 1e6)


@given(m=POSITIVE, c=st.floats(0, 1e4), back=st.floats(0, 1e4), tau=POSITIVE)
def test_parts_make_the_whole(m, c, back, tau) -> None:
    """Time at work and restarting is the wall time that efficiency divides by."""
    assume((tau + c + back) / m < 600)
    whole = r.attempts_s(m, c, tau) + r.interrupts_per_interval(m, c, tau) * r.restarts_s(m, back)
    assert r.exact_efficiency(m, c, back, tau) == pytest.approx(tau / whole, rel=1e-9)
    assert 0 <= r.exact_efficiency(m, c, back, tau) <= 1 + 1e-12


@given(m=st.floats(1e5, 1e9), c=st.floats(0.1, 10))
def test_rules_agree_where_failures_are_rare(m, c) -> None:
    assert r.daly_interval(m, c) == pytest.approx(r.young_interval(m, c), rel=0.01)


def test_nothing_ever_done_is_zero_and_no_overflow() -> None:
    assert r.exact_efficiency(1.0, 10.0, 1000.0, 1.0) == 0.0


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [  # Garwood 1936, table of 90 % limits: χ²(0.05, 2n)/2 and χ²(0.95, 2n + 2)/2
        (0, 0.0, 2.9957), (1, 0.0513, 4.7439), (4, 1.3663, 9.1535), (10, 5.4254, 16.9622), (100, 84.1393, 118.0793),
    ],
)  # fmt: skip
def test_poisson_bounds(count, low, high) -> None:
    assert r.poisson_bound(count, 0.05, upper=False) == pytest.approx(low, abs=2e-4)
    assert r.poisson_bound(count, 0.05, upper=True) == pytest.approx(high, abs=2e-4)


@given(st.integers(1, 5000), st.floats(0.001, 0.4))
def test_bounds_enclose_the_count_and_narrow(count, tail) -> None:
    low, high = (r.poisson_bound(count, tail, upper=upper) for upper in (False, True))
    assert low < count < high
    assert high - low < 12 * math.sqrt(count) + 12


@pytest.mark.parametrize(
    ("mean", "spares", "chance"),
    [
        (0.0, 0, 0.0),
        (1.0, 0, 1 - math.exp(-1)),
        (2.0, 1, 1 - 3 * math.exp(-2)),  # 1 − e⁻²(1 + 2)
        (0.5, 2, 1 - math.exp(-0.5) * (1 + 0.5 + 0.125)),
    ],
)
def test_no_spare_left(mean, spares, chance) -> None:
    assert r.no_spare_left(mean, spares) == pytest.approx(chance, abs=1e-12)


def test_availability() -> None:
    assert r.availability(99.0, 1.0) == 0.99
