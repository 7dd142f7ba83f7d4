"""`train` with a global batch: the planner predicts the utilisation and finds the GPUs for a deadline."""

from __future__ import annotations

import pytest

import suanli
from suanli.api.forecasts import MOST_GPUS, sizes
from suanli.errors import InputError

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


@pytest.mark.parametrize("device", ["h100-64gb-96gb-sxm", "h100-pcie", "tpu7x"])
def test_where_the_planner_lacks_something_it_says_what_and_takes_the_median(device):
    found = suanli.train("llama-3.1-8b", tokens="1T", gpu=device, seq=4096, gpus=64, global_batch=512)
    assert (found.layout, found.mfu_interval) == (None, None)
    assert any(note.startswith("no prediction: ") and device in note for note in found.notes)
    assert any("median of" in note for note in found.notes)
    assert not any("--global-batch changes nothing" in note for note in found.notes)


def test_where_there_is_no_median_either_both_reasons_are_said():
    with pytest.raises(InputError) as caught:
        suanli.train("llama-3.1-8b", tokens="1T", gpu="mi300x", seq=4096, gpus=64, global_batch=512)
    said = str(caught.value)
    assert said.startswith("no bf16 training run on mi300x is published")
    assert "no prediction: a group leaves its node, and the adapters of mi300x-platform" in said


def test_one_node_of_unknown_adapters_is_predicted():
    assert suanli.train("llama-3.1-8b", tokens="1T", gpu="mi300x", seq=4096, gpus=8, global_batch=64).layout


CANNOT_BE = [
    ("llama-3.1-405b", {"gpus": 8, "global_batch": 512}, r"^no layout fits the memory in --memory-limit; "),
    ("llama-3.1-8b", {"gpus": 37, "global_batch": 5}, r"^no layout is legal in --gpus; "),
    (
        "llama-3.1-8b", {"deadline": "1h", "global_batch": 8},
        r"^no number of GPUs meets the deadline at this batch in --deadline; got 30,517,578 steps of 8 sequences in "
        r"60.00 min; expected a later deadline, or a larger --global-batch\.$",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("model", "asked", "message"), CANNOT_BE, ids=["memory", "layout", "deadline"])
def test_a_run_that_cannot_be_is_an_error(model, asked, message):
    with pytest.raises(InputError, match=message) as caught:
        suanli.train(model, **RUN, **asked)
    assert caught.value.exit_code == 2


def test_a_batch_beside_a_given_utilisation_changes_nothing():
    notes = suanli.train("llama-3.1-8b", **RUN, gpus=64, global_batch=512, mfu=0.4).notes
    assert any("--global-batch changes nothing" in note for note in notes)


def test_numbers_machines_come_in():
    found = sizes(8, 20)
    assert found[:8] == [24, 32, 40, 48, 64, 72, 80, 96]
    assert max(found) <= MOST_GPUS
    assert all(each % 8 == 0 for each in found)
