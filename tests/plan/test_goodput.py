"""Goodput: the account closes, the best interval is the best, the simulation agrees with the closed form."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from suanli.errors import InputError
from suanli.nouns.goodput import Rate
from suanli.plan.goodput import (
    Reliability,
    best_interval,
    counted_rate,
    efficiency,
    given_rate,
    plan_goodput,
    wall_account,
)
from suanli.units import DAY, HOUR


def rate(mtti_s: float) -> Rate:
    return Rate(mtti_s=mtti_s, low_s=None, high_s=None, gpu_hours=1.0, source="test")


LLAMA = Reliability(rate=rate(3.09 * HOUR), restart_s=600.0, save_s=60.0)


def test_llama_3() -> None:
    found = plan_goodput(LLAMA)
    assert {each.rule: round((each.interval_s or 0) / 60, 1) for each in found.intervals} == {
        "young": 19.3, "daly": 18.6, "exact": 18.6,
    }  # fmt: skip
    assert round(1 - found.goodput, 3) == 0.148
    first = found.first_order
    assert round(first["checkpoint"] + first["replay"], 3) == 0.104
    assert round(first["restart"], 3) == 0.054
    quick = plan_goodput(replace(LLAMA, save_s=5.0))
    assert [round((each.interval_s or 0) / 60, 1) for each in quick.intervals] == [5.6, 5.5, 5.5]
    assert round(quick.first_order["checkpoint"] + quick.first_order["replay"], 3) == 0.030


RUNS = st.builds(
    lambda m, save, back, detect, load, slow, down, stall, tau: Reliability(
        rate=rate(m), save_s=save, restart_s=back, detect_s=detect, load_s=load, straggling=slow,
        maintenance_s=down, maintenance_every_s=30 * DAY if down else None,
        mode="async" if stall is not None else "blocking", stall_s=None if stall is None else stall * save,
        interval_s=tau,
    ),
    m=st.floats(1800, 1e6), save=st.floats(0.01, 300), back=st.floats(0, 900), detect=st.floats(0, 100),
    load=st.floats(0, 100), slow=st.floats(0, 0.5), down=st.one_of(st.just(0.0), st.floats(1, DAY)),
    stall=st.one_of(st.none(), st.floats(0, 1)), tau=st.one_of(st.none(), st.floats(1, 3600)),
)  # fmt: skip


@settings(max_examples=200)
@given(RUNS)
def test_the_account_closes(at: Reliability) -> None:
    found = plan_goodput(at)
    assert sum(entry.fraction for entry in found.account) == pytest.approx(1, abs=1e-9)
    assert all(entry.fraction >= -1e-12 for entry in found.account)
    assert 0 < found.goodput <= found.availability + 1e-9
    assert found.goodput + sum(found.loss.values()) == pytest.approx(1, abs=1e-9)


@settings(max_examples=100)
@given(RUNS, st.floats(0.2, 5))
def test_no_interval_is_better_than_the_exact_one(at: Reliability, factor: float) -> None:
    best = best_interval(at, "exact")
    assume(best is not None)
    assert efficiency(at, best * factor) <= efficiency(at, best) + 1e-12
    for rule in ("young", "daly"):
        assert efficiency(at, best_interval(at, rule)) <= efficiency(at, best) + 1e-12


@settings(max_examples=100)
@given(RUNS)
def test_levers_have_the_right_sign(at: Reliability) -> None:
    for lever in plan_goodput(at).levers:
        assert lever.gain > 0 or abs(lever.gain) < 1e-6, lever


@settings(max_examples=50)
@given(RUNS, st.floats(0.1, 0.9))
def test_worse_is_never_better(at: Reliability, part: float) -> None:
    free = replace(at, interval_s=None)
    now = plan_goodput(free).goodput
    assert plan_goodput(replace(free, rate=rate(at.rate.mtti_s / part))).goodput >= now - 1e-9
    assert plan_goodput(replace(free, restart_s=at.restart_s * part)).goodput >= now - 1e-9


@pytest.mark.parametrize(
    ("at", "work_days"),
    [
        (LLAMA, 54),
        (replace(LLAMA, save_s=5.0), 54),
        (replace(LLAMA, rate=rate(HOUR), restart_s=1200.0), 20),
        (replace(LLAMA, mode="async", stall_s=2.0, interval_s=900.0), 54),
        (replace(LLAMA, straggling=0.1, maintenance_s=4 * HOUR, maintenance_every_s=7 * DAY), 30),
    ],
)
def test_the_simulation_agrees_with_the_closed_form(at: Reliability, work_days: int) -> None:
    finish = plan_goodput(at, work_s=work_days * DAY, runs=400).finish
    assert finish is not None
    # 400 runs of about 100 to 500 failures each: the median lies within 0.3 % of the mean
    assert finish.percentiles["p50"] == pytest.approx(finish.mean_days, rel=3e-3)
    values = list(finish.percentiles.values())
    assert values == sorted(values)


def test_the_same_seed_gives_the_same() -> None:
    first, again, other = (plan_goodput(LLAMA, work_s=DAY, seed=seed).finish for seed in (1, 1, 2))
    assert first == again != other


def test_spares() -> None:
    """Mean nodes away 4,000 s / 3.09 h = 0.36: without a spare the chance of a wait is 1 − e^−0.36."""
    some = [plan_goodput(replace(LLAMA, spares=spares, repair_s=4000.0)).goodput for spares in (0, 1, 5, 50)]
    assert some == sorted(some)
    assert some[-1] == pytest.approx(plan_goodput(LLAMA).goodput, abs=1e-9)
    entry = {each.entry: each.fraction for each in wall_account(replace(LLAMA, spares=0, repair_s=4000.0), 1000.0)}
    assert entry["spare wait"] > 0.05


def test_asynchronous_saving_replays_what_was_not_yet_safe() -> None:
    blocking = plan_goodput(replace(LLAMA, interval_s=1000.0))
    asynchronous = plan_goodput(replace(LLAMA, interval_s=1000.0, mode="async", stall_s=0.0))
    assert asynchronous.loss["checkpoint"] == 0
    assert asynchronous.loss["replay"] > blocking.loss["replay"]
    assert asynchronous.goodput > blocking.goodput


def test_goodput_times_mfu() -> None:
    assert plan_goodput(LLAMA, mfu=0.4).useful_mfu == pytest.approx(0.4 * plan_goodput(LLAMA).goodput)
    assert plan_goodput(LLAMA).useful_mfu is None


def test_rates() -> None:
    counted = counted_rate(419, 16_384 * 54 * 24.0, 16_384, "t")
    assert counted.mtti_s / HOUR == pytest.approx(3.093, abs=1e-3)
    assert counted.gpu_hours == pytest.approx(50_677, abs=0.5)
    assert counted.low_s is not None and counted.high_s is not None
    assert counted.low_s < counted.mtti_s < counted.high_s
    assert given_rate(50_677, 16_384, "t").mtti_s == pytest.approx(counted.mtti_s, rel=1e-5)
    few = plan_goodput(replace(LLAMA, rate=counted_rate(4, 440 * 228.0, 440, "t"))).goodput_interval
    assert few is not None and few[0] < few[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "asinc"}, "unknown checkpoint mode 'asinc' in --checkpoint-mode; expected one of blocking, async; "
                            "nearest: async."),
        ({"mode": "async"}, "the time training stands still is of asynchronous saving in --checkpoint-stall; got none; "
                            "expected --checkpoint-mode async with --checkpoint-stall, or neither."),
        ({"mode": "async", "stall_s": 70.0}, "standing still longer than the checkpoint takes in --checkpoint-stall; "
                                             "got 70 s; expected at most --checkpoint-save, 60 s."),
        ({"spares": 3}, "spare nodes and the time of a repair go together in --spares; expected both --spares and "
                        "--repair, or neither."),
        ({"straggling": 1.0}, "not a part that is lost in --stragglers; got 1; expected 0 or more, below 1."),
        ({"maintenance_s": 9.0, "maintenance_every_s": 9.0}, "maintenance without end in --maintenance; got 9 s every "
                                                             "9 s; expected less than the time between two of them."),
    ],
)  # fmt: skip
def test_what_cannot_be(changes, message) -> None:
    with pytest.raises(InputError) as caught:
        replace(LLAMA, **changes)
    assert str(caught.value) == message


def test_all_faults_are_told_together() -> None:
    with pytest.raises(InputError) as caught:
        replace(LLAMA, mode="x", spares=1, straggling=2.0)
    assert len(caught.value.faults) == 3


def test_a_job_that_never_gets_on_is_refused() -> None:
    with pytest.raises(InputError, match=r"^the job would hardly ever get from one checkpoint to the next in --mtti"):
        plan_goodput(replace(LLAMA, rate=rate(3.0)))
