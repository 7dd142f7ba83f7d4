"""Requests arriving at a replica, step by step: percentiles that a mean cannot give.

A step takes prompts in order of arrival, up to `chunk` tokens of them, beside one token of every sequence that decodes;
it lasts as long as the prefill of those tokens and one decode step. A request whose prompt is done has its first token
at the end of that step. Cache room is taken when a prompt begins and given back with the last token.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from suanli.nouns.serving import ServingRates
from suanli.nouns.serving_load import PERCENTILES, Percentiles
from suanli.plan.serving.load import Requests

Array = Any
_WARM = 0.1  # of the requests, not counted: the replica fills up
_NOTHING = 1e-12


@dataclass(frozen=True)
class StepTimes:
    """Seconds of steps as tables: a decode step by sequences, straight in keys; a prefill straight in tokens."""

    fixed: Array  # decode, by sequences, at no keys
    by_key: Array  # decode, more for each key of the mean
    prefill_fixed: float
    prefill_by_token: float

    @classmethod
    def of(cls, rates: ServingRates, most: int, requests: Requests, chunk: float) -> StepTimes:
        """Tables for up to `most` sequences about the requests' lengths."""
        import numpy as np  # noqa: PLC0415

        sizes = np.maximum(np.arange(most + 1), 1.0)
        low, high = requests.isl, requests.isl + requests.osl
        first, last = (np.asarray(rates.decode_s(sizes, keys), dtype=float) for keys in (low, high))
        slope = (last - first) / (high - low)
        few, many = max(min(requests.isl, chunk) / 2, 1.0), max(min(requests.isl, chunk), 2.0)
        least, whole = (float(rates.prefill_s(tokens, requests.isl)) for tokens in (few, many))
        grows = (whole - least) / (many - few)
        return cls(first - slope * low, slope, whole - grows * many, grows)

    def step_s(self, decoding: int, keys: float, tokens: float) -> float:
        """Seconds of a step that decodes some sequences and prefills some tokens."""
        decode = self.fixed[decoding] + self.by_key[decoding] * keys if decoding else 0.0
        return float(decode + (self.prefill_fixed + self.prefill_by_token * tokens if tokens else 0.0))

    def steps_s(self, decoding: int, keys: float, steps: int) -> float:
        """Seconds of `steps` decode steps alike but for the keys, which are one more each time."""
        more = self.by_key[decoding] * (keys + (steps - 1) / 2)
        return float(steps * (self.fixed[decoding] + more))


@dataclass(slots=True)
class _Request:
    arrived: float
    left: float  # tokens of the prompt
    began: float = -1.0
    first: float = -1.0
    last_step: int = 0  # the step that makes its last token
    ended: float = -1.0


@dataclass
class _Replica:
    """Who waits, whose prompt is under way, who decodes. Answers are of one length, so they end in order."""

    most: int
    waiting: deque[_Request] = field(default_factory=deque)
    filling: deque[_Request] = field(default_factory=deque)
    decoding: deque[_Request] = field(default_factory=deque)
    made: int = 0  # tokens that those who decode have by now, all together
    step: int = 0

    @property
    def held(self) -> int:
        return len(self.filling) + len(self.decoding)


def simulate(
    rates: ServingRates, arrivals_s: Sequence[float], requests: Requests, most: int, chunk: float, how: str
) -> Percentiles:
    """Percentiles of requests that arrive at these times (in order). `how` says what was assumed of them.

    `most` sequences fit in the cache, at least 1; `chunk` tokens of prompts a step.
    """
    times = StepTimes.of(rates, most, requests, chunk)
    every = _run(times, [_Request(at, requests.isl) for at in arrivals_s], requests, most, chunk)
    counted = every[int(_WARM * len(every)) :]
    return _percentiles(counted, requests, how)


def poisson(rate: float, count: int, seed: int = 0) -> Array:
    """`count` arrival times at `rate` a second by chance."""
    import numpy as np  # noqa: PLC0415

    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))


def _run(times: StepTimes, every: list[_Request], requests: Requests, most: int, chunk: float) -> list[_Request]:
    now, coming, at = 0.0, deque(every), _Replica(most)
    while coming or at.waiting or at.held:
        if not at.waiting and not at.held:
            now = max(now, coming[0].arrived)
        while coming and coming[0].arrived <= now + _NOTHING:
            at.waiting.append(coming.popleft())
        now = _quiet(times, at, now, requests, coming[0].arrived if coming else math.inf)
        now = _step(times, at, now, requests, chunk)
    return every


def _quiet(times: StepTimes, at: _Replica, now: float, requests: Requests, until: float) -> float:
    """The time after all steps but one in which nobody comes, begins or ends: taken together, as they are alike."""
    free = not at.filling and (not at.waiting or at.held >= at.most)
    if not free or not at.decoding or now >= until:
        return now
    decoding, most = len(at.decoding), at.decoding[0].last_step - at.step - 1
    keys = requests.isl + at.made / decoding
    low, high = 0, most + 1  # the most steps that end before somebody comes
    while high - low > 1:
        middle = (low + high) // 2
        within = now + times.steps_s(decoding, keys, middle) < until - _NOTHING
        low, high = (middle, high) if within else (low, middle)
    if low <= 0:
        return now
    at.step += low
    at.made += low * decoding
    return now + times.steps_s(decoding, keys, low)


def _step(times: StepTimes, at: _Replica, now: float, requests: Requests, chunk: float) -> float:
    """One step from `now`; the time it ends."""
    tokens, done = _fill(at, now, chunk)
    decoding = len(at.decoding)
    end = now + times.step_s(decoding, requests.isl + (at.made / decoding if decoding else 0.0), tokens)
    at.step += 1
    at.made += decoding + len(done)  # one token of each, the first of those whose prompt is done
    for each in done:
        each.first, each.last_step = end, at.step + int(requests.osl) - 1
        at.decoding.append(each)
    while at.decoding and at.decoding[0].last_step <= at.step:
        at.decoding.popleft().ended = end
        at.made -= int(requests.osl)
    return end


def _fill(at: _Replica, now: float, chunk: float) -> tuple[float, list[_Request]]:
    """Tokens of prompts that this step takes, and the requests whose prompt is done with it."""
    done: list[_Request] = []
    budget, taken = chunk, 0.0
    while budget > 0:
        if not at.filling:
            if not at.waiting or at.held + len(done) >= at.most:
                break
            begun = at.waiting.popleft()
            begun.began = now
            at.filling.append(begun)
        each = at.filling[0]
        now_taken = min(budget, each.left)
        each.left -= now_taken
        budget, taken = budget - now_taken, taken + now_taken
        if each.left <= 0:
            done.append(at.filling.popleft())
    return taken, done


def _percentiles(counted: list[_Request], requests: Requests, how: str) -> Percentiles:
    import numpy as np  # noqa: PLC0415

    first = np.array([each.first - each.arrived for each in counted])
    total = np.array([each.ended - each.arrived for each in counted])
    token = (total - first) / max(requests.osl - 1, 1)
    wait = np.array([each.began - each.arrived for each in counted])
    columns = {name: _at(values) for name, values in (("ttft_s", first), ("tpot_s", token), ("total_s", total))}
    return Percentiles(**columns, mean_wait_s=float(wait.mean()), requests=len(counted), arrivals=how)


def _at(values: Array) -> dict[int, float]:
    import numpy as np  # noqa: PLC0415

    return {percent: float(np.percentile(values, percent)) for percent in PERCENTILES}
