"""What a load does to a replica: times a user sees, tokens of all users, where it saturates, percentiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PERCENTILES = (50, 90, 95, 99)


def _field(unit: str, doc: str, **options: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **options)


@dataclass(frozen=True, kw_only=True)
class LoadResult:
    """One load on one replica. Mean times of a user; `ttft_s` is queue, schedule and prefill."""

    concurrency: float = _field("sequences", "decoded together on average")
    waiting: float = _field("sequences", "of the users asked for, those who wait for room in the cache", default=0.0)
    queue_s: float | None = _field("s", "wait for the requests before; None: grows without end", default=None)
    schedule_s: float = _field("s", "wait for the step that runs")
    prefill_s: float = _field("s", "the prompt's own prefill")
    ttft_s: float | None = _field("s", "to the first token; None: grows without end", default=None)
    tpot_s: float = _field("s", "to each further token, prefills of others between them included")
    decode_s: float = _field("s", "one decode step without prefills")
    tokens_per_s: float = _field("tokens/s", "output of the replica")
    requests_per_s: float = _field("1/s", "finished by the replica")
    saturated: bool = _field("", "whether more requests come than are finished", default=False)


@dataclass(frozen=True, kw_only=True)
class Saturation:
    """The most a replica finishes: limited by its cache or by its speed."""

    requests_per_s: float = _field("1/s", "most that it finishes")
    tokens_per_s: float = _field("tokens/s", "output at that rate")
    concurrency: float = _field("sequences", "decoded together then")
    limit: str = _field("", "`KV memory`, or `arithmetic` where more sequences would not bring more tokens")


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """Percentiles from a simulation, by percent."""

    ttft_s: Mapping[int, float] = _field("s", "time to the first token")
    tpot_s: Mapping[int, float] = _field("s", "mean time of a request's further tokens")
    total_s: Mapping[int, float] = _field("s", "from arrival to the last token")
    mean_wait_s: float = _field("s", "from arrival to the start of its prefill, mean")
    requests: int = _field("", "simulated, warm-up left out")
    arrivals: str = _field("", "the assumption about arrivals, with the seed")
