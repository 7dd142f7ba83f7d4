"""Measured points made comparable: which rows are kept and why not the others, and the features of those kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from suanli.catalog.devices import find_device
from suanli.errors import SuanliError
from suanli.nouns.arch import Arch
from suanli.nouns.measured_serving import ServingPoint
from suanli.plan.serving.fitting import Served, features
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.replicas import build_replica
from suanli.plan.serving.times import Replica

MOST_GPUS = 8  # rows above name GPUs of several replicas, or are misprinted
CHAT_PROMPT = 200.0  # tokens; a source of chats gives no prompt length. Times of long answers hardly depend on it
MOST_SEQUENCES = 4096.0  # an engine's own limit where memory would hold more
_OFFLINE_CACHE_BYTES = 1.0  # TensorRT-LLM's offline tables keep the cache of fp8 and fp4 checkpoints in fp8


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
    cache = _OFFLINE_CACHE_BYTES if point.kind == "offline" else 2.0
    precision = Precision(dtype=point.dtype, cache_bytes=cache)
    try:
        replica = build_replica(read(point.preset), find_device(point.gpu), point.layout, precision)
    except SuanliError as problem:
        return problem.faults[0].message
    if point.concurrency is not None:
        return point.concurrency, replica
    room = replica.cache_room_bytes() / replica.cache_token_bytes
    return max(min(room / (prompt_of(point) + point.osl / 2), MOST_SEQUENCES), 1.0), replica
