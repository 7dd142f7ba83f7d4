"""Operators of inference: values worked by hand, and laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas import decoding as d

POSITIVE = st.floats(1.0, 1e6)


def test_a_product_of_one_row_reads_its_weights() -> None:
    # 1,000 × 2,000 weights of 2 bytes and 3,000 activations of 2 bytes: 4,006,000 bytes
    assert d.streamed_bytes(1, 1000, 2000, 1, 2.0, 2.0) == 4_006_000
    assert d.streamed_product_s(1, 1000, 2000, 1, 2.0, 2.0, 4.006e6, 1e30) == pytest.approx(1.0)


def test_a_product_of_many_rows_computes() -> None:
    # 2 · 10 · 10⁶ · 1,000 · 2,000 operations at 4e13 a second
    assert d.streamed_product_s(1e6, 1000, 2000, 10, 1e-9, 1e-9, 1e30, 4e13) == pytest.approx(1.0)
    assert d.streamed_product_s(0, 1000, 2000, 10, 2.0, 2.0, 1e12, 1e12) == 0


@pytest.mark.parametrize(
    ("tokens", "met"),
    # DeepSeek-V3: 8 of 256 experts a token; 256 · (1 − (248/256)^T)
    [(1, 8), (16, 102), (64, 222), (256, 256)],
)
def test_distinct_experts(tokens: int, met: int) -> None:
    assert round(d.distinct_experts(256, 8, tokens)) == met


def test_caches_and_loops() -> None:
    # Llama-3.1-8B, 128 sequences of 1,280: 32 layers × 8 heads × 256 numbers of 2 bytes
    assert 32 * d.cache_read_bytes(128, 1280, 8 * 256, 2.0) == pytest.approx(21.47e9, rel=1e-3)
    assert d.time_per_output_token_s(0.010, 0.1, 32, 1000) == pytest.approx(0.0132)
    assert d.closed_loop_tokens_per_s(10, 101, 1.0, 0.01) == pytest.approx(505)  # 10 · 101 / (1 + 100 · 0.01)


@given(st.integers(1, 512), st.integers(1, 64), st.floats(1, 1e4), st.floats(1, 1e4))
def test_more_tokens_meet_no_fewer_experts_and_never_more_than_there_are(
    experts: int, chosen: int, tokens: float, more: float
) -> None:
    chosen = min(chosen, experts)
    few, many = d.distinct_experts(experts, chosen, tokens), d.distinct_experts(experts, chosen, tokens + more)
    assert chosen * (1 - 1e-9) <= few <= many * (1 + 1e-12) <= experts * (1 + 1e-9)


@given(POSITIVE, POSITIVE, POSITIVE, st.floats(1.0, 4.0))
def test_more_bandwidth_is_never_slower(rows: float, n: float, k: float, more: float) -> None:
    slow = d.streamed_product_s(rows, n, k, 1, 2.0, 2.0, 1e12, 1e15)
    assert d.streamed_product_s(rows, n, k, 1, 2.0, 2.0, more * 1e12, 1e15) <= slow * (1 + 1e-9)


@pytest.mark.parametrize(
    ("drafted", "taken", "tokens"),
    [
        (1, 0.79, 1.79),
        (3, 0.7, 1 + 0.7 + 0.49 + 0.343),
        (4, 1.0, 5),  # every draft is taken
        (8, 0.0, 1),  # none: the model's own token remains
    ],
)
def test_tokens_of_a_speculative_step(drafted: int, taken: float, tokens: float) -> None:
    assert d.speculative_tokens(drafted, taken) == pytest.approx(tokens)


@given(st.integers(0, 64), st.floats(0.0, 0.999))
def test_tokens_of_a_step_are_the_closed_sum(drafted: int, taken: float) -> None:
    assert d.speculative_tokens(drafted, taken) == pytest.approx((1 - taken ** (drafted + 1)) / (1 - taken))
