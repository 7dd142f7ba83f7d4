"""Measured points near what is asked, and what the same preset says of them: an answer's nearest check."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from suanli.catalog.devices import find_device
from suanli.catalog.schemes import find_scheme
from suanli.nouns.arch import Arch
from suanli.nouns.hardware import Device
from suanli.nouns.measured_serving import ServingPoint
from suanli.nouns.serving_profile import NUMBERS, ServingPreset
from suanli.nouns.serving_ways import Neighbour
from suanli.plan.serving.fitting import features
from suanli.plan.serving.points import keep_points, prompt_of, seconds_of
from suanli.plan.serving.replicas import with_profile

SHOWN = 3
_OTHER_ENGINE = 0.3  # engines differ by about so much of a logarithm
_OTHER_NAME = 0.2  # another model or GPU of the same size is not the same


@dataclass(frozen=True)
class Asked:
    """What a point is near to."""

    arch: Arch
    device: Device
    gpus: int
    bits: float
    engine: str
    isl: float
    osl: float
    concurrency: float

    @cached_property
    def params(self) -> int:
        """Active parameters."""
        return int(self.arch.params_active)


def nearest(asked: Asked, preset: ServingPreset, points: Sequence[ServingPoint], read: Callable[[str], Arch],
            shown: int = SHOWN) -> tuple[Neighbour, ...]:  # fmt: skip
    """The nearest points, one for each model, GPU and layout, with predictions at their own set-up."""
    ranked = sorted((distance(asked, point, read), place) for place, point in enumerate(points))
    found: list[Neighbour] = []
    seen: set[object] = set()
    for far, place in ranked:
        point = points[place]
        key = (point.preset, point.gpu, point.layout, point.dtype, point.kind)
        if len(found) == shown or key in seen:
            continue
        measured = _compared(point, preset, read)
        if measured is not None:
            seen.add(key)
            found.append(_neighbour(point, far, *measured))
    return tuple(found)


def distance(asked: Asked, point: ServingPoint, read: Callable[[str], Arch]) -> float:
    """Sum of |ln| of the ratios of active parameters, memory rate, GPUs, users, lengths and bits a weight."""
    there = _sizes(point, read)
    pairs = (
        (there.params, asked.params), (there.bytes_per_s, _rate(asked.device)), (point.gpus, asked.gpus),
        (point.concurrency or asked.concurrency, asked.concurrency), (prompt_of(point), asked.isl),
        (point.osl, asked.osl), (there.bits, asked.bits),
    )  # fmt: skip
    others = (
        _OTHER_NAME * (there.model != asked.arch.name), _OTHER_NAME * (there.device != asked.device.id),
        _OTHER_ENGINE * (point.engine != asked.engine),
    )  # fmt: skip
    return sum(abs(math.log(first / second)) for first, second in pairs) + sum(others)


@dataclass(frozen=True)
class _Sizes:
    model: str
    params: float
    device: str
    bytes_per_s: float
    bits: float


@functools.lru_cache(maxsize=1024)
def _sizes(point: ServingPoint, read: Callable[[str], Arch]) -> _Sizes:
    """What of a point's model and device distances look at."""
    arch, device = read(point.preset or ""), find_device(point.gpu or "")
    return _Sizes(arch.name, arch.params_active, device.id, _rate(device), bits_of(point.dtype))


def _rate(device: Device) -> float:
    return float(device.memory_bytes_per_s_per_torch_device or 1)


def bits_of(scheme: str) -> float:
    """Bits of a quantised weight, scales apart: enough to say which dtype is nearer."""
    return float(find_scheme(scheme).bits)


@functools.lru_cache(maxsize=1024)
def _compared(point: ServingPoint, preset: ServingPreset, read: Callable[[str], Arch]) -> tuple[float, float] | None:
    """Seconds between two tokens: measured, and by the preset; None where the point cannot be placed."""
    kept = keep_points([point], read)
    if not kept.points:
        return None
    many, replica = kept.concurrency[0], with_profile(kept.replicas[0], preset.profile)
    parts = features(replica, prompt_of(point), point.osl, many)
    predicted = sum(getattr(preset.profile, name) * part for name, part in zip(NUMBERS, parts, strict=True))
    return seconds_of(point, many), predicted


def _neighbour(point: ServingPoint, far: float, measured_s: float, predicted_s: float) -> Neighbour:
    """A point in what it measured: seconds of a token, or tokens a second."""
    served = point.kind == "served"
    measured = measured_s if served else point.tokens_per_s or 0.0
    ratio = predicted_s / measured_s if served else measured_s / predicted_s
    return Neighbour(
        model=point.preset or point.model, gpu=point.gpu or "", layout=point.layout, dtype=point.dtype,
        engine=point.version or point.engine, isl=prompt_of(point), osl=point.osl,
        concurrency=point.concurrency, distance=far,
        quantity="time of a further token" if served else "output tokens/s", measured=measured,
        predicted=ratio * measured, ratio=ratio, source=point.source, date=point.measured,
    )  # fmt: skip
