"""The KV cache: published figures to their digits, ranks, lengths and layouts that cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.presets import presets
from suanli.errors import InputError, UnknownNameError
from suanli.footprint import kv_cache as counted
from suanli.nouns.arch import Arch, Module, Stream
from suanli.nouns.layers import Attention, CausalConv, LinearAttention
from suanli.nouns.serving import KvCache, ServingLayout
from suanli.nouns.workload import Workload
from suanli.plan.serving.cache import kv_cache
from suanli.readers.preset import read_named_preset
from suanli.units import GIBI


def cache(name: str, tokens: int, **options: Any) -> KvCache:
    return kv_cache(read_named_preset(name), tokens, **options)


# model: bytes a token in bf16, with the arithmetic: 2 · layers · kv heads · width · 2 B
PER_TOKEN = [
    ("llama-3-8b", 2 * 32 * 8 * 128 * 2, 131_072),
    ("llama-3-70b", 2 * 80 * 8 * 128 * 2, 327_680),
    ("llama-3.1-405b", 2 * 126 * 8 * 128 * 2, 516_096),
    ("llama-2-7b", 2 * 32 * 32 * 128 * 2, 524_288),
    ("gpt3-175b", 2 * 96 * 96 * 128 * 2, 4_718_592),
    ("deepseek-v3", 61 * (512 + 64) * 2, 70_272),
    ("gpt-oss-120b", 2 * 36 * 8 * 64 * 2, 73_728),
]


@pytest.mark.parametrize(("name", "arithmetic", "printed"), PER_TOKEN, ids=[row[0] for row in PER_TOKEN])
def test_bytes_of_a_token(name: str, arithmetic: int, printed: int) -> None:
    found = cache(name, 1, engine="ideal")
    assert found.first_token_bytes == arithmetic == printed
    assert found.ideal_bytes == found.paged_bytes == printed


# model, tokens, format, engine: GiB of a sequence as published, to its digits
PER_SEQUENCE = [
    ("deepseek-v3", 163_840, "bf16", "10.72"),
    ("deepseek-v3", 65_536, "fp16", "4.29"),
    ("gemma-3-27b", 131_072, "bf16", "10.41"),
    ("gpt-oss-120b", 65_536, "fp8", "1.127"),
    ("qwen3-0.6b", 40_960, "bf16", "4.38"),
    ("qwen2.5-7b-1m", 262_144, "q8_0", "7.44"),
]


@pytest.mark.parametrize(("name", "tokens", "dtype", "printed"), PER_SEQUENCE, ids=[row[0] for row in PER_SEQUENCE])
def test_bytes_of_a_sequence(name: str, tokens: int, dtype: str, printed: str) -> None:
    found = cache(name, tokens, dtype=dtype).ideal_bytes / GIBI
    assert f"{found:.{len(printed.split('.')[1])}f}" == printed


def test_expanded_latents_are_whole_keys_and_values() -> None:
    """128 heads of 192 and 128 over 61 layers in bf16; 305 GiB at 65,536 positions, 4.29 as latents."""
    found = cache("deepseek-v3", 65_536, expanded=True)
    assert found.bytes_per_token == 61 * 128 * (192 + 128) * 2 == 4_997_120
    assert found.ideal_bytes == 305 * GIBI
    assert [line.kind for line in found.lines] == ["attention"]


def test_windows_are_counted_and_what_they_save_is_shown() -> None:
    """Gemma 3 27B: 10 layers keep 131,072 positions, 52 keep 1,024; without windows 62 layers do: 62.0 GiB."""
    found = cache("gemma-3-27b", 131_072)
    full, window = found.lines
    assert (full.kind, full.layers, full.window) == ("attention", 10, None)
    assert (window.kind, window.layers, window.window) == ("window", 52, 1024)
    assert found.ideal_bytes == full.bytes_per_token * 131_072 + window.bytes_per_token * 1024
    assert found.paged_by_rule["unified"] / GIBI == found.first_token_bytes * 131_072 / GIBI == 62.0
    assert cache("gpt-oss-120b", 65_536, dtype="fp8").paged_by_rule["unified"] / GIBI == 2.25


def test_only_full_attention_grows_in_a_hybrid() -> None:
    """Qwen3.5-27B: 16 of 64 layers, 2 · 4 · 256 numbers: 16.0 GiB at 262,144; 48 states of 48 · 128² · 4 B and
    3 · 10,240 inputs of the convolution in bf16 beside them."""
    found = cache("qwen3.5-27b", 262_144)
    attention, state = found.lines
    assert (attention.layers, attention.bytes_per_token * 262_144) == (16, 16 * GIBI)
    assert (state.kind, state.layers) == ("state", 48)
    assert state.bytes_constant == 48 * (48 * 128 * 128 * 4 + 3 * 10_240 * 2)
    assert found.ideal_bytes == 16 * GIBI + state.bytes_constant
    assert not found.growing_only


def test_a_models_head_width_is_the_configs() -> None:
    """Qwen3-0.6B: 128 a head, not 1024 / 16 = 64, which would give half: 2.19 GiB."""
    assert cache("qwen3-0.6b", 40_960).ideal_bytes == 40_960 * 2 * 28 * 8 * 128 * 2


# format: bytes of 32 · 8 · 2 · 128 numbers of a token of Llama 3 8B
FORMATS = [
    ("int8", 65_536), ("fp8", 65_536), ("q8_0", 65_536 * 34 // 32), ("q4_0", 65_536 * 18 // 32),
    ("mxfp4", 65_536 * 17 // 32), ("nvfp4", 65_536 * 9 // 16), ("fp32", 4 * 65_536),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "size"), FORMATS)
def test_quantised_caches_hold_their_scales(dtype: str, size: int) -> None:
    found = cache("llama-3-8b", 1000, dtype=dtype, engine="ideal")
    assert (found.bytes_per_token, found.ideal_bytes) == (size, 1000 * size)


def test_count_gives_the_same_bytes() -> None:
    for dtype in ("bf16", "mxfp4", "fp8"):
        arch, work = read_named_preset("gpt-oss-20b"), Workload(phase="decode", kv_len=777, kv_dtype=dtype)
        assert counted(arch, work) == kv_cache(arch, 777, dtype=dtype).ideal_bytes


DECODING = [
    name for name, preset in presets().items()
    if preset.task in ("causal-lm", "image-text-to-text", "audio-text-to-text", "speech-seq2seq", "seq2seq-lm")
]  # fmt: skip


@pytest.mark.parametrize("name", DECODING)
def test_every_preset_keeps_what_count_says(name: str) -> None:
    arch = read_named_preset(name)
    found = kv_cache(arch, 333, encoder_tokens=50)
    assert found.ideal_bytes == counted(arch, Workload(phase="decode", seq=50, kv_len=333))
    assert found.ideal_bytes <= found.paged_bytes
    assert all(found.ideal_bytes <= size for size in found.paged_by_rule.values())
    assert len(DECODING) > 100


# --- ranks --------------------------------------------------------------------------------------------------------

# tp, cp: bytes a token on a rank of Llama 3 70B (8 kv heads, 40,960 B each), ranks that hold the same
RANKS = [(1, 1, 327_680, 1), (2, 1, 163_840, 1), (8, 1, 40_960, 1), (16, 1, 40_960, 2), (16, 2, 20_480, 1)]


@pytest.mark.parametrize(("tp", "cp", "size", "copies"), RANKS)
def test_heads_are_cut_until_there_are_none_left(tp: int, cp: int, size: int, copies: int) -> None:
    found = cache("llama-3-70b", 4096, layout=ServingLayout(tp=tp, cp=cp))
    (line,) = found.lines
    assert (line.bytes_per_token_per_rank, line.replicas) == (size, copies)
    assert found.ideal_bytes_per_rank == size * 4096
    assert tp * found.ideal_bytes_per_rank == found.ideal_bytes * copies
    said = f"attention: {copies} of {tp} tp ranks hold the same bytes"
    assert (said in found.notes) == (copies > 1)


def test_a_latent_is_on_every_rank() -> None:
    """TP does not cut it; DP attention gives each group its own sequences; only shared positions spread it."""
    for layout, size in (
        (ServingLayout(tp=8), 70_272), (ServingLayout(dp_attention=8, ep=8), 70_272),
        (ServingLayout(tp=8, cp=8), 8784), (ServingLayout(tp=8, pp=2), 70_272 // 61 * 31),
    ):  # fmt: skip
        found = cache("deepseek-v3", 8192, layout=layout)
        assert found.ideal_bytes_per_rank == size * 8192
    assert cache("deepseek-v3", 8192, layout=ServingLayout(tp=8)).lines[0].replicas == 8


def test_the_fullest_stage_of_an_uneven_pipeline() -> None:
    """126 layers on 4 stages are 32, 32, 31, 31."""
    found = cache("llama-3.1-405b", 1024, layout=ServingLayout(tp=8, pp=4))
    assert found.ideal_bytes_per_rank == 1024 * 32 * 2 * 128 * 2


def test_states_are_cut_by_heads() -> None:
    whole = cache("qwen3.5-27b", 16).lines[1]
    half = cache("qwen3.5-27b", 16, layout=ServingLayout(tp=2)).lines[1]
    assert half.bytes_constant_per_rank * 2 == whole.bytes_constant


def test_an_encoders_keys_do_not_grow() -> None:
    """T5 small: 6 layers of 8 heads of 64 over 100 positions; Whisper's 1,500 frames are fixed."""
    found = cache("t5-small", 10, encoder_tokens=100)
    assert [(line.kind, line.bytes_constant) for line in found.lines][1] == ("cross", 100 * 6 * 2 * 8 * 64 * 2)
    assert cache("whisper-small", 1).lines[1].bytes_constant == 1500 * 12 * 2 * 768 * 2


# --- what cannot be -----------------------------------------------------------------------------------------------

FAULTS: list[tuple[str, dict[str, Any], str]] = [
    ("bert-base", {}, "bert-base does not decode: it keeps no cache in MODEL."),
    ("t5-small", {}, "the model's encoder takes inputs of any length in encoder_tokens; expected positions the decoder "
     "attends to."),
    ("llama-3-8b", {"tokens": 0}, "tokens is not a possible length; got 0; expected a whole number from 1 to "
     "1,000,000,000,000."),
    ("llama-3-8b", {"layout": ServingLayout(tp=3)}, "attention heads cannot be cut evenly in --tp; got 32 heads "
     "over 3; "
     "expected one of 1, 2, 4, 8, 16, 32."),
    ("llama-3-8b", {"layout": ServingLayout(tp=0, pp=-1)}, "tp is no number of ranks in --tp; got 0; expected a whole "
     "number from 1 to 4,096."),
    ("llama-3-8b", {"layout": ServingLayout(tp=8, cp=2)}, "more ranks share positions than hold the same heads "
     "in --cp; "
     "got 2, where 8 heads over 8 are held once; expected at most 1."),
    ("llama-3-8b", {"layout": ServingLayout(ep=2)}, "the model has no experts to spread in --ep; got 2; expected 1."),
    ("mixtral-8x7b", {"layout": ServingLayout(tp=2, ep=8)}, "experts are spread over the ranks of tp and dp attention "
     "in --ep; got 8 of 2; expected one of 1, 2."),
    ("mixtral-8x7b", {"layout": ServingLayout(tp=8, dp_attention=2, ep=16)}, "experts cannot be spread evenly in --ep; "
     "got 8 experts over 16; expected a divisor of 8."),
    ("llama-3-8b", {"layout": ServingLayout(pp=33)}, "a pipeline stage would be empty in --pp; got 32 layers on 33 "
     "stages; expected at least one layer a stage."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "message"), FAULTS, ids=[f"{n}" for n in range(len(FAULTS))])
def test_what_cannot_be_says_so(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        cache(name, **{"tokens": 10, **options})
    assert message in str(caught.value)


def test_all_faults_come_together() -> None:
    with pytest.raises(InputError) as caught:
        cache("llama-3-8b", 10, layout=ServingLayout(tp=0, pp=-1, cp=2**20))
    assert [fault.where for fault in caught.value.faults] == ["--tp", "--pp", "--cp"]


def test_unknown_formats_and_engines_name_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown storage format 'q8_1x'.*nearest: .*q8_0"):
        cache("llama-3-8b", 10, dtype="q8_1x")
    with pytest.raises(UnknownNameError, match=r"unknown engine 'vlm'.*nearest: vllm"):
        cache("llama-3-8b", 10, engine="vlm")


def test_a_length_beyond_the_models_is_noted() -> None:
    assert cache("llama-3-8b", 9000).notes == ("9,000 positions are more than the model's 8,192",)
    assert cache("llama-3-8b", 8192).notes == ()


# --- laws ---------------------------------------------------------------------------------------------------------

HEADS = st.sampled_from([4, 8, 16, 32])
WIDTHS = st.sampled_from([32, 64, 128])
LENGTHS = st.integers(1, 100_000)


def decoder(*leaves: Any, layers: int = 3) -> Arch:
    block = Module(name="layers", block=True, indices=range(layers), children=leaves)
    root = Module(name="model", children=(block,))
    return Arch(name="made", root=root, streams=(Stream(name="tokens", decodes=True),))


def attention(heads: int, kv_heads: int, width: int, **options: Any) -> Attention:
    return Attention(name="attention", heads=heads, kv_heads=kv_heads, qk_dim=width, v_dim=width, **options)


@given(HEADS, WIDTHS, LENGTHS, st.sampled_from(["vllm", "sglang", "tensorrt-llm", "ideal"]))
def test_latents_are_less_than_groups_and_those_than_heads(heads: int, width: int, tokens: int, engine: str) -> None:
    """MLA of four widths and a half (arXiv:2405.04434 table 1) < GQA of a quarter of the heads where these are many."""
    heads *= 4
    arches = (
        decoder(attention(heads, heads, width, latent_dim=width * 3 // 2)),
        decoder(attention(heads, heads // 4, width)),
        decoder(attention(heads, heads, width)),
    )
    sizes = [kv_cache(arch, tokens, engine=engine).paged_bytes for arch in arches]
    assert sizes[0] < sizes[1] < sizes[2]


@given(
    LENGTHS, st.integers(1, 5000), st.sampled_from(["vllm", "sglang", "tensorrt-llm", "ideal", "llama.cpp"]),
    st.sampled_from(["bf16", "fp8", "q4_0", "nvfp4"]), st.integers(1, 9),
)  # fmt: skip
def test_pages_hold_what_is_kept(tokens: int, window: int, engine: str, dtype: str, layers: int) -> None:
    full, near = attention(8, 4, 64), replace(attention(8, 4, 64, window=window), name="near")
    state = LinearAttention(name="state", heads=4, key_dim=16, value_dim=16)
    for leaves in ((full,), (near,), (full, near), (state, CausalConv(name="c", channels=32, kernel=4)), (full, state)):
        found = kv_cache(decoder(*leaves, layers=layers), tokens, engine=engine, dtype=dtype)
        assert found.ideal_bytes <= found.paged_bytes + 1e-6
        for size in found.paged_by_rule.values():
            assert found.ideal_bytes <= size + 1e-6


@given(st.sampled_from([1, 2, 4, 8, 16, 32]), st.sampled_from([1, 2, 4, 8]), LENGTHS)
def test_ranks_add_to_the_whole_or_say_that_they_repeat(tp: int, kv_heads: int, tokens: int) -> None:
    found = kv_cache(decoder(attention(32, kv_heads, 64)), tokens, layout=ServingLayout(tp=tp))
    (line,) = found.lines
    assert tp * found.ideal_bytes_per_rank == line.replicas * found.ideal_bytes
    assert (line.replicas > 1) == (tp > kv_heads)


@given(LENGTHS, LENGTHS)
def test_more_positions_are_never_less(first: int, second: int) -> None:
    arch = read_named_preset("gemma-3-1b")
    low, high = (kv_cache(arch, tokens, engine="sglang") for tokens in sorted((first, second)))
    assert low.ideal_bytes <= high.ideal_bytes and low.paged_bytes <= high.paged_bytes


@given(LENGTHS)
def test_lines_add_up(tokens: int) -> None:
    for name in ("gpt-oss-20b", "qwen3.5-27b", "deepseek-v3"):
        found = cache(name, tokens)
        parts = sum(
            line.bytes_constant + line.bytes_per_token * min(tokens, line.window or tokens) for line in found.lines
        )
        assert parts == found.ideal_bytes
