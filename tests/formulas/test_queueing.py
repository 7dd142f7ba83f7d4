"""Waiting: values by hand."""

from __future__ import annotations

import pytest

from suanli.formulas.queueing import mean_wait_md1_s, mean_wait_mmc_s


@pytest.mark.parametrize(("load", "service", "wait"), [(0.5, 1.0, 0.5), (0.8, 2.0, 4.0), (0.0, 3.0, 0.0)])
def test_md1(load: float, service: float, wait: float) -> None:
    assert mean_wait_md1_s(load, service) == pytest.approx(wait)  # 0.8 · 2 / (2 · 0.2) = 4


@pytest.mark.parametrize(
    ("load", "service", "workers", "wait"),
    [
        (0.5, 1.0, 1, 1.0),  # M/M/1: 0.5 · 1 / 0.5
        (0.5, 1.0, 2, 1 / 3),  # Erlang C of 2 workers and 1 erlang is 1/3; 1/3 · 1 / (2 · 0.5)
        (0.8, 1.0, 4, 0.7455),  # Erlang C of 4 and 3.2 erlang is 0.5964
        (0.0, 1.0, 3, 0.0),
    ],
)
def test_mmc(load: float, service: float, workers: int, wait: float) -> None:
    assert mean_wait_mmc_s(load, service, workers) == pytest.approx(wait, rel=1e-4)


def test_many_workers_need_no_factorial() -> None:
    assert 0 <= mean_wait_mmc_s(0.5, 1.0, 5000) < 1e-12
