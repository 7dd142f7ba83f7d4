"""Prompts in pieces: what they cost, what they do to a step, and that nothing changes where a prompt is one piece."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.catalog.devices import find_device
from suanli.catalog.serving_presets import find_serving_preset
from suanli.nouns.serving import ServingLayout
from suanli.plan.serving.chunks import Chunked, interference, later_s, pieces_s
from suanli.plan.serving.load import Requests, closed_loop
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.replicas import build_replica
from suanli.plan.serving.times import Replica
from suanli.readers.preset import read_named_preset

read = functools.cache(read_named_preset)


class Fixed:
    """A step takes 10 ms, a prompt 0.1 ms a token and 1 ms as such."""

    def decode_s(self, sequences: Any, keys: Any) -> Any:
        return 0.01 + 0 * sequences * keys

    def prefill_s(self, tokens: Any, keys: Any) -> Any:
        return 0.001 + 1e-4 * tokens + 0 * keys


def replica() -> Replica:
    profile = find_serving_preset("vllm").profile
    return build_replica(read("llama-3.1-8b"), find_device("h100-sxm"), ServingLayout(), Precision.of(), profile)


def test_pieces_by_hand() -> None:
    """2,500 tokens in pieces of 1,000: 0.101, 0.101 and 0.051 s."""
    assert pieces_s(Fixed(), 2500, 2500, 1000) == pytest.approx([0.101, 0.101, 0.051])
    assert Chunked(rates=Fixed(), chunk=1000).prefill_s(2500, 2500) == pytest.approx(0.253)
    assert Chunked(rates=Fixed(), chunk=2500).prefill_s(2500, 2500) == pytest.approx(0.251)


def test_steps_by_hand() -> None:
    """32 users, 2,000 in 4 pieces, 1,000 out: 32 · 4 / 1,000 of the steps have a piece of 51 ms; the deviation of a
    step that is 51 ms longer with a chance of 0.128 is 51 · √(0.128 · 0.872) = 17.04 ms."""
    requests = Requests(isl=2000, osl=1000)
    load = closed_loop(Chunked(rates=Fixed(), chunk=500), 32, requests, 100)
    found = interference(Fixed(), load, requests, 500)
    assert (found.chunks, found.chunk_tokens, found.plain_s) == (4, 500, 0.01)
    assert found.mixed_s == pytest.approx(0.061)
    assert found.mixed_fraction == pytest.approx(0.128)
    assert found.jitter_s == pytest.approx(0.01704, rel=1e-3)
    assert later_s(load, requests, 500) == pytest.approx(0.03)  # three more steps of 10 ms


def test_where_every_step_has_a_piece_it_takes_as_many_as_come() -> None:
    """200 users, 10 pieces each, 1,000 steps: two pieces in every step."""
    requests = Requests(isl=1000, osl=1000)
    load = closed_loop(Fixed(), 200, requests, 1000)
    found = interference(Fixed(), load, requests, 100)
    assert (found.mixed_fraction, found.jitter_s) == (1.0, 0.0)
    assert found.mixed_s == pytest.approx(0.01 + 2 * 0.011)


def test_drafts_make_fewer_steps_of_an_answer() -> None:
    requests = Requests(isl=1000, osl=1000)
    load = closed_loop(Fixed(), 10, requests, 1000)
    plain, drafted = (interference(Fixed(), load, requests, 1000, tokens) for tokens in (1.0, 2.5))
    assert drafted.mixed_fraction == pytest.approx(2.5 * plain.mixed_fraction)
    assert drafted.plain_s == pytest.approx(2.5 * plain.plain_s)


@settings(max_examples=20)
@given(st.integers(256, 16_384), st.integers(64, 4096))
def test_pieces_see_all_pairs_once(tokens: int, chunk: int) -> None:
    """Arithmetic of the pieces together is that of the whole prompt, heads of the later pieces aside."""
    served = replica()
    whole = served.prefill_parts(float(tokens), float(tokens)).arithmetic
    done, parts = 0.0, 0.0
    while done < tokens:
        piece = min(float(chunk), tokens - done)
        done += piece
        parts += served.prefill_parts(piece, done).arithmetic
    head = served.prefill_parts(1.0, 1.0).arithmetic
    assert whole * (1 - 1e-9) <= parts <= whole + head * (tokens / chunk + 1)
