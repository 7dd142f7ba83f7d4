"""Formulas of the articles: golden values, and laws that hold for any input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas import all_formulas
from suanli.formulas import articles as a

POSITIVE = st.floats(1e-3, 1e6)
GPUS = st.integers(1, 100_000)


def test_streams():
    args = {"ops_per_image": 22.6e9, "side": 224, "width": 1920, "frames_per_s": 30, "streams": 8}
    assert a.stream_op_per_s(height=1080, **args) / 1e12 == pytest.approx(224.16, abs=0.005)
    assert a.stream_op_per_s(height=1280, **args) / 1e12 == pytest.approx(265.67, abs=0.005)


def test_training_days():
    assert a.training_days(300e9, 175e9, 8, 1024, 140e12) == pytest.approx(33.91, abs=0.005)
    assert a.training_days(450e9, 1.008e12, 8, 3072, 163e12) == pytest.approx(83.88, abs=0.005)


def test_money():
    cost = a.usd_per_thousand_tokens(2 * 175e9, 312e12, 0.213, 19.22 / 8)
    assert cost == pytest.approx(0.003515, abs=5e-7)
    assert a.gross_margin(0.0035, 0.02) == pytest.approx(0.825)
    assert a.unit_cost_change_by_points(0.213, 10) == pytest.approx(-0.3195, abs=5e-5)
    assert a.unit_cost_change_by_ratio(0.1) == pytest.approx(-0.0909, abs=5e-5)


def test_small_ones():
    assert a.matmul_flops(3, 5, 7) == 210
    assert a.mac_flops(1) == 2
    assert a.mixture_params(2, 111_000_000_000, 55_000_000_000) == 277_000_000_000
    assert a.petaflop_days_flops(3640) == pytest.approx(3.145e23, rel=1e-4)
    assert a.power_from_efficiency(5.6e12, 9.3e12) == pytest.approx(0.602, abs=5e-4)
    assert a.address_range_bytes(0, 0x7F) == 128
    assert a.dense_equivalent_op_per_s(102e9, 0.09, 0.351) == pytest.approx(3.23e12, rel=1e-3)
    assert a.quantity_value("1TOPS", "op_per_s") == 10**12
    assert a.ratio(1, 4) == 0.25
    assert a.total([1, 2, -4]) == -1
    assert a.product([2, 3, 4]) == 24
    assert a.catalogue_figure(3) == 3


@given(POSITIVE, POSITIVE, GPUS, GPUS, POSITIVE)
def test_linear_ratios_agree_at_a_fixed_batch(t1, t2, n1, n2, work):
    by_time = a.linear_ratio_by_time(t1, t2, n1, n2)
    assert a.linear_ratio_by_rate(work / t1, work / t2, n1, n2) == pytest.approx(by_time)
    assert a.linear_ratio_by_mfu(work / t1 / n1, work / t2 / n2) == pytest.approx(by_time)


@given(st.floats(0.01, 0.9), st.floats(0.1, 10))
def test_unit_cost_by_points_and_by_ratio_are_one_law(utilisation, points):
    by_points = a.unit_cost_change_by_points(utilisation, points)
    assert by_points == pytest.approx(a.unit_cost_change_by_ratio(points / 100 / utilisation))


def test_every_formula_explains_its_letters():
    for formula in all_formulas().values():
        assert formula.doc and formula.unit is not None and formula.source and formula.expression
