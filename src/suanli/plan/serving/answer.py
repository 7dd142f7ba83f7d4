"""One answer: memory first, then times under the load, then what it costs. Refuses where weights do not fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from suanli.errors import Fault, InputError
from suanli.nouns.arch import Arch
from suanli.nouns.hardware import Device
from suanli.nouns.infer import IdealTimes, Inference, SequenceBytes
from suanli.nouns.serving import KvCache, MemoryBudget, ServingLayout, WeightBytes
from suanli.nouns.serving_cost import TokenCost, TokenEnergy
from suanli.nouns.serving_load import LoadResult, Percentiles
from suanli.nouns.serving_profile import PowerProfile, ServingPreset, ServingProfile
from suanli.nouns.step import Entry
from suanli.plan.serving.budget import activation_bytes, asked, memory_budget
from suanli.plan.serving.cache import kv_cache
from suanli.plan.serving.cost import Load, token_cost, token_energy
from suanli.plan.serving.fits import check_fits
from suanli.plan.serving.load import Requests, closed_loop, open_loop, saturation
from suanli.plan.serving.power import joule_parts, joules_per_token
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.replicas import build_replica, with_profile
from suanli.plan.serving.simulate import poisson, simulate
from suanli.plan.serving.times import Replica
from suanli.plan.serving.weights import weight_bytes

_IDEAL = ServingProfile()
SIMULATED = 2000  # requests: the 99th percentile rests on twenty


@dataclass(frozen=True, kw_only=True)
class Service:
    """What is asked: a model on GPUs under an engine, its load, its money. Rates and users are of all replicas."""

    arch: Arch
    device: Device
    gpus: int
    layout: ServingLayout
    precision: Precision
    preset: ServingPreset
    requests: Requests
    engine: str = field(default="vllm", metadata={"doc": "whose rules of memory hold"})
    users: float | None = None
    rate: float | None = None
    price: tuple[float, str] | None = None
    sell: float | None = None
    utilisation: float = 1.0
    pue: float = 1.0
    carbon: float | None = None
    power: PowerProfile | None = None
    seed: int = 0

    @property
    def replicas(self) -> int:
        """Equal engines on the GPUs."""
        return self.gpus // self.layout.gpus


@dataclass(frozen=True, kw_only=True)
class Held:
    """What one replica keeps in memory."""

    weights: WeightBytes
    cache: KvCache
    budget: MemoryBudget


def hold(at: Service) -> Held:
    """Memory of the fullest GPU. Raises DoesNotFitError where weights leave no room, InputError where not even one
    sequence of isl + osl positions has room."""
    scheme, layout = at.precision.scheme, at.layout
    check_fits(at.arch, at.device, scheme=scheme, engine=at.engine, layout=layout)
    length = math.ceil(at.requests.isl + at.requests.osl)
    cache = kv_cache(at.arch, length, dtype=at.precision.cache, engine=at.engine, layout=layout)
    weights = weight_bytes(at.arch, scheme, layout)
    memory = float(at.device.memory_bytes_per_torch_device or 0)
    activations = activation_bytes(at.arch, at.engine, layout)
    budget = memory_budget(weights, cache, activations, asked(memory, at.engine, layout=layout))
    if cache.blocks and budget.max_concurrency < 1:
        raise InputError(
            Fault(
                code="no_room", message="the cache has no room for one sequence", where="--isl",
                got=f"{length:,} positions", expected=f"at most {budget.cache_tokens:,} on this replica",
                hint="More GPUs (--tp), a narrower cache (--kv-dtype fp8) or shorter requests.",
            )
        )  # fmt: skip
    return Held(weights=weights, cache=cache, budget=budget)


def answer(at: Service) -> Inference:
    """The whole answer. Raises as `hold`, and UnknownNameError for a device without measured kernels."""
    held = hold(at)
    replica = build_replica(at.arch, at.device, at.layout, at.precision, at.preset.profile)
    most = float(held.budget.max_concurrency) if held.cache.blocks else float(at.users or 1)
    load = _load(at, replica, most)
    bound = _load(at, with_profile(replica, _IDEAL), most)
    entries = _decode_entries(replica, load, at)
    step = sum(each.seconds for each in entries)
    cost, energy, reasons = _bill(at, replica, load)
    return Inference(
        model=at.arch.name, gpu=at.device.short_id, gpus=at.gpus, replicas=at.replicas, layout=at.layout,
        preset=at.preset.name, fits=True,
        ttft_s=load.ttft_s, tpot_s=load.tpot_s, tpot_interval_s=_interval(load.tpot_s, at.preset),
        tokens_per_second=at.replicas * load.tokens_per_s, load=load,
        saturation=saturation(replica, at.requests, most), percentiles=_percentiles(at, replica, load, most),
        decode=entries, prefill=_prefill_entries(replica, at),
        communication_fraction=next(each.seconds for each in entries if each.entry == "collectives") / step,
        ideal=IdealTimes(ttft_s=bound.ttft_s, tpot_s=bound.tpot_s, tokens_per_second=at.replicas * bound.tokens_per_s),
        kv_bytes_per_token=held.cache.bytes_per_token,
        kv_bytes_per_sequence=SequenceBytes(ideal=held.cache.ideal_bytes, paged=held.cache.paged_bytes),
        kv_cache=held.cache, weights_bytes=held.weights.total, weights=held.weights, memory=held.budget,
        max_concurrency=at.replicas * held.budget.max_concurrency,
        usd_per_million_tokens=None if cost is None else cost.usd_per_million_output_only,
        joules_per_token=None if energy is None else energy.joules_per_output_token,
        cost=cost, energy=energy, reasons=reasons,
    )  # fmt: skip


def _load(at: Service, replica: Replica, most: float) -> LoadResult:
    if at.rate is not None:
        return open_loop(replica, at.rate / at.replicas, at.requests, most)
    return closed_loop(replica, (at.users or 1.0) / at.replicas, at.requests, most)


def _interval(seconds: float, preset: ServingPreset) -> tuple[float, float] | None:
    if not preset.half_width:
        return None
    wide = math.exp(preset.half_width)
    return seconds / wide, seconds * wide


def _decode_entries(replica: Replica, load: LoadResult, at: Service) -> tuple[Entry, ...]:
    """One decode step at the load's batch; entries that take no time are left out, collectives are not."""
    found = replica.decode_parts(max(load.concurrency, 1.0), at.requests.mean_keys).seconds(replica.profile)
    return tuple(Entry(name, float(value)) for name, value in found.items() if value or name == "collectives")


def _prefill_entries(replica: Replica, at: Service) -> tuple[Entry, ...]:
    found = replica.prefill_parts(at.requests.isl, at.requests.isl).seconds(replica.profile)
    return tuple(Entry(name, float(value)) for name, value in found.items())


def _percentiles(at: Service, replica: Replica, load: LoadResult, most: float) -> Percentiles | None:
    """From a simulation of requests that arrive by chance; none where they come faster than they are finished."""
    if at.rate is None or load.saturated:
        return None
    from suanli.catalog.engines import find_engine  # noqa: PLC0415

    chunk = float(find_engine(at.engine).chunk_tokens)
    arrivals = poisson(at.rate / at.replicas, SIMULATED, at.seed)
    held = int(min(most, 4 * load.concurrency + 64))  # far above the mean: a table of steps needs an end
    how = f"{SIMULATED:,} requests arriving by chance (Poisson), seed {at.seed}, a tenth of them not counted"
    return simulate(replica, arrivals, at.requests, held, chunk, how)


def _bill(
    at: Service, replica: Replica, load: LoadResult
) -> tuple[TokenCost | None, TokenEnergy | None, dict[str, str]]:
    """Money and energy of one replica's tokens at this load."""
    reasons: dict[str, str] = {}
    prefill = min(load.requests_per_s * load.prefill_s, 1.0) or None  # of the engine's time
    work = Load(
        concurrency=max(round(load.concurrency), 1), output_tokens_per_s=load.tokens_per_s, gpus=at.layout.gpus,
        isl=round(at.requests.isl), osl=round(at.requests.osl), prefill_fraction=prefill, utilisation=at.utilisation,
    )  # fmt: skip
    cost = None
    if at.price is None:
        reasons["usd_per_million_tokens"] = "no price of this GPU is known: give --price"
    else:
        cost = token_cost(work, *at.price, sell=at.sell)
    return cost, _energy(at, replica, load, work, reasons), reasons


def _energy(at: Service, replica: Replica, load: LoadResult, work: Load, reasons: dict[str, str]) -> TokenEnergy | None:
    if at.power is None or at.device.tdp_w is None:
        reasons["joules_per_token"] = "the board power of this GPU is not known"
        return None
    users = max(load.concurrency, 1.0)
    token_s = users / load.tokens_per_s
    parts = joule_parts(replica, at.requests.isl, at.requests.osl, users, token_s)
    watts = joules_per_token(parts, at.power) * load.tokens_per_s / at.layout.gpus
    return token_energy(work, watts, pue=at.pue, carbon=at.carbon)


def with_load(at: Service, **changes: Any) -> Service:
    """The same service under another load or on other GPUs."""
    return replace(at, **changes)
