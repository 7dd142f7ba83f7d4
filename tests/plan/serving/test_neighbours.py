"""Measured points beside an answer: the nearest come first, and what we say of them is our own prediction there."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

from suanli.catalog.devices import find_device
from suanli.catalog.serving_points import serving_points
from suanli.catalog.serving_presets import find_serving_preset
from suanli.plan.serving.fitting import features
from suanli.plan.serving.neighbours import Asked, bits_of, distance, nearest
from suanli.plan.serving.points import keep_points
from suanli.readers.preset import read_named_preset

read = functools.cache(read_named_preset)
PRESET = find_serving_preset("vllm")
POINTS = serving_points()
EXACT = next(
    point for point in POINTS
    if (point.preset, point.gpu, point.gpus, point.concurrency) == ("llama-3.1-70b", "h100-sxm", 8, 64)
)  # fmt: skip


def asked(model: str = "llama-3.1-70b", gpu: str = "h100-sxm", gpus: int = 8, users: float = 64.0, bits: float = 8,
          engine: str = "vllm") -> Asked:  # fmt: skip
    return Asked(arch=read(model), device=find_device(gpu), gpus=gpus, bits=bits, engine=engine, isl=1024, osl=1024,
                 concurrency=users)  # fmt: skip


def test_a_point_that_is_asked_for_is_there() -> None:
    found = nearest(asked(), PRESET, POINTS, read)
    assert len(found) == 3
    first = found[0]
    assert (first.model, first.gpu, first.concurrency, first.distance) == ("llama-3.1-70b", "h100-sxm", 64, 0)
    assert first.measured == EXACT.tpot_s and first.quantity == "time of a further token"
    assert [each.distance for each in found] == sorted(each.distance for each in found)
    assert len({(each.model, each.gpu, each.layout, each.dtype) for each in found}) == 3


def test_the_ratio_is_of_our_prediction_at_the_points_own_set_up() -> None:
    """By the fit's own features, not by the answer's."""
    first = nearest(asked(users=20.0), PRESET, POINTS, read)[0]
    point = next(p for p in POINTS if p.tpot_s == first.measured)
    kept = keep_points([point], read)
    parts = features(kept.replicas[0], 1024, 1024, point.concurrency or 0)
    ours = sum(getattr(PRESET.profile, name) * part for name, part in zip(
        ("weights", "cache", "passes", "collective", "layer_s", "step_s", "sequence_s", "prefill", "prefill_other"),
        parts, strict=True))  # fmt: skip
    assert first.predicted == pytest.approx(ours)
    assert first.ratio == pytest.approx(ours / first.measured)


# what is changed, and by how much of a logarithm a point at 0 moves away
AWAY = [
    ({"users": 128.0}, 0.693),
    ({"gpus": 4}, 0.693),
    ({"bits": 16}, 0.693),
    ({"engine": "sglang"}, 0.3),
    ({"gpu": "h200-sxm"}, 0.36 + 0.2),  # ln(4.8/3.35), and another name
    ({"model": "llama-3.3-70b"}, 0.2),
]


@pytest.mark.parametrize(("changed", "far"), AWAY, ids=[str(row[0]) for row in AWAY])
def test_distances(changed: dict[str, object], far: float) -> None:
    assert distance(asked(), EXACT, read) == 0
    assert distance(asked(**changed), EXACT, read) == pytest.approx(far, abs=0.005)  # type: ignore[arg-type]


def test_throughput_is_compared_where_no_time_was_measured() -> None:
    offline = [point for point in POINTS if point.kind == "offline"]
    found = nearest(asked("llama-3.1-405b"), find_serving_preset("tensorrt-llm-offline"), offline, read)
    assert {each.quantity for each in found} == {"output tokens/s"}
    assert all(each.concurrency is None and 0.3 < each.ratio < 3 for each in found)
    assert found[0].model == "llama-3.1-405b"


def test_a_point_that_cannot_be_placed_is_passed_over() -> None:
    alone = [replace(EXACT, gpus=4), EXACT]  # four GPUs for tp 8 is no replica
    assert len(nearest(asked(), PRESET, alone, read)) == 1
    assert nearest(asked(), PRESET, [], read) == ()


def test_bits_of_schemes() -> None:
    assert [bits_of(name) for name in ("bf16", "fp8", "nvfp4")] == [16, 8, 4]
