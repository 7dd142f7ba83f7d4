"""Prefill and decode on GPUs of their own: prompts queue for the one pool, their caches travel to the other.

The prefill pool: equal replicas, each with its share of arrivals by chance and one prompt at a time (M/D/1). The decode
pool is never disturbed by a prefill. A user has prefill's wait, the prompt, the way of its cache, then decode steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from suanli.formulas.queueing import mean_wait_md1_s
from suanli.nouns.serving import ServingRates
from suanli.nouns.serving_load import LoadResult, Saturation
from suanli.nouns.serving_ways import Disaggregation
from suanli.plan.serving.load import Requests

_HALVINGS = 60
_FULL = 1 - 1e-9


@dataclass(frozen=True, kw_only=True)
class Pools:
    """Replicas of both pools, what a prompt's cache takes to travel, and the most sequences of a decode replica."""

    rates: ServingRates
    prefill: int = field(metadata={"doc": "replicas"})
    decode: int = field(metadata={"doc": "replicas"})
    transfer_s: float = field(metadata={"unit": "s", "doc": "a prompt's cache on its way"})
    most: float = field(metadata={"unit": "sequences", "doc": "that a decode replica holds"})

    def prompt_s(self, requests: Requests) -> float:
        """Seconds of one prompt's prefill."""
        return float(self.rates.prefill_s(requests.isl, requests.isl))

    def prefill_limit(self, requests: Requests) -> float:
        """Most requests a second of the prefill pool."""
        return self.prefill / self.prompt_s(requests)

    def decode_limit(self, requests: Requests) -> float:
        """Most requests a second of the decode pool: all of its room in use."""
        step = float(self.rates.decode_s(max(self.most, 1.0), requests.mean_keys))
        return self.decode * self.most / (requests.osl * step)

    def limit(self, requests: Requests) -> Saturation:
        """The most of a decode replica's share, and which pool ends it."""
        first, second = self.prefill_limit(requests), self.decode_limit(requests)
        least = min(first, second) / self.decode
        return Saturation(
            requests_per_s=least, tokens_per_s=least * requests.osl, concurrency=self._together(least, requests),
            limit="prefill pool" if first < second else "KV memory",
        )  # fmt: skip

    def _together(self, rate: float, requests: Requests) -> float:
        """Sequences of one decode replica at a rate: as many as leave (Little's law)."""
        low, high = 0.0, self.most
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            step = float(self.rates.decode_s(max(middle, 1.0), requests.mean_keys))
            low, high = (middle, high) if middle < rate * requests.osl * step else (low, middle)
        return high

    def at_rate(self, rate: float, requests: Requests) -> LoadResult:
        """One decode replica's part of `rate` requests a second of the whole."""
        most = self.limit(requests)
        saturated = rate >= most.requests_per_s * self.decode
        each = min(rate / self.decode, most.requests_per_s)
        served = self._together(each, requests)
        step = float(self.rates.decode_s(max(served, 1.0), requests.mean_keys))
        prompt = self.prompt_s(requests)
        queue = None if saturated else float(mean_wait_md1_s(rate * prompt / self.prefill, prompt))
        own = prompt + self.transfer_s + step / 2
        return LoadResult(
            concurrency=served, queue_s=queue, schedule_s=self.transfer_s + step / 2, prefill_s=prompt,
            ttft_s=None if queue is None else queue + own, tpot_s=step, decode_s=step,
            tokens_per_s=each * requests.osl, requests_per_s=each, saturated=saturated,
        )  # fmt: skip

    def with_users(self, users: float, requests: Requests) -> LoadResult:
        """One decode replica's part of `users` who never rest: the rate at which all of them are in the system."""
        most = self.limit(requests).requests_per_s * self.decode
        low, high = 0.0, most * _FULL
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            load = self.at_rate(middle, requests)
            assert load.ttft_s is not None, "below the limit"
            inside = middle * (load.ttft_s + (requests.osl - 1) * load.tpot_s)
            low, high = (middle, high) if inside < users else (low, middle)
        return self.at_rate(low or high, requests)

    def told(self, load: LoadResult, requests: Requests, gpus: int, moved: float, link: str) -> Disaggregation:
        """Both pools at a load. `gpus` of one replica; `moved` bytes over `link`."""
        rate = load.requests_per_s * self.decode
        return Disaggregation(
            prefill_gpus=self.prefill * gpus, decode_gpus=self.decode * gpus, prefill_replicas=self.prefill,
            decode_replicas=self.decode, transfer_bytes=moved, transfer_s=self.transfer_s, link=link,
            prefill_busy=rate / self.prefill_limit(requests), requests_per_s=rate,
            prefill_limit_per_s=self.prefill_limit(requests), decode_limit_per_s=self.decode_limit(requests),
        )  # fmt: skip
