"""The GPT-4 estimate: active against all parameters, the hidden utilisation, and models that can be counted."""

from __future__ import annotations

import pytest

import suanli
from suanli.learn import teach
from suanli.learn.moe import MODELS, SEQ
from suanli.nouns.lesson import Boxes, Grid, Lesson


@pytest.fixture(scope="module")
def taught() -> Lesson:
    return teach("moe", "en")


# value → figure of the article (source facts §4), with the half of its last digit
ESTIMATE = [
    ("total", 16 * 111e9 + 55e9, 0),
    ("active", 277e9, 0),  # 2·111 + 55
    ("flops_by_active", 2.1606e25, 0),
    ("flops_by_all", 6 * 1831e9 * 13e12, 1e10),
    ("gpu_hours_by_active", 53_433_642, 0.5),
    ("days_by_active", 89.06, 0.005),
]


@pytest.mark.parametrize(("name", "wanted", "within"), ESTIMATE)
def test_the_estimate(taught: Lesson, name: str, wanted: float, within: float) -> None:
    assert taught.values[name] == pytest.approx(wanted, abs=within, rel=1e-15)


def test_all_parameters_are_6_6_times_too_many(taught: Lesson) -> None:
    assert taught.values["flops_by_all"] / taught.values["flops_by_active"] == pytest.approx(1831 / 277)
    assert taught.values["days_by_all"] / taught.values["days_by_active"] == pytest.approx(1831 / 277)


def test_at_32_percent_it_is_100_days(taught: Lesson) -> None:
    said = next(block.values for block in taught.blocks if block.kind == "text" and "other_days" in block.values)
    assert said["other"] == 0.32 and said["other_days"] == pytest.approx(100.19, abs=0.005)
    assert said["mfu"] == 0.36 and said["peak"] == 312e12 and said["gpus"] == 25_000


def test_one_token_passes_two_experts_and_what_is_shared(taught: Lesson) -> None:
    boxes = next(block for block in taught.blocks if isinstance(block, Boxes)).boxes
    assert len(boxes) == 1 + 16
    assert sum(box.lines == ("passed",) for box in boxes) == 1 + 2
    assert len({box.name for box in boxes}) == 17


def test_memory_counts_them_all(taught: Lesson) -> None:
    said = next(block.values for block in taught.blocks if block.kind == "text" and "weights" in block.values)
    assert said == {"weights": 2 * 1_831_000_000_000, "active_weights": 2 * 277_000_000_000}


@pytest.mark.parametrize("place", range(len(MODELS)))
def test_models_by_count(taught: Lesson, place: int) -> None:
    found = suanli.count(MODELS[place], seq=SEQ, phase="train")
    row = [block for block in taught.blocks if isinstance(block, Grid)][-1].rows[place]
    assert row[1:4] == (found.params.total, found.params.active, found.flops_per_token)
    assert row[4] == pytest.approx(found.ideal_error["6n"])
    assert row[5] == pytest.approx(6 * found.params.total / found.flops_per_token - 1)
