"""One answer: memory first, then times under the load, then what it costs. Refuses where weights do not fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, takewhile

from suanli.catalog.engines import find_engine
from suanli.catalog.serving_presets import ideal_preset
from suanli.errors import Fault, InputError
from suanli.nouns.arch import Arch
from suanli.nouns.hardware import Device
from suanli.nouns.infer import IdealTimes, Inference, SequenceBytes
from suanli.nouns.serving import KvCache, MemoryBudget, ServingLayout, ServingRates, WeightBytes
from suanli.nouns.serving_cost import TokenCost, TokenEnergy
from suanli.nouns.serving_load import LoadResult, Percentiles, Saturation
from suanli.nouns.serving_profile import PowerProfile, ServingPreset
from suanli.nouns.serving_ways import Disaggregation, Interference, Speculation, StagedService
from suanli.nouns.step import Entry
from suanli.nouns.stored import unstored
from suanli.plan.serving.budget import activation_bytes, asked, memory_budget
from suanli.plan.serving.cache import kv_cache, pages_by_engine
from suanli.plan.serving.chunks import interference, later_s
from suanli.plan.serving.cost import Load, token_cost, token_energy
from suanli.plan.serving.fits import check_fits
from suanli.plan.serving.links import node_of
from suanli.plan.serving.load import Requests, closed_loop, open_loop, saturation, static_batch
from suanli.plan.serving.pools import Pools
from suanli.plan.serving.power import joule_parts, joules_per_token
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.replicas import build_replica, with_profile
from suanli.plan.serving.simulate import poisson, simulate
from suanli.plan.serving.speculate import Speculating, speculation
from suanli.plan.serving.stages import StageAsked, staged
from suanli.plan.serving.times import Replica
from suanli.plan.serving.ways import Draft, Transfer, drafting_of, transfer_of, with_chunks, with_drafts
from suanli.plan.serving.weights import weight_bytes
from suanli.units import GIGA

SIMULATED, FEWEST = 2000, 200  # requests: the 99th percentile rests on twenty; fewer where each comes in many pieces
_PIECES = 400_000  # of prompts in a simulation at most


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
    batch: float | None = field(default=None, metadata={"doc": "a static one: starts and ends together"})
    price: tuple[float, str] | None = None
    sell: float | None = None
    utilisation: float = 1.0
    pue: float = 1.0
    carbon: float | None = None
    power: PowerProfile | None = None
    seed: int = 0
    draft: Draft | None = field(default=None, metadata={"doc": "what drafts tokens"})
    chunk: float | None = field(default=None, metadata={"unit": "tokens", "doc": "prompts in pieces; None: whole"})
    pools: tuple[int, int] | None = field(default=None, metadata={"doc": "GPUs of prefill and of decode"})
    link_bytes_per_s: float | None = field(
        default=None,
        metadata={
            "unit": "B/s",
            "doc": "one direction of a GPU's link: to the other pool, else to the others of its replica",
        },
    )
    stages: tuple[StageAsked, ...] = ()

    @property
    def replicas(self) -> int:
        """Equal engines that decode."""
        return (self.gpus if self.pools is None else self.pools[1]) // self.layout.gpus


@dataclass(frozen=True, kw_only=True)
class Held:
    """What one replica keeps in memory."""

    weights: WeightBytes
    cache: KvCache
    budget: MemoryBudget
    most: int = field(metadata={"unit": "sequences", "doc": "at once, a draft model's memory taken off"})


def hold(at: Service) -> Held:
    """Memory of the fullest GPU. Raises DoesNotFitError where weights leave no room, InputError where not even one
    sequence of isl + osl positions has room."""
    scheme, layout = at.precision.scheme, at.layout
    check_fits(at.arch, at.device, scheme=scheme, engine=at.engine, layout=layout)
    length = at.requests.positions
    encoded = math.ceil(at.requests.encoded) or None
    cache = kv_cache(at.arch, length, dtype=at.precision.cache, engine=at.engine, layout=layout, encoder_tokens=encoded)
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
    return Held(weights=weights, cache=cache, budget=budget, most=_most(at, cache, budget))


def _most(at: Service, cache: KvCache, budget: MemoryBudget) -> int:
    """Sequences at once. A draft model has its weights and its caches on the same GPUs."""
    if at.draft is None or at.draft.arch is None or not cache.blocks:
        return budget.max_concurrency
    weights = weight_bytes(at.draft.arch, unstored(at.precision.scheme), at.layout).per_rank
    own = kv_cache(at.draft.arch, at.requests.positions, dtype=at.precision.cache, engine=at.engine, layout=at.layout)
    left = budget.cache - weights
    most = at.layout.dp_attention * math.floor(left / (cache.paged_bytes_per_rank + own.paged_bytes_per_rank))
    if most < 1:
        raise InputError(
            Fault(code="no_room", message="the draft model leaves no room for one sequence", where="--draft-model",
                  got=f"{weights / GIGA:,.1f} GB of {budget.cache / GIGA:,.1f} GB left for caches",
                  expected="a smaller draft, more GPUs or shorter requests")
        )  # fmt: skip
    return most


def replica_of(at: Service) -> Replica:
    """One engine on its GPUs. Raises InputError for a device of unknown memory rate or, where needed, links."""
    links = (
        None
        if at.link_bytes_per_s is None or at.pools is not None
        else node_of(at.device.id, at.layout.gpus, at.link_bytes_per_s)
    )
    return build_replica(
        at.arch, at.device, at.layout, at.precision, at.preset.profile, links, encoded=at.requests.encoded
    )


def answer(at: Service) -> Inference:
    """The whole answer. Raises as `hold`, and InputError for a device whose memory rate or links are not known."""
    held = hold(at)
    replica = build_replica(at.arch, at.device, at.layout, at.precision, at.preset.profile, encoded=at.requests.encoded)
    seen = _seen(at, replica, held)
    offered = at.rate if at.rate is not None else seen.load.requests_per_s * at.replicas
    behind = _behind(at, offered)
    if behind is not at:
        at, seen = behind, _seen(behind, replica, held)
    bound = _seen(at, with_profile(replica, ideal_preset().profile.least(replica.profile)), held).load
    load, entries = seen.load, _decode_entries(seen, at)
    step = sum(each.seconds for each in entries)
    cost, energy, reasons = _bill(at, replica, load)
    encoded = math.ceil(at.requests.encoded) or None
    pages, expanded = pages_by_engine(at.arch, at.requests.positions, at.precision.cache, encoded)
    return Inference(
        model=at.arch.name, gpu=at.device.short_id, gpus=at.gpus, replicas=at.replicas, layout=at.layout,
        preset=at.preset.name, fits=True,
        ttft_s=load.ttft_s, tpot_s=load.tpot_s, tpot_interval_s=_interval(load.tpot_s, at.preset),
        tokens_per_second=at.replicas * load.tokens_per_s, load=load,
        saturation=seen.saturation, percentiles=_percentiles(at, seen),
        decode=entries, prefill=_prefill_entries(replica, at),
        communication_fraction=next(each.seconds for each in entries if each.entry == "collectives") / step,
        ideal=IdealTimes(ttft_s=bound.ttft_s, tpot_s=bound.tpot_s, tokens_per_second=at.replicas * bound.tokens_per_s),
        kv_bytes_per_token=held.cache.bytes_per_token,
        kv_bytes_per_sequence=SequenceBytes(ideal=held.cache.ideal_bytes, paged=held.cache.paged_bytes),
        kv_paged_by_engine=pages, kv_expanded_bytes_per_token=expanded,
        kv_cache=held.cache, weights_bytes=held.weights.total, weights=held.weights, memory=held.budget,
        max_concurrency=at.replicas * held.most,
        usd_per_million_tokens=None if cost is None else cost.usd_per_million_output_only,
        joules_per_token=None if energy is None else energy.joules_per_output_token,
        cost=cost, energy=energy, reasons=reasons,
        interference=_interference(at, seen), speculation=_speculation(at, seen),
        disaggregation=seen.pools, service=_staged(at, seen, offered), curve=_curve(at, seen),
    )  # fmt: skip


# --- the load -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """A replica, the rates that its way of serving gives, and the load on it."""

    replica: Replica
    rates: ServingRates
    most: float
    load: LoadResult
    requests: Requests
    pools: Disaggregation | None = None
    limit: Saturation | None = field(default=None, metadata={"doc": "where pools have set it"})

    @cached_property
    def saturation(self) -> Saturation:
        """The most that is finished."""
        return self.limit or saturation(self.rates, self.requests, self.most)


def _seen(at: Service, replica: Replica, held: Held) -> _Seen:
    drafts = drafting_of(at.draft, at.device, at.layout, at.precision, replica.profile)
    rates = with_drafts(replica, drafts)
    most = float(held.most) if held.cache.blocks else float(at.users or 1)
    if at.pools is not None:
        return _in_pools(at, replica, rates, most)
    rates = with_chunks(rates, at.chunk)
    if at.batch is not None:
        load = static_batch(rates, min(at.batch / at.replicas, most), at.requests)
    elif at.rate is not None:
        load = open_loop(rates, at.rate / at.replicas, at.requests, most)
    else:
        load = closed_loop(rates, (at.users or 1.0) / at.replicas, at.requests, most)
    return _Seen(replica=replica, rates=rates, most=most, load=_in_pieces(at, load), requests=at.requests)


def _in_pieces(at: Service, load: LoadResult) -> LoadResult:
    """The load with what prompts in pieces wait for."""
    if at.chunk is None or load.ttft_s is None:
        return load
    later = later_s(load, at.requests, at.chunk)
    return replace(load, ttft_s=load.ttft_s + later, schedule_s=load.schedule_s + later)


def _curve(at: Service, seen: _Seen) -> tuple[LoadResult, ...]:
    """A replica with 1, 2, 4 … users and with as many as its caches hold, each with the next request at once."""
    if at.pools is not None or at.batch is not None:
        return ()
    doubled = takewhile(lambda users: users < seen.most, (2**power for power in count()))
    return tuple(
        _in_pieces(at, closed_loop(seen.rates, float(users), at.requests, seen.most)) for users in (*doubled, seen.most)
    )


def _in_pools(at: Service, replica: Replica, rates: ServingRates, most: float) -> _Seen:
    """Prefill and decode apart."""
    assert at.pools is not None, "asked before"
    moved: Transfer = transfer_of(at.arch, replica, at.requests, at.engine, at.gpus, at.link_bytes_per_s)
    prefill, decode = (gpus // at.layout.gpus for gpus in at.pools)
    pools = Pools(rates=rates, prefill=prefill, decode=decode, transfer_s=moved.seconds, most=most)
    load = pools.at_rate(at.rate, at.requests) if at.rate is not None else pools.with_users(at.users or 1, at.requests)
    told = pools.told(load, at.requests, at.layout.gpus, moved.whole_bytes, moved.link)
    limit = pools.limit(at.requests)
    return _Seen(replica=replica, rates=rates, most=most, load=load, requests=at.requests, pools=told, limit=limit)


def _interval(seconds: float, preset: ServingPreset) -> tuple[float, float] | None:
    if not preset.half_width:
        return None
    wide = math.exp(preset.half_width)
    return seconds / wide, seconds * wide


def _decode_entries(seen: _Seen, at: Service) -> tuple[Entry, ...]:
    """One decode step at the load's batch; entries that take no time are left out, collectives are not."""
    batch, keys, replica = max(seen.load.concurrency, 1.0), at.requests.mean_keys, seen.replica
    drafts = _drafts(seen)
    tokens = 1.0 if drafts is None else 1.0 + drafts.drafting.draft_tokens
    found = replica.decode_parts(batch, keys, tokens).seconds(replica.profile)
    if drafts is not None:
        found["drafts"] = drafts.draft_s(batch, keys)
    return tuple(Entry(name, float(value)) for name, value in found.items() if value or name == "collectives")


def _prefill_entries(replica: Replica, at: Service) -> tuple[Entry, ...]:
    found = replica.prefill_parts(at.requests.isl, at.requests.isl).seconds(replica.profile)
    return tuple(Entry(name, float(value)) for name, value in found.items())


def _drafts(seen: _Seen) -> Speculating | None:
    """The rates with drafts, out of whatever cuts prompts around them."""
    rates = getattr(seen.rates, "rates", seen.rates)
    return rates if isinstance(rates, Speculating) else None


def _speculation(at: Service, seen: _Seen) -> Speculation | None:
    drafts = _drafts(seen)
    return None if drafts is None else speculation(drafts, max(seen.load.concurrency, 1.0), at.requests.mean_keys)


def _interference(at: Service, seen: _Seen) -> Interference | None:
    """Prefills between the decode steps; none where they have GPUs of their own."""
    if at.pools is not None or at.batch is not None:
        return None
    chunk = at.chunk or float(find_engine(at.engine).chunk_tokens)
    drafts = _drafts(seen)
    tokens = 1.0 if drafts is None else drafts.drafting.tokens_per_step
    return interference(getattr(seen.rates, "rates", seen.rates), seen.load, at.requests, chunk, tokens)


def _behind(at: Service, offered: float) -> Service:
    """The service as the model sees it: no more requests come than the slowest stage beside it lets through."""
    through = min((each.workers / each.service_s for each in at.stages), default=math.inf)
    return at if offered <= through else replace(at, users=None, rate=through)


def _staged(at: Service, seen: _Seen, offered: float) -> StagedService | None:
    if not at.stages:
        return None
    load, most = seen.load, seen.saturation.requests_per_s * at.replicas
    whole = None if load.ttft_s is None else load.ttft_s + (at.requests.osl - 1) * load.tpot_s
    limit = most if at.rate is not None else max(most, offered)  # users who never rest come no faster than they leave
    return staged(at.stages, offered, limit, whole, at.requests.osl)


def _percentiles(at: Service, seen: _Seen) -> Percentiles | None:
    """From a simulation of requests that arrive by chance; none where they come faster than they are finished, or where
    prefill and decode are apart."""
    if at.rate is None or seen.load.saturated or at.pools is not None:
        return None
    chunk = at.chunk or float(find_engine(at.engine).chunk_tokens)
    count = max(min(SIMULATED, int(_PIECES // math.ceil(at.requests.isl / chunk))), FEWEST)
    arrivals = poisson(at.rate / at.replicas, count, at.seed)
    held = int(min(seen.most, 4 * seen.load.concurrency + 64))  # far above the mean: a table of steps needs an end
    how = f"{count:,} requests arriving by chance (Poisson), seed {at.seed}, a tenth of them not counted"
    return simulate(getattr(seen.rates, "rates", seen.rates), arrivals, at.requests, held, chunk, how)


# --- money and energy ---------------------------------------------------------------------------------------------


def _bill(
    at: Service, replica: Replica, load: LoadResult
) -> tuple[TokenCost | None, TokenEnergy | None, dict[str, str]]:
    """Money and energy of one replica's tokens at this load; of both pools together where they are apart."""
    reasons: dict[str, str] = {}
    engines, gpus = (at.replicas, at.gpus) if at.pools is not None else (1, at.layout.gpus)
    prefill = None if at.pools is not None else min(load.requests_per_s * load.prefill_s, 1.0) or None  # of its time
    work = Load(
        concurrency=max(round(load.concurrency * engines), 1), output_tokens_per_s=load.tokens_per_s * engines,
        gpus=gpus, isl=round(at.requests.prompt), osl=round(at.requests.osl), prefill_fraction=prefill,
        utilisation=at.utilisation,
    )  # fmt: skip
    cost = None
    if at.price is None:
        reasons["usd_per_million_tokens"] = "no price of this GPU is known: give --price"
    else:
        cost = token_cost(work, *at.price, sell=at.sell)
    return cost, _energy(at, replica, load, work, reasons), reasons


def _energy(at: Service, replica: Replica, load: LoadResult, work: Load, reasons: dict[str, str]) -> TokenEnergy | None:
    why = None
    if at.power is None or at.device.tdp_w is None:
        why = "the board power of this GPU is not known"
    elif at.draft is not None or at.pools is not None:
        why = "power was fitted to engines without drafts that prefill and decode on the same GPUs"
    if why is not None or at.power is None:
        reasons["joules_per_token"] = why or ""
        return None
    users = max(load.concurrency, 1.0)
    token_s = users / load.tokens_per_s
    parts = joule_parts(replica, at.requests.isl, at.requests.osl, users, token_s)
    watts = joules_per_token(parts, at.power) * load.tokens_per_s / at.layout.gpus
    return token_energy(work, watts, pue=at.pue, carbon=at.carbon)
