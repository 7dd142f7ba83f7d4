"""How sure a planned run is: intervals by hand, laws, and what they are made of."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.nouns.goodput import Rate
from suanli.plan.goodput import Reliability, counted_rate, plan_goodput
from suanli.plan.spread import NINETY, RUNS, TAKEN_AS_EXACT, Doubt, goodput_of, sure
from suanli.units import HOUR

H = HOUR
LLAMA = Reliability(rate=counted_rate(419, 16384 * 54 * 24, 16384, "seen"), gpus=16384, restart_s=600, save_s=60)
GIVEN = Rate(mtti_s=3.09 * H, low_s=None, high_s=None, gpu_hours=50_000, source="given")


def doubt(half_width: float | None, failures: Reliability | None = None) -> Doubt:
    return Doubt(half_width=half_width, mfu_why="told", failures=failures)


def test_nine_tenths_of_a_normal_distribution() -> None:
    assert pytest.approx(1.6449, abs=1e-4) == NINETY


def test_mfu_alone() -> None:
    """1,000 productive hours at goodput 0.8 are 1,250 paid; a factor of 1.25 each way: 1,000 to 1,562.5."""
    found = sure(1000, 0.4, 0.8, 10, doubt(math.log(1.25)))
    assert found.paid == pytest.approx((1000, 1562.5))
    assert found.goodput is None
    assert [(each.name, each.low, each.high, each.why) for each in found.spreads] == [
        ("mfu", pytest.approx(0.32), pytest.approx(0.5), "told"), ("goodput", None, None, TAKEN_AS_EXACT),
    ]  # fmt: skip


def test_exact_values_have_no_interval_and_say_so() -> None:
    found = sure(1000, 0.4, 0.8, 10, doubt(None))
    assert (found.paid, found.reason) == (None, "told")


def test_a_utilisation_is_never_above_the_peak() -> None:
    assert sure(1000, 0.9, 1.0, 10, doubt(1.0)).spreads[0].high == 1.0


def test_the_goodput_is_that_of_the_verb() -> None:
    assert goodput_of(LLAMA) == plan_goodput(LLAMA).goodput


def test_failures_alone_are_little_over_a_long_run() -> None:
    """Some 500 failures in 67 days: their number is sure to √500/500 = 4 %, 90 % within 7.4 %, and so is what is lost
    to them (replay and restarts, 10 % of the time): under a point; the rate, counted over 419, is as sure. Together
    about ±1 point around 85.3 %.
    """
    found = sure(22.3e6, 0.48, goodput_of(LLAMA), 16384, doubt(None, LLAMA))
    assert found.goodput is not None and found.paid is not None
    low, high = found.goodput
    assert low < 0.8526 < high
    assert 0.005 < 0.8526 - low < 0.015
    assert 0.005 < high - 0.8526 < 0.015
    assert found.paid == pytest.approx((22.3e6 / high, 22.3e6 / low))
    assert [each.name for each in found.spreads] == ["mfu", "mtti_s", "goodput"]
    assert "419 interrupts counted" in found.spreads[1].why


def test_failures_add_to_the_spread_of_mfu() -> None:
    alone = sure(22.3e6, 0.48, goodput_of(LLAMA), 16384, doubt(0.2))
    both = sure(22.3e6, 0.48, goodput_of(LLAMA), 16384, doubt(0.2, LLAMA))
    assert alone.paid is not None and both.paid is not None
    assert both.paid == pytest.approx(alone.paid, rel=0.02)  # 0.2 beside 0.012: a thousandth more, and chance
    assert both.paid == sure(22.3e6, 0.48, goodput_of(LLAMA), 16384, doubt(0.2, LLAMA)).paid  # the same seed


def test_a_given_rate_is_exact() -> None:
    at = replace(LLAMA, rate=GIVEN)
    mtti = sure(1e6, 0.4, goodput_of(at), 16384, doubt(0.1, at)).spreads[1]
    assert (mtti.low, mtti.high, mtti.why) == (None, None, TAKEN_AS_EXACT)


def test_few_failures_seen_are_a_wide_interval() -> None:
    """Four failures in 9.5 days leave the rate between 1.4 and 9.2: a job of 4,400 GPUs loses little or much."""
    few = replace(LLAMA, rate=counted_rate(4, 440 * 9.5 * 24, 4400, "few"), gpus=4400)
    many = replace(few, rate=counted_rate(400, 440 * 950 * 24, 4400, "many"))
    wide, narrow = (sure(1e6, 0.4, goodput_of(at), 4400, doubt(None, at)).goodput for at in (few, many))
    assert wide is not None and narrow is not None
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])


def test_a_job_that_may_never_end_has_no_interval() -> None:
    """One failure seen: the rate may be three times that, and an interrupt then comes before its restart is through."""
    slow = replace(LLAMA, rate=counted_rate(1, 24.0, 1, "one"), gpus=1, restart_s=30 * 24 * H, interval_s=H)
    found = sure(1e4, 0.4, 0.01, 1, doubt(None, slow))
    assert (found.paid, found.reason) == (None, "one run in twenty would hardly ever end")


def test_many_failures_are_not_counted_one_by_one() -> None:
    """A million failures: what each brings is nothing beside their mean."""
    at = replace(LLAMA, rate=GIVEN)
    work = 1e6 * GIVEN.mtti_s / H * 16384
    found = sure(work, 0.4, goodput_of(at), 16384, doubt(None, at))
    assert found.goodput == pytest.approx((goodput_of(at),) * 2, rel=1e-9)


@settings(max_examples=10, deadline=None)
@given(half_width=st.floats(0.02, 0.6), hours=st.floats(1e4, 1e6))
def test_the_interval_holds_the_plan(half_width: float, hours: float) -> None:
    at = replace(LLAMA, rate=counted_rate(50, 1e6, 512, "seen"), gpus=512)
    found = sure(hours, 0.4, goodput_of(at), 512, doubt(half_width, at))
    assert found.paid is not None
    assert found.paid[0] < hours / goodput_of(at) < found.paid[1]
    assert found.paid[1] / found.paid[0] == pytest.approx(math.exp(2 * half_width), rel=0.15)


def test_enough_runs_for_a_twentieth() -> None:
    assert RUNS * 0.05 >= 20
