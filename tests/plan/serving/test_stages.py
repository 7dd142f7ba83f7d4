"""Stages beside the model: the least of all is the rate, the sum of all the time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.plan.serving.stages import MODEL, StageAsked, staged

PRE, POST = StageAsked("pre", 0.005, 4), StageAsked("post", 0.002, 4)


def test_far_from_full_the_times_add_up() -> None:
    """0.005 + 1.5 + 0.002 s, and waits that one worker of four hardly causes."""
    found = staged((PRE, POST), 5.0, 8.0, 1.5, 100)
    assert found.latency_s == pytest.approx(1.507, abs=1e-6)
    assert (found.limit, found.limit_per_s, found.requests_per_s) == (MODEL, 8.0, 5.0)
    assert found.tokens_per_second == 500
    assert [each.capacity_per_s for each in found.stages] == [800, 2000]
    assert [each.busy for each in found.stages] == pytest.approx([0.00625, 0.0025])


def test_the_slowest_stage_is_the_rate() -> None:
    """Two workers of 0.5 s: four a second, though ten come and the model takes eight."""
    found = staged((StageAsked("pre", 0.5, 2), POST), 10.0, 8.0, 1.5, 100)
    assert (found.limit, found.requests_per_s, found.tokens_per_second) == ("pre", 4.0, 400.0)
    assert found.stages[0].wait_s is None and found.latency_s is None
    assert found.stages[1].wait_s is not None


def test_waits_are_erlangs() -> None:
    """One worker of 0.1 s, five a second: half busy, M/M/1 waits 0.1 s."""
    found = staged((StageAsked("pre", 0.1, 1),), 5.0, 100.0, 1.0, 10)
    assert found.stages[0].wait_s == pytest.approx(0.1)
    assert found.latency_s == pytest.approx(1.2)


def test_a_model_whose_queue_grows_has_no_latency() -> None:
    assert staged((PRE,), 5.0, 4.0, None, 10).latency_s is None


@given(st.floats(0.1, 500.0), st.floats(1.0, 100.0), st.integers(1, 8), st.integers(1, 8))
def test_more_workers_never_finish_fewer(offered: float, model: float, few: int, more: int) -> None:
    low, high = (staged((StageAsked("pre", 0.2, each), POST), offered, model, 1.0, 10) for each in (few, few + more))
    assert low.requests_per_s <= high.requests_per_s <= min(offered, model)
    if low.latency_s is not None and high.latency_s is not None and low.requests_per_s == high.requests_per_s:
        assert high.latency_s <= low.latency_s * (1 + 1e-9)
