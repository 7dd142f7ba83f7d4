"""Prefill in chunks: a prompt goes in pieces through steps that decode too, so no step is long; the prompt takes more.

A step with a piece lasts as long as its decode and its piece: that is the jitter a user sees between two tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from suanli.nouns.serving import ServingRates
from suanli.nouns.serving_load import LoadResult
from suanli.nouns.serving_ways import Interference
from suanli.plan.serving.load import Requests

Numbers = Any
MOST_CHUNKS = 4096


@dataclass(frozen=True, kw_only=True)
class Chunked:
    """Rates with every prompt cut into chunks: what `ServingRates` asks for."""

    rates: ServingRates
    chunk: float

    def decode_s(self, sequences: Numbers, keys: Numbers) -> Numbers:
        """As without chunks."""
        return self.rates.decode_s(sequences, keys)

    def prefill_s(self, tokens: Numbers, keys: Numbers) -> Numbers:
        """The pieces together: each has its own collectives and passes, and sees the keys of those before."""
        if float(tokens) <= self.chunk:
            return self.rates.prefill_s(tokens, keys)
        return sum(pieces_s(self.rates, float(tokens), float(keys), self.chunk))


def pieces_s(rates: ServingRates, tokens: float, keys: float, chunk: float) -> list[float]:
    """Seconds of each piece of a prompt of `tokens`, the last of which sees `keys` keys."""
    found, done = [], 0.0
    while done < tokens:
        piece = min(chunk, tokens - done)
        done += piece
        found.append(float(rates.prefill_s(piece, keys - tokens + done)))
    return found


def interference(
    rates: ServingRates, load: LoadResult, requests: Requests, chunk: float, tokens_per_step: float = 1.0
) -> Interference:
    """Steps with and without a piece of a prompt, at a load. `rates` cut nothing themselves.

    While one answer of O tokens is decoded in O/s steps, C prompts come in n pieces each: C·n·s/O of the steps have
    one. Where that is above 1 every step has as many as it takes.
    """
    plain = load.decode_s * tokens_per_step
    chunks = math.ceil(requests.isl / chunk)
    pieces = sum(pieces_s(rates, requests.isl, requests.isl, chunk))
    often = load.concurrency * chunks * tokens_per_step / requests.osl
    more = pieces / chunks * max(often, 1.0)
    share = min(often, 1.0)
    return Interference(
        chunk_tokens=min(chunk, requests.isl), chunks=chunks, plain_s=plain, mixed_s=plain + more,
        mixed_fraction=share, jitter_s=more * math.sqrt(share * (1 - share)),
    )  # fmt: skip


def later_s(load: LoadResult, requests: Requests, chunk: float) -> float:
    """What the first token waits more because its prompt's pieces ride in steps that decode as well."""
    return (math.ceil(requests.isl / chunk) - 1) * load.decode_s
