"""The whole service as stages one after another: work on CPUs before and after, the model on GPUs between.

The slowest stage sets how many requests are finished; a request takes the sum of all stages and of the waits for them.
Each stage beside the model is taken as M/M/c: arrivals by chance, times of service spread exponentially about the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from suanli.formulas.queueing import mean_wait_mmc_s
from suanli.nouns.serving_ways import Stage, StagedService

MODEL = "model"


@dataclass(frozen=True)
class StageAsked:
    """A stage as asked for."""

    name: str
    service_s: float = field(metadata={"unit": "s", "doc": "of one request"})
    workers: int = field(metadata={"doc": "side by side"})


def staged(
    stages: Sequence[StageAsked], offered: float, model_limit: float, model_s: float | None, osl: float
) -> StagedService:
    """The service at `offered` requests a second. The model finishes at most `model_limit` and takes `model_s` each."""
    limits = {MODEL: model_limit, **{each.name: each.workers / each.service_s for each in stages}}
    least = min(limits, key=lambda name: limits[name])
    rate = min(offered, limits[least])
    told = tuple(_stage(each, rate, full=offered >= limits[each.name]) for each in stages)
    waits = [each.wait_s for each in told]
    latency = None
    if model_s is not None and None not in waits:
        latency = model_s + sum(each.service_s for each in told) + sum(wait or 0.0 for wait in waits)
    return StagedService(
        stages=told, offered_per_s=offered, requests_per_s=rate, tokens_per_second=rate * osl, limit=least,
        limit_per_s=limits[least], model_s=model_s, latency_s=latency,
    )  # fmt: skip


def _stage(asked: StageAsked, rate: float, *, full: bool) -> Stage:
    busy = rate * asked.service_s / asked.workers
    return Stage(
        name=asked.name, service_s=asked.service_s, workers=asked.workers,
        capacity_per_s=asked.workers / asked.service_s, busy=busy,
        wait_s=None if full or busy >= 1 else mean_wait_mmc_s(busy, asked.service_s, asked.workers),
    )  # fmt: skip
