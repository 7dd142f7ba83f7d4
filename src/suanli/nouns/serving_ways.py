"""Ways to serve beside one engine that does everything: drafts, chunks, pools apart, stages; measured points beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.serving import ServingLayout


def _field(unit: str, doc: str, **options: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **options)


@dataclass(frozen=True, kw_only=True)
class Speculation:
    """Decoding with drafted tokens, at the batch of the load."""

    draft: str = _field("", "model that drafts; `MTP`: one more layer of the model itself")
    draft_tokens: int = _field("tokens", "drafted before each step of the model")
    acceptance: float = _field("fraction", "chance that a drafted token is taken where those before it were")
    tokens_per_step: float = _field("tokens", "of a sequence, the model's own one included")
    verify_s: float = _field("s", "step of the model over all drafted tokens")
    draft_s: float = _field("s", "drafting them, one after another")
    plain_s: float = _field("s", "decode step without drafts, at the same batch")
    speed_up: float = _field("", "time of a token without drafts over that with them; below 1 they cost more")


@dataclass(frozen=True, kw_only=True)
class Interference:
    """What prefills do to those who decode: steps with a piece of a prompt in them, and steps without."""

    chunk_tokens: float = _field("tokens", "of prompts in a step")
    chunks: int = _field("", "pieces of a prompt")
    plain_s: float = _field("s", "step without a piece")
    mixed_s: float = _field("s", "step with a piece")
    mixed_fraction: float = _field("fraction", "of the steps have a piece; at most 1")
    jitter_s: float = _field("s", "standard deviation of the time of a step")


@dataclass(frozen=True, kw_only=True)
class Disaggregation:
    """Prefill and decode on GPUs of their own, the cache handed over."""

    prefill_gpus: int = _field("", "of the prefill pool")
    decode_gpus: int = _field("", "of the decode pool")
    prefill_replicas: int = _field("", "of the layout")
    decode_replicas: int = _field("", "of the layout")
    transfer_bytes: float = _field("B", "cache of one prompt, whole model")
    transfer_s: float = _field("s", "its way to the decode pool, all ranks of a replica side by side")
    link: str = _field("", "what it travels over")
    prefill_busy: float = _field("fraction", "of the prefill pool's time")
    requests_per_s: float = _field("1/s", "of both pools")
    prefill_limit_per_s: float = _field("1/s", "most that the prefill pool finishes")
    decode_limit_per_s: float = _field("1/s", "most that the decode pool finishes")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Work beside the model, on workers that take one request each."""

    name: str = _field("", "as given")
    service_s: float = _field("s", "of one request")
    workers: int = _field("", "side by side")
    capacity_per_s: float = _field("1/s", "most requests")
    busy: float = _field("fraction", "of the workers' time")
    wait_s: float | None = _field("s", "mean wait for a worker; None: grows without end")


@dataclass(frozen=True, kw_only=True)
class StagedService:
    """The whole service: stages on CPUs and the model on GPUs, one after another."""

    stages: tuple[Stage, ...] = _field("", "beside the model")
    offered_per_s: float = _field("1/s", "requests that come, or that the users of the model make")
    requests_per_s: float = _field("1/s", "finished: the least of all stages and what comes")
    tokens_per_second: float = _field("tokens/s", "output at that rate")
    limit: str = _field("", "the stage that would be full first")
    limit_per_s: float = _field("1/s", "most requests of the whole")
    model_s: float | None = _field("s", "of a request in the model, first to last token; None: grows without end")
    latency_s: float | None = _field("s", "of a request through everything; None: grows without end")


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A measured point near what was asked, and what we say of it."""

    model: str = _field("", "preset")
    gpu: str = _field("", "device")
    layout: ServingLayout = _field("", "of the replica")
    dtype: str = _field("", "of the weights")
    engine: str = _field("", "with its version")
    isl: float = _field("tokens", "prompt")
    osl: float = _field("tokens", "answer")
    concurrency: float | None = _field("sequences", "served at once; None: as many as fit")
    distance: float = _field("", "sum of |ln| of the ratios of size, memory rate, GPUs, users, lengths, bytes a weight")
    quantity: str = _field("", "what was measured: time of a further token, or output tokens/s")
    measured: float = _field("s or tokens/s", "as published")
    predicted: float = _field("s or tokens/s", "at the neighbour's own set-up, with the preset asked for")
    ratio: float = _field("", "predicted over measured")
    source: str = _field("", "who, where")
    date: str = _field("", "when")


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A preset drawn to the user's own points."""

    points: int = _field("", "used")
    left_out: Mapping[str, int] = _field("", "rows not used, by reason", default_factory=dict)
    error_before: float = _field("fraction", "mean |predicted/measured − 1| of the preset as it ships")
    error_after: float = _field("fraction", "the same with the numbers drawn to the points")
    error_held_out: float = _field("fraction", "the same, each point left out in turn")
    half_width_before: float = _field("", "80 % of |ln(predicted/measured)|, preset as it ships")
    half_width_after: float = _field("", "the same after")
    factors: Mapping[str, float] = _field("", "what each number of the preset was multiplied by", default_factory=dict)
