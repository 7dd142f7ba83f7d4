"""Formulas of serving, by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas import serving as f
from suanli.formulas.running import run_cost


def test_blocks() -> None:
    """17 positions in blocks of 16 are two; a window of 4,096 with a chunk of 8,192 is ⌈12,287/16⌉ + 1 = 769."""
    assert [f.full_blocks(n, 16) for n in (1, 16, 17)] == [1, 1, 2]
    assert f.window_blocks(16_384, 4096, 8192, 16) == 769
    assert f.window_blocks(100, 4096, 8192, 16) == 7 + 1


def test_a_block_that_holds_a_state() -> None:
    """3,207,168 / 4,096 = 783 positions, to a multiple of 16."""
    assert f.state_block(3_207_168, Fraction(4096), 16) == 784
    assert f.state_block(1, Fraction(4096), 16) == 16


def test_groups_are_as_large_as_the_smallest_kind() -> None:
    """Or as the largest, where that is less than a quarter more: 10 and 52 give 10; 9 and 10 give 10; 12 and 12, 12."""
    assert [f.group_layers(each) for each in ([10, 52], [9, 10], [12, 12], [8, 10], [3])] == [10, 10, 12, 8, 3]


def test_sequences() -> None:
    assert f.max_sequences(1000, 33, 32) == 1000 // 64
    assert f.equivalent_tokens(33.04, 32_768) == pytest.approx(1_082_654.72)


def test_what_is_left_of_memory() -> None:
    """100 of memory, 40 of weights, 10 of activations, 0.9."""
    assert f.cache_of_total_bytes(100, 40, 10, 0.9) == 40
    assert f.cache_of_free_bytes(100, 40, 10, 0.9) == 45
    assert f.cache_static_bytes(100, 40, 10, 0.85) == 45
    assert f.cache_static_bytes(100, 40, 10, 0.95) == 50


def test_a_buffer() -> None:
    """2 tokens of (3 + 5) numbers of 2 B, 1 · 7 logits and 4 · 2 · 6 scores of 4 B."""
    assert f.compute_buffer_bytes(2, 3, 5, 2, 1, 7, 4, 6) == 2 * 8 * 2 + 4 * (7 + 48)


def test_scales() -> None:
    """300 inputs in groups of 128 are 3; 100 outputs: 2 B each, and ⌈100 · 4 / 8⌉ B of zeros; 4 B an input; 16 more."""
    assert f.scale_bytes(300, 100, 128, 1, 2, 4, 4, 16) == 3 * 100 * 2 + 3 * 50 + 1200 + 16
    assert f.scale_bytes(300, 100, 128, 128, 4, 0, 0, 0) == 3 * 1 * 4
    assert f.packed_bytes(300, 100, Fraction(17, 4)) == -(-300 * 100 * 17 // 32)


def test_money() -> None:
    """Two GPUs at 1.8 $/h and 1,000 tokens/s: 1 $ a million; 2 $ at half the time."""
    assert f.tokens_gpu_hours(3_600_000, 1000, 2) == 2
    assert f.usd_per_million_tokens(1.8, 2, 1000, 1) == pytest.approx(1)
    assert f.usd_per_million_tokens(1.8, 2, 1000, 0.5) == pytest.approx(2)
    assert f.blended_usd(1, 4, 3, 1) == 1.75


def test_energy() -> None:
    assert f.joules_per_token(500, 8, 2000, 1.5) == 3
    assert f.energy_of_readings([100, 100, 300], [0, 5, 10]) == 500 + 1000


@given(st.floats(0.1, 100), st.integers(1, 1000), st.floats(1, 1e6))
def test_a_rate_and_its_cost_turn_around(price: float, gpus: int, rate: float) -> None:
    usd = f.usd_per_million_tokens(price, gpus, rate, 1)
    assert f.tokens_per_s_for_cost(price, gpus, usd) == pytest.approx(rate)
    assert usd == run_cost(f.tokens_gpu_hours(1e6, rate, gpus), price, 1)


@given(st.integers(1, 10**6), st.integers(1, 10**5), st.integers(1, 10**5), st.integers(1, 512))
def test_a_window_never_takes_more_than_all_and_a_page(tokens: int, window: int, chunk: int, block: int) -> None:
    assert f.window_blocks(tokens, window, chunk, block) <= f.full_blocks(tokens, block) + 1
    assert f.window_blocks(tokens, window, chunk, block) * block >= min(tokens, window)
