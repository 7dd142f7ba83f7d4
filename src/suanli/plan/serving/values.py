"""Our figure for each check value of `catalog/claims/serving.toml`, by the functions that an answer uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from suanli.catalog.devices import find_device
from suanli.formulas.decoding import distinct_experts, speculative_tokens
from suanli.formulas.queueing import mean_wait_md1_s
from suanli.nouns.arch import Arch
from suanli.nouns.serving import ServingLayout
from suanli.plan.serving.budget import concurrency
from suanli.plan.serving.cache import kv_cache
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.replicas import build_replica
from suanli.plan.serving.times import Replica
from suanli.plan.serving.weights import weight_bytes
from suanli.units import GIBI, GIGA, MILLI

Read = Callable[[str], Arch]


def our_value(what: str, inputs: Mapping[str, Any], read: Read) -> float:
    """Ours; `read` gives a preset's architecture. Raises KeyError for what nobody gives."""
    return float(_VALUES[what](read, **inputs))


def _token_bytes(read: Read, model: str, expanded: bool = False) -> float:
    return kv_cache(read(model), 1, expanded=expanded).first_token_bytes


def _sequence_gib(read: Read, model: str, tokens: int, dtype: str = "bf16", rule: str | None = None) -> float:
    found = kv_cache(read(model), tokens, dtype=dtype)
    return (found.ideal_bytes if rule is None else found.paged_by_rule[rule]) / GIBI


def _growing_gib(read: Read, model: str, tokens: int) -> float:
    return tokens * kv_cache(read(model), tokens).bytes_per_token / GIBI


def _rank_ratio(read: Read, model: str, tp: int, over: int) -> float:
    more, fewer = (kv_cache(read(model), 1, layout=ServingLayout(tp=each)).ideal_bytes_per_rank for each in (tp, over))
    return more / fewer


def _concurrency(read: Read, model: str, tokens: int, blocks: int) -> float:
    return concurrency(kv_cache(read(model), tokens), blocks)


def _experts(_: Read, experts: int, chosen: int, tokens: int) -> float:
    return float(distinct_experts(experts, chosen, tokens))


def _rank_weight_gb(read: Read, model: str, scheme: str, tp: int) -> float:
    return weight_bytes(read(model), scheme, ServingLayout(tp=tp)).per_rank / GIGA


def _replica(read: Read, model: str, gpu: str) -> Replica:
    return build_replica(read(model), find_device(gpu), ServingLayout(), Precision.of())


def _cache_read_ms(read: Read, model: str, gpu: str, sequences: int, keys: int) -> float:
    return float(_replica(read, model, gpu).decode_parts(float(sequences), float(keys)).cache) / MILLI


def _weights_read_ms(read: Read, model: str, gpu: str) -> float:
    device = find_device(gpu)
    return weight_bytes(read(model)).read / float(device.memory_bytes_per_s_per_torch_device or 0) / MILLI


_VALUES: dict[str, Callable[..., float]] = {
    "token_bytes": _token_bytes, "sequence_gib": _sequence_gib, "growing_gib": _growing_gib, "rank_ratio": _rank_ratio,
    "concurrency": _concurrency, "experts": _experts, "rank_weight_gb": _rank_weight_gb,
    "cache_read_ms": _cache_read_ms, "weights_read_ms": _weights_read_ms,
    "tokens_per_step": lambda _, **given: speculative_tokens(**given),
    "md1_wait_s": lambda _, **given: float(mean_wait_md1_s(**given)),
}  # fmt: skip
