"""Prefill and decode on GPUs of their own: prompts queue for the one pool, their caches travel to the other.

The prefill pool: equal replicas, each with its share of arrivals by chance and one prompt at a time (M/D/1). The decode
pool is never disturbed by a prefill. A user has prefill's wait, the prompt, the way of its cache, then decode steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

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
        each = min(rate / self.decode, most.requests_per_s)
        found = self._loaded(rate / self.decode, self._together(each, requests), self.prompt_s(requests), requests)
        if rate < most.requests_per_s * self.decode:
            return found
        return replace(found, queue_s=None, ttft_s=None, saturated=True, requests_per_s=each,
                       tokens_per_s=each * requests.osl)  # fmt: skip

    def _loaded(self, each: float, served: float, prompt: float, requests: Requests) -> LoadResult:
        """`each` requests a second on one decode replica, `served` sequences on it; below the limit."""
        step = float(self.rates.decode_s(max(served, 1.0), requests.mean_keys))
        busy = min(each * self.decode * prompt / self.prefill, _FULL)
        queue = float(mean_wait_md1_s(busy, prompt))
        return LoadResult(
            concurrency=served, queue_s=queue, schedule_s=self.transfer_s + step / 2, prefill_s=prompt,
            ttft_s=queue + prompt + self.transfer_s + step / 2, tpot_s=step, decode_s=step,
            tokens_per_s=each * requests.osl, requests_per_s=each,
        )  # fmt: skip

    def with_users(self, users: float, requests: Requests) -> LoadResult:
        """One decode replica's part of `users` who never rest: as many sequences on it as make all of them in the
        system (Little's law)."""
        prompt, low = self.prompt_s(requests), 0.0
        high = self.limit(requests).concurrency * _FULL
        for _ in range(_HALVINGS):
            load = self._of_served((low + high) / 2, prompt, requests)
            assert load.ttft_s is not None, "below the limit"
            inside = load.requests_per_s * self.decode * (load.ttft_s + (requests.osl - 1) * load.tpot_s)
            low, high = (load.concurrency, high) if inside < users else (low, load.concurrency)
        return self._of_served(low or high, prompt, requests)

    def _of_served(self, served: float, prompt: float, requests: Requests) -> LoadResult:
        """The load that keeps `served` sequences on a decode replica."""
        step = float(self.rates.decode_s(max(served, 1.0), requests.mean_keys))
        return self._loaded(served / (requests.osl * step), served, prompt, requests)

    def told(self, load: LoadResult, requests: Requests, gpus: int, moved: float, link: str) -> Disaggregation:
        """Both pools at a load. `gpus` of one replica; `moved` bytes over `link`."""
        rate = load.requests_per_s * self.decode
        return Disaggregation(
            prefill_gpus=self.prefill * gpus, decode_gpus=self.decode * gpus, prefill_replicas=self.prefill,
            decode_replicas=self.decode, transfer_bytes=moved, transfer_s=self.transfer_s, link=link,
            prefill_busy=rate / self.prefill_limit(requests), requests_per_s=rate,
            prefill_limit_per_s=self.prefill_limit(requests), decode_limit_per_s=self.decode_limit(requests),
        )  # fmt: skip
