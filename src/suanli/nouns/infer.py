"""What `infer` answers: whether a model fits, how fast it is for a user, for how many, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.serving import KvCache, MemoryBudget, ServingLayout, WeightBytes
from suanli.nouns.serving_cost import TokenCost, TokenEnergy
from suanli.nouns.serving_load import LoadResult, Percentiles, Saturation
from suanli.nouns.serving_ways import (
    Calibration,
    Disaggregation,
    Interference,
    Neighbour,
    Speculation,
    StagedService,
)
from suanli.nouns.step import Entry


def _field(unit: str, doc: str, **options: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **options)


@dataclass(frozen=True, kw_only=True)
class SequenceBytes:
    """The cache of one sequence of isl + osl positions."""

    ideal: float = _field("B", "nothing rounded")
    paged: float = _field("B", "in the engine's pages")


@dataclass(frozen=True, kw_only=True)
class IdealTimes:
    """The same load with every operator at its peak rate, collectives at the best fitted, nothing between operators."""

    ttft_s: float | None = _field("s", "to the first token")
    tpot_s: float = _field("s", "to each further token")
    tokens_per_second: float = _field("tokens/s", "output of all replicas")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One layout on one GPU kind at one batch size."""

    gpu: str = _field("", "device")
    layout: ServingLayout = _field("", "of a replica")
    concurrency: float = _field("sequences", "of a replica")
    ttft_s: float = _field("s", "half a step and the prompt's prefill; no queue")
    tpot_s: float = _field("s", "time of each further token")
    tokens_per_s: float = _field("tokens/s", "output of a replica")
    tokens_per_s_per_gpu: float = _field("tokens/s", "output of a GPU")
    replicas: int | None = _field("", "for the rate asked for; None: none was", default=None)
    gpus: int = _field("", "in all")
    usd_per_hour: float | None = _field("$/h", "of all GPUs; None: no price", default=None)
    usd_per_million_tokens: float | None = _field("$/1M", "of output tokens", default=None)


@dataclass(frozen=True, kw_only=True)
class Inference:
    """A served model under a load. Times are a user's, throughput that of all replicas together."""

    model: str = _field("", "name")
    gpu: str = _field("", "device")
    gpus: int = _field("", "in all")
    replicas: int = _field("", "equal engines, each with its share of the load")
    layout: ServingLayout = _field("", "of a replica")
    preset: str = _field("", "the engine whose numbers were used")
    fits: bool = _field("", "whether weights, activations and some cache fit in a GPU's memory")
    ttft_s: float | None = _field("s", "to the first token: queue, schedule, prefill; None: grows without end")
    tpot_s: float = _field("s", "to each further token")
    tpot_interval_s: tuple[float, float] | None = _field("s", "80 %, from points left out of the fit; None: ideal")
    tokens_per_second: float = _field("tokens/s", "output of all replicas")
    load: LoadResult = _field("", "of one replica")
    saturation: Saturation = _field("", "the most one replica finishes")
    percentiles: Percentiles | None = _field("", "from a simulation, where a rate was given", default=None)
    decode: tuple[Entry, ...] = _field("s", "one decode step, by what it goes to")
    prefill: tuple[Entry, ...] = _field("s", "one prompt's prefill, by what it goes to")
    communication_fraction: float = _field("fraction", "of a decode step")
    ideal: IdealTimes = _field("", "the same load at the data sheet's rates")
    kv_bytes_per_token: float = _field("B", "whole model, a token past every window")
    kv_bytes_per_sequence: SequenceBytes = _field("B", "of isl + osl positions")
    kv_paged_by_engine: Mapping[str, float] = _field("B", "of one sequence, in each engine's pages")
    kv_expanded_bytes_per_token: float | None = _field("B", "whole keys and values; None: no latents", default=None)
    kv_cache: KvCache = _field("", "by kind of layer")
    weights_bytes: float = _field("B", "whole model")
    weights: WeightBytes = _field("", "by part")
    memory: MemoryBudget = _field("", "of the fullest GPU")
    max_concurrency: int = _field("sequences", "that fit at once on all replicas")
    usd_per_million_tokens: float | None = _field("$", "of output tokens, all money put on them; None: no price")
    joules_per_token: float | None = _field("J", "of an output token, PUE included; None: no power known")
    cost: TokenCost | None = _field("", "in full", default=None)
    energy: TokenEnergy | None = _field("", "in full", default=None)
    choices: tuple[Choice, ...] = _field("", "layouts that meet the targets, cheapest first", default=())
    front: tuple[Choice, ...] = _field("", "none is beaten in latency and throughput at once", default=())
    reasons: Mapping[str, str] = _field("", "why a figure is missing", default_factory=dict)
    interference: Interference | None = _field("", "of prefills with decode; None: pools apart", default=None)
    speculation: Speculation | None = _field("", "where tokens are drafted", default=None)
    disaggregation: Disaggregation | None = _field("", "where prefill and decode have GPUs of their own", default=None)
    service: StagedService | None = _field("", "with stages beside the model", default=None)
    neighbours: tuple[Neighbour, ...] = _field("", "nearest measured points, nearest first", default=())
    curve: tuple[LoadResult, ...] = _field(
        "",
        "one replica at 1, 2, 4 … users, up to what its caches hold; empty: pools apart, or a static batch",
        default=(),
    )
    calibration: Calibration | None = _field("", "where the preset was drawn to points given", default=None)
