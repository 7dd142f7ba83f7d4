"""Fitting finds numbers that made the times, and is held by belief where points say nothing."""

from __future__ import annotations

import numpy as np
import pytest

from suanli.nouns.serving_profile import NUMBERS, ServingProfile
from suanli.plan.serving.accuracy import BELIEVED
from suanli.plan.serving.fitting import Served, fit_engines
from suanli.plan.serving.power import BELIEVED as POWER
from suanli.plan.serving.power import fit_power

RANDOM = np.random.default_rng(7)


def made(truth: ServingProfile, rows: int = 400, engines: tuple[str, ...] = ("vllm",)) -> Served:
    scale = np.array([5e-3, 3e-3, 5e-4, 2e-3, 40.0, 1.0, 64.0, 2e-3, 1e-3])
    features = RANDOM.uniform(0.1, 2.0, (rows, len(NUMBERS))) * scale
    numbers = np.array([getattr(truth, name) for name in NUMBERS])
    names = tuple(engines[row % len(engines)] for row in range(rows))
    return Served(features, features @ numbers, names, tuple("fold" for _ in range(rows)))


def test_times_made_by_numbers_near_belief_are_predicted() -> None:
    served = made(BELIEVED.scaled({"weights": 1.1, "layer_s": 1.3, "prefill": 0.95}))
    found = fit_engines(served, BELIEVED)
    assert np.abs(found.predict(served) / served.seconds - 1).mean() < 0.01
    assert found.shared.weights == pytest.approx(1.1 * BELIEVED.weights, rel=0.03)


def test_times_faster_than_the_data_sheet_end_at_it() -> None:
    """An engine whose caches seem read at twice the peak rate: the points are wrong, or their batch is."""
    served = made(BELIEVED.scaled({"cache": 0.4, "collective": 0.4}))
    found = fit_engines(served, BELIEVED)
    assert found.profile("vllm").cache == found.shared.cache == 1.0
    assert found.shared.collective < BELIEVED.collective / 2  # NCCL is no bound


def test_without_points_that_tell_belief_stays() -> None:
    served = made(BELIEVED, rows=2)
    assert fit_engines(served, BELIEVED).shared.sequence_s == pytest.approx(BELIEVED.sequence_s, rel=0.05)


def test_an_unseen_engine_gets_what_all_share() -> None:
    served = made(BELIEVED, engines=("vllm", "sglang"))
    found = fit_engines(served, BELIEVED)
    assert set(found.engines) == {"vllm", "sglang"}
    assert found.profile("tensorrt-llm") is found.shared


def test_a_wild_point_moves_little() -> None:
    served = made(BELIEVED)
    wild = served.seconds.copy()
    wild[0] *= 50
    tame, moved = (
        fit_engines(Served(served.features, each, served.engines, served.folds), BELIEVED)
        for each in (served.seconds, wild)
    )
    assert moved.shared.weights == pytest.approx(tame.shared.weights, rel=0.02)


def test_power_finds_the_parts_that_made_it() -> None:
    parts = RANDOM.uniform(0.1, 1.0, (200, 3))
    truth = np.array([0.45, 0.5, 0.3])
    assert fit_power(parts, parts @ truth) == pytest.approx(tuple(truth), rel=0.03)
    assert fit_power(parts[:1], parts[:1] @ np.array(POWER)) == pytest.approx(POWER, rel=0.01)
