"""Waiting: values by hand."""

from __future__ import annotations

import pytest

from suanli.formulas.queueing import mean_wait_md1_s


@pytest.mark.parametrize(("load", "service", "wait"), [(0.5, 1.0, 0.5), (0.8, 2.0, 4.0), (0.0, 3.0, 0.0)])
def test_md1(load: float, service: float, wait: float) -> None:
    assert mean_wait_md1_s(load, service) == pytest.approx(wait)  # 0.8 · 2 / (2 · 0.2) = 4
