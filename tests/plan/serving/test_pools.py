"""Prefill and decode apart: waits by hand, users and rates that say the same, and the pool that ends it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.plan.serving.load import Requests
from suanli.plan.serving.pools import Pools

REQUESTS = Requests(isl=1000, osl=101)


class Fixed:
    """A step takes 10 ms, a prompt 0.1 ms a token."""

    def decode_s(self, sequences: Any, keys: Any) -> Any:
        return 0.01 + 0 * sequences * keys

    def prefill_s(self, tokens: Any, keys: Any) -> Any:
        return 1e-4 * tokens + 0 * keys


def pools(prefill: int = 2, decode: int = 4, most: float = 50.0) -> Pools:
    return Pools(rates=Fixed(), prefill=prefill, decode=decode, transfer_s=0.02, most=most)


def test_a_rate_by_hand() -> None:
    """10 a second over two prefill replicas of 0.1 s: half busy, 0.5 · 0.1 / (2 · 0.5) = 0.05 s of waiting. Each of
    four decode replicas has 2.5 a second of 101 steps of 10 ms: 2.525 sequences."""
    load = pools().at_rate(10.0, REQUESTS)
    assert load.queue_s == pytest.approx(0.05)
    assert load.prefill_s == pytest.approx(0.1)
    assert load.schedule_s == pytest.approx(0.02 + 0.005)  # the cache's way, half a step
    assert load.ttft_s == pytest.approx(0.05 + 0.1 + 0.025)
    assert load.tpot_s == load.decode_s == pytest.approx(0.01)
    assert load.concurrency == pytest.approx(2.525, rel=1e-6)
    assert 4 * load.tokens_per_s == pytest.approx(1010)


def test_limits_by_hand() -> None:
    """Prefill: 2 / 0.1 = 20 a second. Decode: 4 · 50 / (101 · 0.01) = 198."""
    found = pools()
    assert found.prefill_limit(REQUESTS) == pytest.approx(20)
    assert found.decode_limit(REQUESTS) == pytest.approx(198.02, rel=1e-4)
    assert found.limit(REQUESTS).limit == "prefill pool"
    assert found.limit(REQUESTS).requests_per_s == pytest.approx(5)  # a decode replica's share
    assert pools(most=2.0).limit(REQUESTS).limit == "KV memory"


def test_beyond_the_limit_the_queue_grows() -> None:
    load = pools().at_rate(25.0, REQUESTS)
    assert load.saturated and load.queue_s is None and load.ttft_s is None
    assert 4 * load.requests_per_s == pytest.approx(20)


@given(st.floats(1.0, 400.0))
def test_users_and_rates_say_the_same(users: float) -> None:
    """Little's law: the rate times the time of a request is the users; far below the limit or hard under it."""
    found = pools(prefill=3)
    load = found.with_users(users, REQUESTS)
    rate = 4 * load.requests_per_s
    assert load.ttft_s is not None
    inside = rate * (load.ttft_s + 100 * load.tpot_s)
    assert inside == pytest.approx(users, rel=1e-3)
    assert rate < found.prefill_limit(REQUESTS)
    again = found.at_rate(rate, REQUESTS)
    assert again.concurrency == pytest.approx(load.concurrency)


def test_both_pools_are_told() -> None:
    found = pools()
    told = found.told(found.at_rate(10.0, REQUESTS), REQUESTS, 8, 1e9, "a wire")
    assert (told.prefill_gpus, told.decode_gpus, told.link) == (16, 32, "a wire")
    assert told.prefill_busy == pytest.approx(0.5)
    assert told.requests_per_s == pytest.approx(10)
