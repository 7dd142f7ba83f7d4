"""Loads on a made-up replica whose times are plain numbers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.formulas.queueing import mean_wait_md1_s
from suanli.nouns.serving_load import Percentiles
from suanli.plan.serving import simulate as simulating
from suanli.plan.serving.load import Requests, closed_loop, open_loop, saturation, static_batch, tpot_s
from suanli.plan.serving.simulate import poisson, simulate


@dataclass(frozen=True)
class Plain:
    """A step of 10 ms, 0.1 ms a sequence, 1 µs a sequence and 1,000 keys; a prefill of 0.1 ms a token."""

    base: float = 0.010
    each: float = 1e-4
    key: float = 1e-9
    token: float = 1e-4

    def decode_s(self, sequences: Any, keys: Any) -> Any:
        return self.base + self.each * sequences + self.key * sequences * keys

    def prefill_s(self, tokens: Any, keys: Any) -> Any:
        return self.token * tokens + 0 * keys


PLAIN, REQUESTS = Plain(), Requests(isl=1000, osl=200)


def test_a_static_batch() -> None:
    found = static_batch(PLAIN, 4, REQUESTS)
    step = 0.010 + 4e-4 + 4 * 1100e-9
    assert found.prefill_s == found.ttft_s == pytest.approx(0.4)
    assert found.tpot_s == pytest.approx(step)
    assert found.tokens_per_s == pytest.approx(4 * 200 / (0.4 + 199 * step))


def test_users_who_never_rest() -> None:
    found = closed_loop(PLAIN, 8, REQUESTS, 100)
    step = 0.010 + 8e-4 + 8 * 1100e-9
    assert found.tpot_s == pytest.approx(step + 8 / 200 * 0.1)
    assert (found.waiting, found.queue_s) == (0, 0)
    assert found.ttft_s == pytest.approx(step / 2 + 0.1)
    assert found.tokens_per_s == pytest.approx(8 * 200 / (found.ttft_s + 199 * found.tpot_s))


def test_users_beyond_the_cache_wait() -> None:
    full, over = closed_loop(PLAIN, 10, REQUESTS, 10), closed_loop(PLAIN, 25, REQUESTS, 10)
    assert over.tokens_per_s == pytest.approx(full.tokens_per_s)
    assert over.waiting == 15
    assert over.queue_s == pytest.approx(15 / full.requests_per_s)  # Little's law
    assert over.ttft_s == pytest.approx(full.ttft_s + over.queue_s)


def test_saturation_names_its_limit() -> None:
    by_memory = saturation(PLAIN, REQUESTS, 4)
    assert (by_memory.limit, by_memory.concurrency) == ("KV memory", 4)
    assert by_memory.tokens_per_s == pytest.approx(4 / tpot_s(PLAIN, 4, REQUESTS))
    slow = saturation(Plain(each=0.01), REQUESTS, 4096)
    assert slow.limit == "arithmetic"
    assert slow.tokens_per_s < 1 / (0.01 + 0.1 / 200)  # each sequence costs that much a token


def test_an_open_loop_balances() -> None:
    found = open_loop(PLAIN, 2.0, REQUESTS, 100)
    assert found.concurrency == pytest.approx(2.0 * 200 * found.tpot_s, rel=1e-6)  # Little's law
    assert found.queue_s == pytest.approx(mean_wait_md1_s(0.2, 0.1))
    assert not found.saturated
    over = open_loop(PLAIN, 1e3, REQUESTS, 100)
    assert over.saturated
    assert over.ttft_s is None
    assert over.queue_s is None


@settings(max_examples=50)
@given(st.floats(0.01, 5.0), st.integers(1, 200))
def test_more_requests_are_never_faster(rate: float, most: int) -> None:
    few, many = (open_loop(PLAIN, each, REQUESTS, most) for each in (rate, 1.5 * rate))
    assert many.tpot_s >= few.tpot_s * (1 - 1e-9)
    assert many.tokens_per_s >= few.tokens_per_s * (1 - 1e-9)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7])
def test_the_simulation_waits_as_md1_says(load: float) -> None:
    """One prompt a step and answers of one token: a server of constant time. Mean wait within 3 %."""
    service = 0.1
    found = simulate(PLAIN, poisson(load / service, 200_000, seed=3), Requests(isl=1000, osl=1), 1, 1000, "Poisson")
    assert found.mean_wait_s == pytest.approx(mean_wait_md1_s(load, service), rel=0.03)
    assert found.ttft_s[50] >= service * (1 - 1e-9)


def test_a_lone_request_takes_its_prefill_and_its_steps() -> None:
    found = simulate(PLAIN, [0.0, 1000.0], REQUESTS, 8, 8192, "two, far apart")
    steps = sum(0.010 + 1e-4 + 1e-9 * (1000 + made) for made in range(1, 200))
    assert found.ttft_s[50] == pytest.approx(0.1)
    assert found.total_s[99] == pytest.approx(0.1 + steps, rel=1e-6)


def test_chunks_split_a_prompt_and_keep_the_rest_decoding() -> None:
    whole = simulate(PLAIN, [0.0, 0.5], REQUESTS, 8, 8192, "two")
    parts = simulate(PLAIN, [0.0, 0.5], REQUESTS, 8, 100, "two")
    assert parts.ttft_s[99] > whole.ttft_s[99]  # ten steps, the first request's tokens between them
    assert parts.total_s[99] == pytest.approx(whole.total_s[99], rel=0.1)


def test_cache_room_makes_requests_wait() -> None:
    one = simulate(PLAIN, np.zeros(5), REQUESTS, 1, 8192, "at once")
    five = simulate(PLAIN, np.zeros(5), REQUESTS, 5, 8192, "at once")
    assert one.mean_wait_s > five.mean_wait_s
    assert five.mean_wait_s == 0  # 5,000 tokens are one chunk


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 3000), st.integers(0, 99))
def test_every_request_ends_and_none_before_it_came(count: int, most: int, chunk: int, seed: int) -> None:
    found = simulate(PLAIN, poisson(3.0, count, seed), Requests(isl=300, osl=20), most, chunk, "Poisson")
    assert found.requests == count - int(0.1 * count)
    assert found.mean_wait_s >= 0
    assert all(0 < found.ttft_s[percent] <= found.total_s[percent] for percent in found.ttft_s)


def stepped(monkeypatch: pytest.MonkeyPatch, *given: Any) -> Percentiles:
    """Every step by itself."""
    with monkeypatch.context() as patched:
        patched.setattr(simulating, "_quiet", lambda times, at, now, requests, until: now)
        return simulate(*given)


@pytest.mark.parametrize(("rate", "most", "chunk", "osl"), [
    (0.2, 64, 8192, 200), (3.0, 8, 300, 50), (8.0, 4, 8192, 20), (1.0, 1, 1000, 30), (0.5, 16, 8192, 1),
])  # fmt: skip
def test_steps_taken_together_are_those_taken_one_by_one(
    monkeypatch: pytest.MonkeyPatch, rate: float, most: int, chunk: int, osl: int
) -> None:
    given = (PLAIN, poisson(rate, 300, 5), Requests(isl=1000, osl=osl), most, chunk, "Poisson")
    together, alone = simulate(*given), stepped(monkeypatch, *given)
    for name in ("ttft_s", "tpot_s", "total_s"):
        assert getattr(together, name) == pytest.approx(getattr(alone, name), rel=1e-9)
    assert together.mean_wait_s == pytest.approx(alone.mean_wait_s, rel=1e-9, abs=1e-12)


def test_a_lone_long_answer_takes_few_steps_of_ours() -> None:
    """8,192 tokens each for 2,000 requests far apart: sixteen million steps of an engine."""
    started = time.process_time()
    simulate(PLAIN, poisson(0.001, 2000, 1), Requests(isl=1000, osl=8192), 64, 8192, "Poisson")
    assert time.process_time() - started < 3  # was half a minute
