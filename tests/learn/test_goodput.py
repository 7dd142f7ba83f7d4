"""Failures, checkpoints, restarts: the figures are those of the verb."""

from __future__ import annotations

import pytest

import suanli
from suanli.learn import teach
from suanli.learn.goodput import SIZES
from suanli.nouns.lesson import Grid, Lesson, Plot


@pytest.fixture(scope="module")
def taught() -> Lesson:
    return teach("goodput", "en")


@pytest.fixture(scope="module")
def verb():
    return suanli.goodput(gpus=16384, failures="llama-3-405b", restart="10min", checkpoint_save="60s", mfu="41%")


def tables(found: Lesson) -> list[Grid]:
    return [block for block in found.blocks if isinstance(block, Grid)]


def test_the_run_is_the_verb_s(taught: Lesson, verb) -> None:
    assert taught.values["mtti_s"] == verb.mtti_s == pytest.approx(54 * 86400 / 419)  # 419 interrupts in 54 days
    assert taught.values["goodput"] == verb.goodput
    assert taught.values["interval_s"] == verb.interval_s
    assert {rule: taught.values[f"interval_{rule}_s"] for rule in ("young", "daly", "exact")} == {
        each.rule: each.interval_s for each in verb.intervals
    }


def test_young_by_hand(taught: Lesson) -> None:
    assert taught.values["interval_young_s"] == pytest.approx((2 * 60 * taught.values["mtti_s"]) ** 0.5)


def test_the_account_closes(taught: Lesson, verb) -> None:
    *rows, total = tables(taught)[1].rows
    assert total[1] == pytest.approx(1) == pytest.approx(sum(row[1] for row in rows))
    assert [row[1] for row in rows] == [each.fraction for each in verb.account if each.fraction]


@pytest.mark.parametrize("place", range(len(SIZES)))
def test_more_gpus_fail_more_often(taught: Lesson, place: int) -> None:
    row = tables(taught)[0].rows[place]
    found = suanli.goodput(gpus=SIZES[place], mtbf="50677.25h", restart="10min", checkpoint_save="60s")
    assert row[0] == SIZES[place] and row[3] == pytest.approx(found.goodput, rel=1e-5)
    assert row[1] * row[2] == pytest.approx(86400)


def test_levers_are_the_same_run_changed(taught: Lesson) -> None:
    rows = tables(taught)[2].rows
    faster = suanli.goodput(gpus=16384, failures="llama-3-405b", restart="10min", checkpoint_save="10s")
    sooner = suanli.goodput(gpus=16384, failures="llama-3-405b", restart="100s", checkpoint_save="60s")
    assert [rows[0][1], rows[1][1]] == [faster.goodput, sooner.goodput]
    assert all(row[2] == row[1] - taught.values["goodput"] > 0 for row in rows)


def test_goodput_times_mfu(taught: Lesson, verb) -> None:
    assert taught.blocks[-1].values["useful"] == verb.useful_mfu == pytest.approx(0.41 * verb.goodput)


def test_the_curve_is_lowest_at_the_best(taught: Lesson) -> None:
    points = next(block for block in taught.blocks if isinstance(block, Plot)).series[0].points
    lowest = min(points, key=lambda point: point[1])
    assert lowest[0] == pytest.approx(taught.values["interval_s"], rel=0.2)
