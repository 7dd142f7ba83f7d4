"""Speculative decoding: what a step of several tokens costs, what drafts cost, and when they stop being worth it."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.catalog.devices import find_device
from suanli.catalog.serving_presets import find_serving_preset
from suanli.nouns.serving import ServingLayout
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.replicas import build_replica
from suanli.plan.serving.speculate import OWN_LAYER, Drafting, Speculating, head_of, own_layer_s, speculation
from suanli.plan.serving.times import Replica
from suanli.readers.preset import read_named_preset

read = functools.cache(read_named_preset)


def replica(model: str = "llama-3.1-70b", dtype: str = "fp8", preset: str = "vllm", tp: int = 8) -> Replica:
    profile = find_serving_preset(preset).profile
    return build_replica(read(model), find_device("h100-sxm"), ServingLayout(tp=tp), Precision.of(dtype), profile)


def drafting(tokens: int = 3, acceptance: float = 0.7, **options: Any) -> Speculating:
    return Speculating(replica=replica(), drafting=Drafting(draft_tokens=tokens, acceptance=acceptance, **options))


def test_a_step_of_several_tokens_reads_weights_and_cache_once() -> None:
    """Ideal engine, one sequence: four rows read what one row reads; their activations and arithmetic are little."""
    one, four = (replica(preset="ideal").decode_parts(1.0, 4096.0, tokens) for tokens in (1.0, 4.0))
    assert four.weights == pytest.approx(one.weights, rel=0.01)
    assert four.cache == one.cache
    assert four.passes > one.passes and four.collectives >= one.collectives
    assert (four.layers, four.sequences) == (one.layers, one.sequences)


def test_experts_of_every_drafted_token_are_read() -> None:
    """One sequence with three drafts meets the experts of four tokens: 256 · (1 − (248/256)⁴) = 30.5 of 8."""
    served = replica("deepseek-v3", "fp8-block", "ideal")
    one, four = (served.decode_parts(1.0, 100.0, tokens).experts for tokens in (1.0, 4.0))
    assert four / one == pytest.approx(256 * (1 - (248 / 256) ** 4) / 8, rel=0.01)


def test_one_token_of_a_sequence_is_a_plain_step() -> None:
    served = replica()
    assert served.decode_s(32.0, 1000.0, 1.0) == served.decode_s(32.0, 1000.0)


def test_a_tokens_time_is_the_steps_over_its_tokens() -> None:
    rates = drafting(3, 0.7)
    step = rates.replica.decode_s(16.0, 1000.0, 4.0) + 3 * own_layer_s(rates.replica, 16.0, 1000.0)
    assert rates.decode_s(16.0, 1000.0) == pytest.approx(step / 2.533)  # 1 + 0.7 + 0.49 + 0.343
    told = speculation(rates, 16.0, 1000.0)
    assert (told.draft, told.tokens_per_step) == (OWN_LAYER, pytest.approx(2.533))
    assert told.verify_s + told.draft_s == pytest.approx(step)
    assert told.speed_up == pytest.approx(told.plain_s / (step / 2.533))


def test_one_more_layer_is_a_layer_and_the_head() -> None:
    """80 of them and one head are the whole step but for what a step and its sequences cost as such."""
    served = replica()
    parts = served.decode_parts(16.0, 1000.0).seconds(served.profile)
    work = sum(value for name, value in parts.items() if name not in ("step", "sequences"))
    head = sum(value for name, value in head_of(served).decode_parts(16.0, 1000.0).seconds(served.profile).items()
               if name not in ("step", "sequences"))  # fmt: skip
    assert 80 * (own_layer_s(served, 16.0, 1000.0) - head) + head == pytest.approx(work)
    assert 0 < head < work / 20


def test_a_draft_model_has_its_own_steps_and_reads_the_prompt_too() -> None:
    small = replica("llama-3.1-8b")
    rates = drafting(2, 0.8, name="llama-3.1-8b", replica=small)
    assert rates.draft_s(8.0, 500.0) == 2 * small.decode_s(8.0, 500.0)
    assert rates.prefill_s(1024.0, 1024.0) == pytest.approx(
        rates.replica.prefill_s(1024.0, 1024.0) + small.prefill_s(1024.0, 1024.0)
    )


def test_drafts_stop_paying_once_products_limit() -> None:
    """Speed-up falls with the batch, and far out drafts that are hardly taken cost more than they bring."""
    rates = drafting(5, 0.6)
    found = [speculation(rates, float(batch), 500.0).speed_up for batch in (1, 16, 128, 1024)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 1.5
    assert speculation(drafting(5, 0.1), 1024.0, 500.0).speed_up < 1


@settings(max_examples=30)
@given(st.integers(1, 8), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(1, 256))
def test_better_drafts_are_never_slower(tokens: int, first: float, second: float, batch: int) -> None:
    low, high = sorted((first, second))
    assert drafting(tokens, high).decode_s(float(batch), 1000.0) <= drafting(tokens, low).decode_s(float(batch), 1000.0)
