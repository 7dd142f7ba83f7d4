"""`train` with a global batch: the planner predicts the utilisation and finds the GPUs for a deadline."""

from __future__ import annotations

import pytest

import suanli
from suanli.api.forecasts import MOST_GPUS, sizes

pytest.importorskip("numpy")
RUN = {"tokens": "1T", "gpu": "h100-sxm", "seq": 4096}


@pytest.fixture(scope="module")
def plan():
    return suanli.train("llama-3.1-8b", **RUN, gpus=64, global_batch=512)


def test_the_utilisation_is_that_of_the_best_layout(plan):
    """Days are the planner's steps: 1T tokens in steps of 512 · 4,096."""
    best = suanli.layout("llama-3.1-8b", gpu="h100-sxm", gpus=64, global_batch=512, seq=4096, top=1).layouts[0]
    assert plan.layout == best.short
    assert plan.mfu == pytest.approx(best.mfu)
    steps = 1e12 / (512 * 4096)
    assert plan.days == pytest.approx(steps * best.step_time_s / 86400)
    low, high = plan.mfu_interval
    assert low < plan.mfu < high
    assert high / low == pytest.approx(best.step_time_interval_s[1] / best.step_time_interval_s[0])


def test_time_does_not_depend_on_the_convention(plan):
    other = suanli.train("llama-3.1-8b", **RUN, gpus=64, global_batch=512, convention="palm")
    assert other.days == pytest.approx(plan.days)
    assert other.mfu > plan.mfu


def test_it_is_said(plan):
    notes = suanli.train("llama-3.1-8b", **RUN, gpus=64, global_batch=512).notes
    assert any(
        note.startswith(f"MFU: predicted with the layout {plan.layout} of stack megatron-core: ") for note in notes
    )
    assert not any("--global-batch changes nothing" in note for note in notes)


def test_a_deadline_is_met_by_the_fewest():
    found = suanli.train("llama-3.1-8b", **RUN, deadline="20d", global_batch=512, goodput=0.9)
    assert found.days <= 20
    fewer = max(each for each in sizes(8, 8) if each < found.gpus)
    assert suanli.train("llama-3.1-8b", **RUN, gpus=fewer, global_batch=512, goodput=0.9).days > 20


def test_recompute_that_is_asked_for_is_kept():
    found = suanli.train("llama-3.1-8b", **RUN, gpus=64, global_batch=512, recompute="full")
    assert "recompute full" in found.layout
    assert found.hfu > found.mfu


def test_a_utilisation_that_is_given_stands():
    found = suanli.train("llama-3.1-8b", **RUN, gpus=64, global_batch=512, mfu=0.4)
    assert (found.mfu, found.layout, found.mfu_interval) == (pytest.approx(0.4), None, None)


def test_without_a_batch_it_is_the_median_as_before():
    found = suanli.train("llama-3.1-8b", **RUN, gpus=64)
    assert found.layout is None
    assert any("median of" in note for note in found.notes)


def test_where_it_cannot_predict_it_says_why_and_takes_the_median():
    found = suanli.train("llama-3.1-405b", **RUN, gpus=8, global_batch=512)
    assert (found.layout, found.mfu_interval) == (None, None)
    assert any(note.startswith("no prediction: no layout fits the memory") for note in found.notes)
    assert any("median of" in note for note in found.notes)


def test_a_deadline_nobody_meets():
    found = suanli.train("llama-3.1-8b", **RUN, deadline="1h", global_batch=8)
    assert any("no number of GPUs meets the deadline at this batch" in note for note in found.notes)


def test_numbers_machines_come_in():
    found = sizes(8, 20)
    assert found[:8] == [24, 32, 40, 48, 64, 72, 80, 96]
    assert max(found) <= MOST_GPUS
    assert all(each % 8 == 0 for each in found)
