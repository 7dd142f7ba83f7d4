"""Memory left for the cache and the sequences it holds: engines' rules and figures they logged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.engines import find_engine
from suanli.errors import InputError
from suanli.formulas.serving import equivalent_tokens, max_sequences
from suanli.nouns.serving import KvCache, ServingLayout, WeightBytes
from suanli.plan.serving.budget import (
    activation_bytes,
    asked,
    cache_tokens,
    concurrency,
    max_concurrency,
    memory_budget,
)
from suanli.plan.serving.cache import kv_cache
from suanli.plan.serving.weights import weight_bytes
from suanli.readers.preset import read_named_preset
from suanli.units import GIBI, GIGA


def cache(name: str, tokens: int, **options: Any) -> KvCache:
    return kv_cache(read_named_preset(name), tokens, **options)


def test_a_window_is_held_with_a_chunk_and_a_page() -> None:
    """vLLM pull request 19029: starcoder2-3b, 16,384 long, 2,198,512 tokens of cache: 4096 + 8192 + 16 each."""
    found = cache("starcoder2-3b", 16_384)
    assert found.blocks * 16 == 4096 + 8192 + 16
    assert round(concurrency(found, 2_198_512 // 16), 2) == 178.68
    assert round(2_198_512 / 16_384, 2) == 134.19  # what was printed before, as if every position stayed


def test_unified_pages_hold_every_position() -> None:
    """hf-mem pull request 70: gpt-oss-20b, 32 sequences of 8,192: 6.09 GiB, 12.00 with unified pages."""
    found = cache("gpt-oss-20b", 8192)
    assert f"{32 * found.ideal_bytes / GIBI:.2f}" == "6.09"
    assert f"{32 * found.paged_bytes / GIBI:.2f}" == f"{32 * found.paged_by_rule['unified'] / GIBI:.2f}" == "12.00"


def test_pages_given_back_outside_the_window() -> None:
    """Two groups of 12 layers: 8,192 blocks of full attention, and 127 + 8,192 positions of the window, in one more."""
    found = cache("gpt-oss-20b", 131_072)
    blocks = 131_072 // 16 + (-(-(127 + 8192) // 16) + 1)
    assert found.paged_by_rule["grouped"] == blocks * 12 * 16 * 2 * 8 * 64 * 2


def test_a_hybrids_pool_in_tokens() -> None:
    """vLLM issue 40691: Qwen3.5-27B, 32,768 long. A page holds a state of 48 · 128² · 4 + 3 · 10,240 · 2 bytes, so a
    block is ⌈3,207,168 / (4,096 · 16)⌉ · 16 = 784 positions; four groups of 16 layers share 1,487 blocks; a sequence
    takes 42 of them and one for each group of states. The log divided by the groups: 290,864; 33.04 fit at once."""
    found = cache("qwen3.5-27b", 32_768)
    assert found.page_bytes == 16 * 784 * 2 * 4 * 256 * 2
    assert found.blocks == 42 + 3
    assert 1487 // 4 * 784 == 290_864
    assert f"{concurrency(found, 1487):.2f}" == "33.04"
    assert round(equivalent_tokens(33.04, 32_768)) == 1_082_655
    assert cache_tokens(found, 1487) == 1487 * 32_768 // 45


def test_a_batch_beyond_the_cache_waits() -> None:
    """aiconfigurator pull request 652: TensorRT-LLM rounds a request up to 32 positions."""
    assert max_sequences(100_000, 1000 + 1000, 32) == 100_000 // 2016 == 49
    found = cache("llama-3.1-8b", 2000, engine="tensorrt-llm")
    assert found.blocks == 63
    assert max_concurrency(found, 100_000 // 32) == 49
    assert cache_tokens(found, 3125) == 100_000


def test_of_total_memory() -> None:
    """vLLM: 0.9 · 80 GiB less 16.06 GB less 4 GB, in pages of 2 MiB: 27,298 pages, 96 a sequence of 1,536."""
    weights, found = weight_bytes(read_named_preset("llama-3.1-8b")), cache("llama-3.1-8b", 1536)
    budget = memory_budget(weights, found, 4 * GIGA, asked(80 * GIBI, "vllm"))
    left = 0.9 * 80 * GIBI - 16_060_522_496 - 4 * GIGA
    assert budget.cache == pytest.approx(left)
    assert budget.cache_tokens == int(left // (2 << 20)) * 16
    assert budget.max_concurrency == int(left // (2 << 20)) // 96 == budget.cache_tokens // 1536
    assert (budget.engine, budget.fraction, budget.total) == ("vllm", 0.9, 80 * GIBI)
    assert budget.usable == pytest.approx(0.9 * 80 * GIBI)


# engine: bytes left of 100 GB with 40 GB of weights and 10 GB of activations
RULES = [
    ("vllm", 0.9, 0.9 * 100 - 40 - 10),
    ("tensorrt-llm", 0.9, 0.9 * (100 - 40 - 10)),
    ("sglang", 0.88, 0.88 * 100 - 40),
    ("sglang", 0.95, 100 - 10 - 40),  # activations need their 10 GB all the same
    ("ideal", 1.0, 100 - 40 - 10),
]


@pytest.mark.parametrize(("engine", "fraction", "left"), RULES)
def test_each_engine_takes_its_part(engine: str, fraction: float, left: float) -> None:
    weights = WeightBytes(scheme="x", total=40 * GIGA, per_rank=40 * GIGA, parts={}, source="")
    at = asked(100 * GIGA, engine, fraction=fraction)
    budget = memory_budget(weights, cache("llama-3-8b", 100, engine=engine), 10 * GIGA, at)
    assert budget.cache == pytest.approx(left * GIGA)
    assert budget.usable <= budget.total
    assert asked(GIGA, engine).fraction == find_engine(engine).memory_fraction


def test_what_does_not_fit_leaves_less_than_nothing() -> None:
    weights = WeightBytes(scheme="x", total=90 * GIGA, per_rank=90 * GIGA, parts={}, source="")
    budget = memory_budget(weights, cache("llama-3-8b", 100), GIGA, asked(80 * GIGA))
    assert budget.cache == pytest.approx(0.9 * 80 * GIGA - 91 * GIGA)
    assert (budget.cache_tokens, budget.max_concurrency) == (0, 0)


def test_each_group_of_dp_attention_has_its_own_cache() -> None:
    layout = ServingLayout(dp_attention=8, ep=8)
    weights = weight_bytes(read_named_preset("deepseek-v3"), "fp8-block", layout)
    found = cache("deepseek-v3", 4096, layout=layout)
    one = memory_budget(weights, found, 4 * GIGA, asked(141 * GIBI))
    eight = memory_budget(weights, found, 4 * GIGA, asked(141 * GIBI, layout=layout))
    assert eight.cache_tokens == 8 * one.cache_tokens > 0
    assert eight.max_concurrency == 8 * one.max_concurrency > 0


def test_shared_positions_are_told_whole() -> None:
    """Two ranks hold the two halves of a sequence: as many tokens again."""
    found = cache("llama-3-70b", 4096, layout=ServingLayout(tp=16, cp=2))
    assert cache_tokens(found, 1000, cp=2) == 32_000
    assert max_concurrency(found, 1000) == 1000 // 128


# --- allowances ---------------------------------------------------------------------------------------------------


def test_a_buffer_of_scores_is_not_forgotten() -> None:
    """ollama pull request 17201: DeepSeek-V2-Lite at 32,768: 16 heads · 512 · 32,768 scores in fp32 are 1.07 GB."""
    arch = read_named_preset("deepseek-v2-lite")
    plain, scores = (activation_bytes(arch, "llama.cpp", keys=keys) for keys in (0, 32_768))
    assert scores - plain == 16 * 512 * 32_768 * 4
    assert scores > GIGA


def test_an_allowance_has_its_parts() -> None:
    """A chunk of 8,192 of width 4,096 and gates of 14,336 in bf16, fp32 logits of one; the reserve; NCCL's."""
    arch = read_named_preset("llama-3.1-8b")
    chunk = 8192 * (4096 + 14_336) * 2 + 4 * 128_256
    assert activation_bytes(arch, "vllm") == chunk + 3_500_000_000
    halved = 8192 * (4096 + 14_336 // 2) * 2 + 4 * 128_256
    assert activation_bytes(arch, "vllm", ServingLayout(tp=2)) == halved + 3_500_000_000 + 390_000_000


@pytest.mark.parametrize(("memory", "fraction", "message"), [
    (0, None, "not a possible memory in memory_bytes; got 0; expected bytes of one GPU."),
    (80 * GIGA, 1.5, "not a possible part of memory in fraction; got 1.5; expected above 0, at most 1."),
    (80 * GIGA, 0, "not a possible part of memory in fraction; got 0; expected above 0, at most 1."),
])  # fmt: skip
def test_impossible_numbers(memory: float, fraction: float | None, message: str) -> None:
    with pytest.raises(InputError) as caught:
        asked(memory, fraction=fraction)
    assert str(caught.value) == message


# --- laws ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 20_000), st.sampled_from(["vllm", "sglang", "tensorrt-llm"]), st.integers(20, 200))
def test_what_fits_fits(length: int, engine: str, memory: int) -> None:
    """So many sequences' pages are within the cache, and one more is not."""
    found = cache("llama-3.1-8b", length, engine=engine)
    weights = weight_bytes(read_named_preset("llama-3.1-8b"))
    budget = memory_budget(weights, found, GIGA, asked(memory * GIGA, engine))
    used = budget.max_concurrency * found.paged_bytes
    assert used <= max(budget.cache, 0) < used + found.paged_bytes + found.page_bytes or budget.cache <= 0


@given(st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_more_memory_never_holds_fewer(first: float, second: float) -> None:
    weights, found = weight_bytes(read_named_preset("llama-3.1-8b")), cache("llama-3.1-8b", 2048)
    low, high = (
        memory_budget(weights, found, GIGA, asked(80 * GIGA, fraction=part)).max_concurrency
        for part in sorted((first, second))
    )
    assert low <= high


def test_an_engine_may_be_given_as_a_record() -> None:
    wide = replace(find_engine("vllm"), block_tokens=128)
    assert cache("llama-3-8b", 129, engine=wide).paged_bytes == 256 * 131_072
