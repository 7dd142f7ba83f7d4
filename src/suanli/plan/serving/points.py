"""Measured points made comparable: which rows are kept and why not the others, and the features of those kept."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from suanli.catalog.devices import find_device
from suanli.catalog.schemes import find_scheme
from suanli.errors import SuanliError
from suanli.nouns.arch import Arch
from suanli.nouns.formats import Scheme
from suanli.nouns.hardware import Device
from suanli.nouns.layers import Experts
from suanli.nouns.measured_serving import ServingPoint
from suanli.nouns.serving import MemoryBudget
from suanli.plan.serving.budget import activation_bytes, asked, memory_budget
from suanli.plan.serving.cache import kv_cache
from suanli.plan.serving.fitting import Served, features
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.replicas import build_replica
from suanli.plan.serving.times import Replica
from suanli.plan.serving.weights import weight_bytes

MOST_GPUS = 8  # rows above name GPUs of several replicas, or are misprinted
CHAT_PROMPT = 200.0  # tokens; a source of chats gives no prompt length. Times of long answers hardly depend on it
_FOUR_BIT = ("nvfp4", "mxfp4")
MOST_SEQUENCES = 4096.0  # an engine's own limit where memory would hold more
_OFFLINE_CACHE = "fp8"  # TensorRT-LLM's offline tables keep the cache of fp8 and fp4 checkpoints in fp8


@dataclass(frozen=True)
class Kept:
    """Points that can be predicted, with the concurrency and prompt they are predicted at."""

    points: tuple[ServingPoint, ...]
    concurrency: tuple[float, ...]
    replicas: tuple[Replica, ...]
    dropped: dict[str, int]

    def served(self) -> Served:
        """Features and seconds between two tokens of one sequence: measured, or what throughput makes of it."""
        import numpy as np  # noqa: PLC0415

        rows = zip(self.replicas, self.points, self.concurrency, strict=True)
        found = [features(replica, prompt_of(point), point.osl, many) for replica, point, many in rows]
        seconds = [seconds_of(point, many) for point, many in zip(self.points, self.concurrency, strict=True)]
        engines = tuple(label_of(point) for point in self.points)
        return Served(np.array(found), np.array(seconds), engines, tuple(point.fold for point in self.points))

    def of_kind(self, *kinds: str) -> list[bool]:
        """Which points are of these kinds."""
        return [point.kind in kinds for point in self.points]


def prompt_of(point: ServingPoint) -> float:
    """Tokens of the prompt, or the assumption where the source gives none."""
    return CHAT_PROMPT if point.isl is None else point.isl


def label_of(point: ServingPoint) -> str:
    """The engine, and the kind of load where it is not a constant number of users: `vllm/chat`."""
    return point.engine if point.kind == "served" else f"{point.engine}/{point.kind}"


def seconds_of(point: ServingPoint, concurrency: float) -> float:
    """Seconds between two tokens of one sequence: TPOT of served points, concurrency over throughput of the others."""
    if point.kind == "served":
        assert point.tpot_s is not None, "checked when it was kept"
        return point.tpot_s
    assert point.tokens_per_s is not None, "checked when it was kept"
    return concurrency / point.tokens_per_s


def keep_points(points: Sequence[ServingPoint], read: Callable[[str], Arch]) -> Kept:
    """The points that are measurements of one replica, copies once; `read` gives the architecture of a preset."""
    kept: list[tuple[ServingPoint, float, Replica]] = []
    seen: set[Any] = set()
    dropped: Counter[str] = Counter()
    for point in points:
        reason = _reason(point, seen)
        if reason is None:
            found = _placed(point, read)
            if isinstance(found, str):
                reason = found
            else:
                kept.append((point, *found))
        if reason is not None:
            dropped[reason] += 1
    columns: Any = zip(*kept, strict=True) if kept else ((), (), ())
    chosen, many, replicas = (tuple(column) for column in columns)
    return Kept(chosen, many, replicas, dict(dropped))


def _reason(point: ServingPoint, seen: set[Any]) -> str | None:
    """Why a row is not used; None where it is."""
    known = _unknown(point) or _unmeasured(point)
    key = (point.fold, point.layout, point.dtype, point.version, point.isl, point.osl, point.concurrency, point.ttft_s,
           point.tpot_s, point.tokens_per_s)  # fmt: skip
    if known is not None:
        return known
    if key in seen:
        return "copy of another row"
    seen.add(key)
    return None


def _unknown(point: ServingPoint) -> str | None:
    """What of the set-up is not known, or not one replica."""
    if point.preset is None:
        return "model without a preset"
    if point.gpu is None:
        return "GPU not in the catalogue, or not named in full"
    if point.gpus > MOST_GPUS or point.layout.gpus != point.gpus:
        return "more than eight GPUs, or another number than its layout"
    return None


def _unmeasured(point: ServingPoint) -> str | None:
    """What the row does not measure."""
    if point.kind == "batch":
        return "throughput counts prompts too, and no time between tokens"
    if point.kind != "served":
        return "no throughput" if point.tokens_per_s is None else None
    if point.ttft_s is None or point.tpot_s is None or point.concurrency is None or point.isl is None:
        return "no times"
    if point.ttft_s >= (point.ttft_s + (point.osl - 1) * point.tpot_s) / 2:
        return "half of the time or more is the first token: overloaded"
    return None


def _placed(point: ServingPoint, read: Callable[[str], Arch]) -> tuple[float, Replica] | str:
    """The concurrency and the replica, or why there is none."""
    assert point.preset is not None, "checked before"
    assert point.gpu is not None, "checked before"
    arch, device = read(point.preset), find_device(point.gpu)
    scheme = scheme_of(point.dtype, arch)
    precision = Precision.of(scheme, _OFFLINE_CACHE if point.kind == "offline" else "bf16")
    try:
        replica = build_replica(arch, device, point.layout, precision)
        if point.concurrency is not None:
            return point.concurrency, replica
        budget = budget_of(arch, device, replica, point.engine, prompt_of(point), point.osl)
    except SuanliError as problem:
        return problem.faults[0].message
    # sequences end one after another, so that on average half of their answers is in the cache
    mean = budget.cache_tokens / (prompt_of(point) + point.osl / 2)
    return max(min(mean, MOST_SEQUENCES), 1.0), replica


def scheme_of(dtype: str, arch: Arch) -> Scheme:
    """The scheme a benchmark's dtype stands for: of a mixture, 4-bit checkpoints quantise the experts alone."""
    found = find_scheme(dtype)
    mixture = any(isinstance(placed.layer, Experts) for placed in arch.leaves())
    return replace(found, targets=("experts",)) if mixture and dtype in _FOUR_BIT else found


def budget_of(arch: Arch, device: Device, replica: Replica, engine: str, isl: float, osl: float) -> MemoryBudget:
    """Memory of one GPU of the replica under an engine's rules, with its most sequences of isl + osl positions.

    Raises InputError where the device's memory is not known.
    """
    scheme, layout = replica.precision.scheme, replica.layout
    cache = kv_cache(arch, math.ceil(isl + osl), dtype=replica.precision.cache, engine=engine, layout=layout)
    weights = weight_bytes(arch, scheme, layout)
    memory = device.memory_bytes_per_torch_device
    at = asked(float(memory or 0), engine, layout=layout)
    return memory_budget(weights, cache, activation_bytes(arch, engine, layout), at)
