"""`train` with failures, with a goodput of a file, with GPU-hours given: figures published, words, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import suanli
from suanli.catalog.run_spread import run_spread
from suanli.errors import InputError, SuanliError

RUN: dict[str, Any] = {"tokens": "15.6T", "gpu": "h100-sxm", "gpus": 16384}
LLAMA = "llama-3.1-405b"
FAILURES = {"failures": "llama-3-405b", "restart": "10min", "checkpoint_save": "60s"}
PUBLISHED = 30.84e6  # GPU-hours: arXiv:2407.21783, model card


@pytest.fixture(scope="module")
def plan() -> Any:
    return suanli.train(LLAMA, **RUN, **FAILURES)


@pytest.mark.parametrize("more", [{}, {"seq": 8192}, {"seq": 8192, "global_batch": 2048}])
def test_the_published_hours_lie_within_the_interval(more: dict[str, Any]) -> None:
    """By the median of published runs and by the planner. No row of the table of runs holds these hours."""
    found = suanli.train(LLAMA, **RUN, **FAILURES, **more)
    low, high = found.gpu_hours_paid_interval
    assert low < PUBLISHED < high
    assert low < found.gpu_hours_paid < high
    assert high / low < 2  # and the interval says something


def test_the_interval_in_days_and_money(plan: Any) -> None:
    """Days are hours over 24 · 16,384; the price is 2.99 USD an hour."""
    for end in (0, 1):
        hours = plan.gpu_hours_paid_interval[end]
        assert plan.days_interval[end] == pytest.approx(hours / 24 / 16384)
        assert plan.cost_interval_usd[end] == pytest.approx(hours * 2.99)


def test_useful_is_goodput_times_mfu(plan: Any) -> None:
    """The goodput is the verb's, to the last digit; the useful part is of all hours paid, under each convention."""
    other = suanli.goodput(gpus=16384, **FAILURES)
    assert plan.goodput == other.goodput == pytest.approx(0.8526, abs=5e-5)
    assert plan.useful_mfu == pytest.approx(plan.mfu * plan.goodput)
    assert plan.useful_mfu_by_convention["causal"] == pytest.approx(plan.useful_mfu, rel=1e-9)


def test_what_the_interval_is_made_of(plan: Any) -> None:
    mfu, mtti, goodput = plan.spreads
    assert mfu.low < plan.mfu < mfu.high
    assert mfu.why.startswith(
        "20 published runs most like it, of 5 publications, each told from the runs of the others"
    )
    assert (mtti.low / 3600, mtti.high / 3600) == pytest.approx((2.853, 3.358), abs=1e-3)  # Garwood, 419 seen
    assert (goodput.low, goodput.high) == plan.goodput_interval
    assert goodput.low < plan.goodput < goodput.high


def test_a_predicted_utilisation_has_its_own_spread() -> None:
    """Its 80 % half-width in the logarithm times what nine of ten held-out steps need."""
    found = suanli.train(LLAMA, **RUN, seq=8192, global_batch=2048)
    (low, high), mfu = found.mfu_interval, found.spreads[0]
    ratio = run_spread().ninety_over_eighty
    assert mfu.high / mfu.low == pytest.approx((high / low) ** ratio)
    assert "1,546 published steps of 12 sets predicted without their fold" in mfu.why
    assert found.spreads[1].why == "taken as 1: nothing is lost"


@pytest.mark.parametrize(
    ("convention", "percent"), [("6n-all", 34.58), ("causal", 35.84)]
)  # 6·405,853,388,800·15.6e12 / (30.84e6·3600·989.4e12) = 0.34582; 3.93739e25 over the same = 0.35844
def test_whole_programme_utilisation(convention: str, percent: float) -> None:
    found = suanli.train(LLAMA, **RUN, seq=8192, gpu_hours="30.84M", convention=convention)
    assert round(100 * found.useful_mfu, 2) == percent
    assert round(100 * found.useful_mfu_by_convention["6n-all"], 1) == 34.6
    assert round(100 * found.useful_mfu_by_convention["causal"], 1) == 35.8
    assert found.gpu_hours_paid == PUBLISHED
    assert found.days == pytest.approx(PUBLISHED / 24 / 16384)
    assert found.gpu_hours_paid_interval is None
    assert found.reasons["gpu_hours_paid_interval"] == "the GPU-hours are given"


def test_hours_paid_and_a_goodput_tell_the_utilisation_while_running() -> None:
    found = suanli.train(LLAMA, **RUN, seq=8192, gpu_hours="30.84M", **FAILURES)
    assert found.useful_mfu == pytest.approx(0.35844, abs=1e-5)
    assert found.mfu == pytest.approx(0.35844 / 0.85255, abs=1e-4)  # 42.0 %: the paper prints 38 to 43
    assert found.gpu_hours_paid == pytest.approx(PUBLISHED)


def test_a_range_is_a_spread() -> None:
    """√(0.38·0.44) = 0.40890; hours at both ends."""
    found = suanli.train(LLAMA, **RUN, mfu="38%..44%")
    assert found.mfu == pytest.approx(0.40890, abs=1e-5)
    low, high = (suanli.train(LLAMA, **RUN, mfu=value).gpu_hours_paid for value in (0.44, 0.38))
    assert found.gpu_hours_paid_interval == pytest.approx((low, high))
    assert found.spreads[0].why == "the range given"


def test_a_utilisation_that_is_given_is_exact_and_says_so() -> None:
    found = suanli.train(LLAMA, **RUN, mfu=0.4, goodput=0.9)
    assert found.gpu_hours_paid_interval is None
    assert found.reasons["gpu_hours_paid_interval"] == (
        "as given: taken as exact; a range gives it a spread (--mfu 38%..44%)"
    )


# --- a goodput from elsewhere -------------------------------------------------------------------------------------

PLANNED = {"mtbf_node": "6400h", "detect": "2min", "restart": "8min", "checkpoint_save": "40s",
           "checkpoint_mode": "async", "checkpoint_stall": "3s"}  # fmt: skip


def test_a_result_and_its_file_are_the_same(tmp_path: Path) -> None:
    """Options that `train` has not come by the file: nodes, asynchronous saving."""
    other = suanli.goodput(gpus=512, **PLANNED)
    path = tmp_path / "goodput.json"
    path.write_text(other.to_json())
    run = {"tokens": "1T", "gpu": "h100-sxm", "gpus": 512, "mfu": "40%..50%"}
    plans = [suanli.train("llama-3-8b", **run, goodput=each) for each in (other, path, str(path))]
    assert {each.goodput for each in plans} == {other.goodput}
    assert len({each.gpu_hours_paid_interval for each in plans}) == 1
    assert plans[0].goodput_interval is not None


def test_a_measured_goodput_is_taken_as_it_is(tmp_path: Path) -> None:
    """Nine hours of ten."""
    log = tmp_path / "events.csv"
    log.write_text("start,end,kind\n0h,5h,training\n5h,6h,restart\n6h,10h,training\n")
    found = suanli.train("llama-3-8b", tokens="1T", gpu="h100-sxm", gpus=8, mfu="40%..50%",
                         goodput=suanli.goodput(events=log))  # fmt: skip
    assert found.goodput == pytest.approx(0.9)
    assert found.goodput_interval is None
    assert found.spreads[1].why == "measured (the result of goodput): one log, taken as exact"


def test_another_number_of_gpus_is_a_contradiction() -> None:
    other = suanli.goodput(gpus=512, **PLANNED)
    with pytest.raises(InputError) as caught:
        suanli.train("llama-3-8b", tokens="1T", gpu="h100-sxm", gpus=1024, mfu=0.4, goodput=other)
    assert str(caught.value) == (
        "the result of goodput is of another number of GPUs in --goodput; got 512; expected 1,024, as --gpus says."
    )


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({"goodput": 0.9, "failures": "llama-3-405b"},
         ["one goodput is needed in --goodput; got --goodput and --failures; expected --goodput, or --failures with "
          "--restart and --checkpoint-save."]),
        ({"restart": "10min"},
         ["--restart without failures in --failures; expected --failures llama-3-405b, or no such option."]),
        ({"failures": "llama-3-405b"},
         ["a plan needs the time to save a checkpoint in --checkpoint-save; expected --checkpoint-save 60s.",
          "a plan needs the time to restart after an interrupt in --restart; expected --restart 60s."]),
        ({"failures": "lama-3", "restart": "10", "checkpoint_save": "60s"},
         ["unknown failure table 'lama-3' in --failures; expected one of 5 known; nearest: llama-3-405b. `suanli "
          "goodput` takes the rate itself too: --mtbf, --mtbf-node or --mtti.",
          "a number without its unit in --restart; got '10'; expected a number like 54d."]),
        ({"mfu": "50%..40%"},
         ["no range of a utilisation in --mfu; got '50%..40%'; expected two parts above 0, at most 1, the smaller "
          "first: 38%..44%."]),
        ({"mfu": "x..40%"}, ["not a number with a unit in --mfu; got 'x'"]),
        ({"gpu_hours": "30M", "mfu": 0.4},
         ["one utilisation is needed; got --mfu and --gpu-hours; expected one of them."]),
        ({"gpu_hours": "3M"}, ["no machine exceeds its peak in --gpu-hours; got an HFU of 357.4%"]),
        ({"gpu_hours": 0}, ["gpu hours is not possible in --gpu-hours; got 0; expected above 0."]),
        ({"goodput": "nowhere.json"}, ["the file cannot be opened: No such file or directory in nowhere.json."]),
        ({"goodput": 0}, ["goodput is not possible in --goodput; got 0; expected above 0, at most 1."]),
    ],
)  # fmt: skip
def test_refusals(options: dict[str, Any], messages: list[str]) -> None:
    with pytest.raises(SuanliError) as caught:
        suanli.train(LLAMA, **(RUN | options))
    for message in messages:
        assert message in str(caught.value)


def test_failures_need_a_number_of_gpus() -> None:
    with pytest.raises(InputError, match="a rate per GPU or node needs the number of GPUs in --gpus"):
        suanli.train(LLAMA, tokens="15.6T", gpu="h100-sxm", deadline="60d", **FAILURES)


def test_the_json_holds_it(plan: Any) -> None:
    document = json.loads(plan.to_json())
    assert document["inputs"]["failures"] == "llama-3-405b"
    found = document["result"]
    assert found["gpu_hours_paid_interval"] == list(plan.gpu_hours_paid_interval)
    assert [each["name"] for each in found["spreads"]] == ["mfu", "mtti_s", "goodput"]
    assert [each["name"] for each in found["assumed"]] == ["goodput", "MFU", "price", "power"]
