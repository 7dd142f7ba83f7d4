"""Calibration: numbers between a preset and a user's points, an interval that knows both, refusals."""

from __future__ import annotations

import functools
import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.catalog.serving_presets import find_serving_preset
from suanli.errors import InputError
from suanli.nouns.measured_serving import ServingPoint
from suanli.nouns.serving import ServingLayout
from suanli.nouns.serving_profile import NUMBERS, ServingProfile
from suanli.plan.serving.own_points import calibrate
from suanli.plan.serving.points import keep_points
from suanli.readers.preset import read_named_preset

read = functools.cache(read_named_preset)
PRESET = find_serving_preset("vllm")


def point(users: float = 16.0, tpot_s: float = 0.012, **changes: object) -> ServingPoint:
    base = ServingPoint(
        model="llama-3.1-70b", preset="llama-3.1-70b", gpu="h100-sxm", gpus=8, layout=ServingLayout(tp=8), dtype="fp8",
        engine="vllm", isl=1024, osl=1024, concurrency=users, ttft_s=0.1, tpot_s=tpot_s, source="mine",
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def predicted(points: list[ServingPoint]) -> list[float]:
    served = keep_points(points, read).served()
    return [float(each) for each in served.features @ np.array([getattr(PRESET.profile, name) for name in NUMBERS])]


def scaled(factor: float) -> list[ServingPoint]:
    """Points as the preset has them, times a factor."""
    raw = [point(users) for users in (4.0, 16.0, 64.0)]
    pairs = zip(raw, predicted(raw), strict=True)
    return [replace(each, tpot_s=seconds * factor) for each, seconds in pairs]


def test_points_that_say_what_the_preset_says_change_nothing_but_the_interval() -> None:
    preset, told = calibrate(PRESET, scaled(1.0), read)
    assert told.error_before == pytest.approx(0, abs=1e-9) and told.error_after == pytest.approx(0, abs=1e-6)
    assert all(factor == pytest.approx(1, abs=1e-4) for factor in told.factors.values())
    # three points without error beside four of the preset's: its width times √(4/7)
    assert told.half_width_after == pytest.approx(PRESET.half_width * (4 / 7) ** 0.5, rel=1e-3)
    assert preset.half_width == told.half_width_after


def test_two_points_draw_the_preset_to_them() -> None:
    _, told = calibrate(PRESET, scaled(1.2)[:2], read)
    assert told.points == 2
    assert told.error_before == pytest.approx(1 - 1 / 1.2)
    assert told.error_after < 0.02 < told.error_before
    assert all(factor > 1 for factor in told.factors.values())


@settings(max_examples=15)
@given(st.floats(0.7, 1.5))
def test_a_calibrated_preset_is_nearer_on_its_own_points_and_shrunk(factor: float) -> None:
    _, told = calibrate(PRESET, scaled(factor), read)
    assert told.error_after <= told.error_before + 1e-9
    spreads = {each.name: each.metadata["spread"] for each in fields(ServingProfile)}
    assert all(abs(math.log(moved)) <= 3 * spreads[name] for name, moved in told.factors.items())  # none runs away


def test_a_gpu_that_was_measured_no_longer_extrapolates() -> None:
    preset, _ = calibrate(PRESET, [replace(each, gpu="a100-80gb-sxm", dtype="bf16") for each in scaled(1.0)], read)
    assert "a100-80gb-sxm" in preset.gpus


REFUSED = [
    ([point()], "vllm",
     "too few points to calibrate from in --calibrate; got 1 of 1 rows (no rows); expected at least 2."),
    ([point(), point()], "vllm", "too few points to calibrate from in --calibrate; got 1 of 2 rows (1 copy of another "
     "row); expected at least 2."),
    ([point(), point(64.0, engine="sglang")], "vllm", "the points are not of preset vllm in --calibrate; got sglang, "
     "vllm; expected rows of one engine, with --preset sglang."),
    ([point(), point(64.0)], "sglang", "the points are not of preset sglang in --calibrate; got vllm; expected rows of "
     "one engine, with --preset vllm."),
    ([point(), point(64.0)], "ideal", "the ideal engine has nothing to calibrate in --calibrate; expected --preset "
     "vllm, tensorrt-llm or sglang."),
]  # fmt: skip


@pytest.mark.parametrize(("points", "preset", "said"), REFUSED, ids=[row[2][:25] for row in REFUSED])
def test_what_cannot_be_calibrated_from(points: list[ServingPoint], preset: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        calibrate(find_serving_preset(preset), points, read)
    assert str(caught.value) == said
