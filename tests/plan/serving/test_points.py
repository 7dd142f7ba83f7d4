"""Which measured rows are kept, and the bars of accuracy on the public ones."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from suanli.nouns.measured_serving import ServingPoint
from suanli.nouns.serving import ServingLayout
from suanli.plan.serving.accuracy import check_points
from suanli.plan.serving.points import CHAT_PROMPT, keep_points, label_of, prompt_of, seconds_of
from suanli.readers.preset import read_named_preset
from suanli.readers.serving_points import read_serving_points

read = functools.cache(read_named_preset)
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "measured_serving.csv"


def point(**other: object) -> ServingPoint:
    given = {
        "model": "x", "preset": "llama-3.1-8b", "gpu": "h100-sxm", "gpus": 1, "layout": ServingLayout(),
        "dtype": "bf16", "engine": "vllm", "isl": 1000.0, "osl": 100.0, "concurrency": 8.0,
        "ttft_s": 0.1, "tpot_s": 0.01,
    }  # fmt: skip
    return ServingPoint(**(given | other))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"preset": None}, "model without a preset"),
        ({"gpu": None}, "GPU not in the catalogue, or not named in full"),
        ({"gpus": 16}, "more than eight GPUs, or another number than its layout"),
        ({"kind": "batch"}, "throughput counts prompts too, and no time between tokens"),
        ({"tpot_s": None}, "no times"),
        ({"ttft_s": 0.99}, "half of the time or more is the first token: overloaded"),  # 99 · 0.01 s follow
        ({"kind": "offline"}, "no throughput"),
    ],
)
def test_why_a_row_is_left_out(other: dict[str, object], reason: str) -> None:
    kept = keep_points([point(**other), point()], read)
    assert kept.dropped == {reason: 1}
    assert len(kept.points) == 1


def test_copies_count_once() -> None:
    assert keep_points([point(), point()], read).dropped == {"copy of another row": 1}


def test_throughput_becomes_seconds_and_memory_sets_the_concurrency() -> None:
    offline = point(kind="offline", concurrency=None, ttft_s=None, tpot_s=None, tokens_per_s=5000.0)
    kept = keep_points([offline], read)
    # 0.9 of 80e9 bytes less 16.06 GB of weights, 3.5 GB of reserve and a chunk's buffer, over 65,536 bytes (fp8 cache)
    # a token and 1,050 tokens of a sequence
    assert kept.concurrency[0] == pytest.approx((72e9 - 16.06e9 - 3.5e9) / 65_536 / 1050, rel=0.03)
    assert seconds_of(offline, 100.0) == 0.02
    assert (label_of(offline), label_of(point())) == ("vllm/offline", "vllm")
    assert prompt_of(point(isl=None)) == CHAT_PROMPT


@pytest.mark.shared
def test_the_bars_hold_on_the_public_points() -> None:
    """Time per output token, throughput, energy: one architecture on one GPU left out at a time."""
    kept = keep_points(read_serving_points(SHARED), read)
    check = check_points(kept)
    for error in check.errors:
        fitted, held = (
            (error.mean_fitted, error.mean_held_out)
            if error.judged == "mean"
            else (error.median_fitted, error.median_held_out)
        )
        assert error.bar_held_out is None or held <= error.bar_held_out, error.quantity
        assert error.bar_fitted is None or (fitted or 0) <= error.bar_fitted, error.quantity
    assert [error.quantity for error in check.errors if error.judged] == [
        "time per output token", "output throughput", "GPU energy per output token",
    ]  # fmt: skip
