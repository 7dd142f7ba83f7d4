"""A load on one replica in closed form: a static batch, a constant number of users, or requests at a rate.

Continuous batching: new prompts are prefilled between decode steps, so every prefill delays all that decode. Memory
sets the most sequences; users beyond it wait. Saturation is where requests come faster than they can be finished.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from suanli.formulas.decoding import closed_loop_tokens_per_s, time_per_output_token_s
from suanli.formulas.queueing import mean_wait_md1_s
from suanli.nouns.serving import ServingRates
from suanli.nouns.serving_load import LoadResult, Saturation

Numbers = Any
_HALVINGS = 60
_WORTH = 1e-3  # a larger batch that brings less than this part more tokens is not worth its latency


@dataclass(frozen=True, kw_only=True)
class Requests:
    """What every request is: prompt and answer lengths, in tokens. Where an encoder takes the prompt (`encoded`), the
    decoder begins with one token of its own."""

    isl: float
    osl: float
    encoded: float = 0.0

    @property
    def prompt(self) -> float:
        """Tokens that a user sends."""
        return self.encoded or self.isl

    @property
    def mean_keys(self) -> float:
        """Positions a sequence has in the cache on average while it decodes."""
        return self.isl + self.osl / 2

    @property
    def positions(self) -> int:
        """Positions a sequence has at its end."""
        return math.ceil(self.isl + self.osl)


def tpot_s(rates: ServingRates, sequences: Numbers, requests: Requests) -> Numbers:
    """Seconds between two tokens while `sequences` are served, prefills of their successors between them."""
    decode = rates.decode_s(sequences, requests.mean_keys)
    return time_per_output_token_s(decode, rates.prefill_s(requests.isl, requests.isl), sequences, requests.osl)


def static_batch(rates: ServingRates, batch: float, requests: Requests) -> LoadResult:
    """A batch that starts together and ends together; nobody joins on the way. Its prompts are prefilled one by one,
    and all of them have their first token when the last is done."""
    prefill = batch * float(rates.prefill_s(requests.isl, requests.isl))
    step = float(rates.decode_s(batch, requests.mean_keys))
    total = prefill + (requests.osl - 1) * step
    return LoadResult(
        concurrency=batch, queue_s=0.0, schedule_s=0.0, prefill_s=prefill, ttft_s=prefill, tpot_s=step, decode_s=step,
        tokens_per_s=batch * requests.osl / total, requests_per_s=batch / total,
    )  # fmt: skip


def closed_loop(rates: ServingRates, users: float, requests: Requests, most: float) -> LoadResult:
    """`users` who each send the next request the moment the last one is answered; `most` sequences fit in the cache.

    Raises nothing: where not one sequence fits, the caller has refused before.
    """
    served = min(users, most)
    token = float(tpot_s(rates, served, requests))
    step = float(rates.decode_s(served, requests.mean_keys))
    prefill = float(rates.prefill_s(requests.isl, requests.isl))
    own = step / 2 + prefill
    rate = float(closed_loop_tokens_per_s(served, requests.osl, own, token)) / requests.osl
    waiting = users - served
    queue = waiting / rate  # Little's law: those who wait, over the rate at which room is made
    return LoadResult(
        concurrency=served, waiting=waiting, queue_s=queue, schedule_s=step / 2, prefill_s=prefill, ttft_s=queue + own,
        tpot_s=token, decode_s=step, tokens_per_s=rate * requests.osl, requests_per_s=rate,
    )  # fmt: skip


def saturation(rates: ServingRates, requests: Requests, most: float) -> Saturation:
    """The most a replica finishes: tokens a second grow with the batch until memory ends it, or hardly any more."""
    import numpy as np  # noqa: PLC0415

    sizes = np.unique(np.round(np.geomspace(1, max(most, 1), 64)))
    tokens = sizes / tpot_s(rates, sizes, requests)
    at = int(np.argmax(tokens))
    enough = int(np.argmax(tokens >= (1 - _WORTH) * tokens[at]))
    limit = "KV memory" if enough == len(sizes) - 1 else "arithmetic"
    return Saturation(
        requests_per_s=float(tokens[at] / requests.osl), tokens_per_s=float(tokens[at]),
        concurrency=float(sizes[enough]), limit=limit,
    )  # fmt: skip


def open_loop(rates: ServingRates, rate: float, requests: Requests, most: float) -> LoadResult:
    """Requests at `rate` a second, arriving by chance. The batch is where as many leave as come (Little's law)."""
    limit = saturation(rates, requests, most)
    prefill = float(rates.prefill_s(requests.isl, requests.isl))
    if rate >= limit.requests_per_s:
        token = float(tpot_s(rates, limit.concurrency, requests))
        step = float(rates.decode_s(limit.concurrency, requests.mean_keys))
        return LoadResult(
            concurrency=limit.concurrency, schedule_s=step / 2, prefill_s=prefill, tpot_s=token, decode_s=step,
            tokens_per_s=limit.tokens_per_s, requests_per_s=limit.requests_per_s, saturated=True,
        )  # fmt: skip
    served = _balanced(rates, rate, requests, most)
    step = float(rates.decode_s(max(served, 1.0), requests.mean_keys))
    token = float(tpot_s(rates, served, requests))
    queue = float(mean_wait_md1_s(min(rate * prefill, 1 - 1e-9), prefill))
    return LoadResult(
        concurrency=served, queue_s=queue, schedule_s=step / 2, prefill_s=prefill, ttft_s=queue + step / 2 + prefill,
        tpot_s=token, decode_s=step, tokens_per_s=rate * requests.osl, requests_per_s=rate,
    )  # fmt: skip


def _balanced(rates: ServingRates, rate: float, requests: Requests, most: float) -> float:
    """Sequences b with b = rate · osl · time per token(b): by halving, since tokens a second grow with b."""
    low, high = 0.0, float(most)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        leaving = middle / float(tpot_s(rates, max(middle, 1e-9), requests)) / requests.osl
        low, high = (middle, high) if leaving < rate else (low, middle)
    return high
