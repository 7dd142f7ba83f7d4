"""Laws of whole answers of `suanli.infer`: ideal against expected, users, money, bandwidth, rates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suanli
from suanli.catalog.serving_presets import serving_preset_names
from suanli.nouns.result import Result
from suanli.plan.serving.answer import answer as whole_answer

MODELS = st.sampled_from(["llama-3.1-8b", "llama-3.1-70b", "gpt-oss-120b", "mixtral-8x7b", "deepseek-v3"])
DTYPES = {"deepseek-v3": "fp8-block", "gpt-oss-120b": "mxfp4"}


def answer(model: str, users: int, preset: str = "vllm", gpu: str = "h200", **options: Any) -> Result:
    return suanli.infer(
        model, gpu=gpu, gpus=8, dtype=DTYPES.get(model, "fp8"), concurrency=users, preset=preset, **options
    )


@settings(max_examples=25)
@given(MODELS, st.integers(1, 256), st.sampled_from(["vllm", "tensorrt-llm", "sglang"]), st.integers(1, 4096))
def test_ideal_is_never_slower_than_expected(model: str, users: int, preset: str, isl: int) -> None:
    found = answer(model, users, preset, isl=isl)
    assert found.ideal.tpot_s <= found.tpot_s
    assert found.ideal.ttft_s <= found.ttft_s
    assert found.ideal.tokens_per_second >= found.tokens_per_second


@settings(max_examples=25)
@given(MODELS, st.integers(1, 200), st.integers(1, 200))
def test_more_users_never_get_fewer_tokens_together(model: str, users: int, more: int) -> None:
    """Until the cache is full, and from there on as many."""
    few, many = answer(model, users), answer(model, users + more)
    assert many.tokens_per_second >= few.tokens_per_second * (1 - 1e-9)
    assert many.tpot_s >= few.tpot_s * (1 - 1e-9)


@settings(max_examples=25)
@given(MODELS, st.integers(1, 300), st.floats(0.1, 100.0), st.floats(0.05, 1.0))
def test_cost_times_throughput_is_the_bill(model: str, users: int, price: float, used: float) -> None:
    found = answer(model, users, price=price, utilisation=used)
    hourly = found.usd_per_million_tokens * found.tokens_per_second * 3600 / 1e6 * used
    assert hourly == pytest.approx(8 * price)
    assert found.cost.usd_per_million_blended == pytest.approx(found.usd_per_million_tokens / 2)  # as many tokens in


@settings(max_examples=15)
@given(MODELS, st.integers(1, 64), st.floats(1.0, 4.0))
def test_more_bandwidth_is_never_slower(model: str, users: int, more: float) -> None:
    """One GPU whose memory alone is faster; the answer's functions, no catalogue row."""
    asked = answer(model, users, isl=256, osl=256).asked["service"]
    device = asked.device
    faster = replace(asked, device=replace(device, memory_bytes_per_s=more * device.memory_bytes_per_s))
    slow, fast = whole_answer(asked), whole_answer(faster)
    assert fast.tpot_s <= slow.tpot_s * (1 + 1e-9)
    assert fast.tokens_per_second >= slow.tokens_per_second * (1 - 1e-9)


@settings(max_examples=20)
@given(st.floats(0.2, 6.0))
def test_a_rate_and_its_users_say_the_same(rate: float) -> None:
    """Little's law on the answer: requests inside are the rate times the time of one."""
    found = suanli.infer("llama-3.1-70b", gpu="h100-sxm", gpus=8, dtype="fp8", rate=rate)
    inside = rate * 1024 * found.tpot_s
    assert inside == pytest.approx(found.load.concurrency, rel=1e-3)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 400), st.sampled_from([1, 2, 8]), st.sampled_from(serving_preset_names()), st.integers(1, 20_000))
def test_the_ideal_is_never_slower_than_what_is_expected(users: int, tp: int, preset: str, isl: int) -> None:
    found = suanli.infer("llama-3.1-8b", gpu="h100-sxm", gpus=tp, tp=tp, concurrency=users, preset=preset, isl=isl)
    assert found.ideal.tpot_s <= found.tpot_s * (1 + 1e-9)
    assert found.ideal.tokens_per_second >= found.tokens_per_second * (1 - 1e-9)
    # money of an hour over tokens of an hour is money of a token
    million = found.cost.usd_per_hour * found.gpus / found.cost.gpus / (found.tokens_per_second * 3600 / 1e6)
    assert found.usd_per_million_tokens == pytest.approx(million)
