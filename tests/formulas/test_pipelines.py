"""Bubbles by hand, and as special cases of one another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.formulas.pipelines import bubble_1f1b, bubble_dualpipe, bubble_interleaved, bubble_zero_bubble

# stages, F, B, W → the four, two chunks: (p − 1)(F + B), half of it, (p − 1)(F + B − 2W), (p/2 − 1)(F + 2B − 3W)
BY_HAND = [
    ((8, 1.0, 2.0, 1.0), (21.0, 10.5, 7.0, 6.0)),
    ((4, 2.0, 3.0, 1.5), (15.0, 7.5, 6.0, 3.5)),
    ((2, 1.0, 1.0, 0.5), (2.0, 1.0, 1.0, 0.0)),
]


@pytest.mark.parametrize(("given_times", "expected"), BY_HAND)
def test_by_hand(given_times, expected):
    pp, forward, backward, weight = given_times
    assert expected == (
        bubble_1f1b(pp, forward, backward),
        bubble_interleaved(pp, forward, backward, 2),
        bubble_zero_bubble(pp, forward, backward, weight),
        bubble_dualpipe(pp, forward, backward, weight),
    )


@given(st.integers(1, 64), st.floats(0, 9), st.floats(0, 9))
def test_one_chunk_and_no_split_is_plain(pp, forward, backward):
    assert bubble_interleaved(pp, forward, backward, 1) == bubble_1f1b(pp, forward, backward)
    assert bubble_zero_bubble(pp, forward, backward, 0) == bubble_1f1b(pp, forward, backward)


def test_one_stage_waits_for_nobody():
    assert bubble_1f1b(1, 3.0, 5.0) == 0
