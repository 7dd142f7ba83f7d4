"""Periods of sequences, found and not found."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.explain.period import find_period, phase


@given(st.lists(st.integers(0, 30), min_size=4, max_size=40, unique=True), st.integers(3, 8))
def test_a_step_of_different_kernels_is_found_whole(step: list[int], times: int) -> None:
    assert find_period(np.array(step * times)) == len(step)


def test_layers_inside_a_step_are_not_the_step() -> None:
    step = [0, *([1, 2, 3, 4] * 24), 5, 6, 7, 8, 9]  # embedding, 24 layers, head and optimizer: 102 kernels
    assert find_period(np.array(step * 4)) == 102


def test_layers_of_a_single_step_are_no_period() -> None:
    step = [50 + k for k in range(12)] + [1, 2, 3, 4] * 20 + [80 + k for k in range(11)]
    # at a distance of 4, 76 names of 99 are equal: 77 %, below what a period needs
    assert find_period(np.array(step)) is None


def test_a_few_kernels_that_come_and_go_do_not_hide_it() -> None:
    rng = np.random.default_rng(1)
    names = np.tile(np.arange(60), 12)
    names[rng.choice(len(names), 6, replace=False)] = 99  # 6 of 720: at most 12 of the pairs differ
    assert find_period(names) == 60


def test_noise_has_none() -> None:
    assert find_period(np.random.default_rng(2).integers(0, 50, 500)) is None


@pytest.mark.parametrize("names", [[], [1], [1, 2], [1, 2, 1, 2]])
def test_too_few_rows_have_none(names: list[int]) -> None:
    assert find_period(np.array(names, dtype=np.int64)) is None


def test_it_is_found_in_n_log_n() -> None:
    names = np.tile(np.arange(1000), 200)
    begin = time.process_time()
    assert find_period(names) == 1000
    assert time.process_time() - begin < 3  # 200,000 rows: comparing every distance would take minutes


def test_a_step_begins_after_the_longest_wait() -> None:
    # periods of 3; before the second kernel of each the device waits 50, else 1
    start = np.array([0, 60, 71, 82, 142, 153, 164, 224, 235])
    assert phase(start, start + 10, 3) == 1
