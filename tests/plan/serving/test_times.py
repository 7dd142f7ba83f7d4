"""A rank's terms and their seconds: totals against the model, and laws."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.catalog.devices import find_device
from suanli.catalog.serving_presets import find_serving_preset, serving_preset_names
from suanli.nouns.arch import Arch
from suanli.nouns.layers import Linear
from suanli.nouns.serving import ServingLayout
from suanli.plan.serving.precision import Precision
from suanli.plan.serving.rank import rank_work
from suanli.plan.serving.replicas import build_replica
from suanli.plan.serving.times import Replica
from suanli.readers.preset import read_named_preset

read = functools.cache(read_named_preset)
PRESETS = serving_preset_names()


def replica(
    model: str = "llama-3.1-8b", gpu: str = "h100-sxm", dtype: str = "bf16", preset: str = "ideal", **layout: int
) -> Replica:
    profile = find_serving_preset(preset).profile
    return build_replica(read(model), find_device(gpu), ServingLayout(**layout), Precision.of(dtype), profile)


def matrices(arch: Arch, **layout: int) -> int:
    """Weights of all products and experts of one rank."""
    work = rank_work(arch, ServingLayout(**layout), Precision.of())
    dense = sum(each.count * each.n * each.k for each in work.products)
    ep = layout.get("ep", 1)
    return dense + sum(each.count * each.num // ep * sum(n * k for n, k in each.matrices) for each in work.mixtures)


@pytest.mark.parametrize(
    ("model", "params"),
    [
        ("llama-3.1-8b", 8_030_261_248 - 128_256 * 4096 - 65 * 4096),  # all but the table and the norms
        ("mixtral-8x7b", 46_702_792_704 - 32_000 * 4096 - 65 * 4096),
    ],
)
def test_the_terms_hold_every_matrix(model: str, params: int) -> None:
    assert matrices(read(model)) == params


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_ranks_add_up_to_the_whole(tp: int) -> None:
    assert tp * matrices(read("llama-3.1-8b"), tp=tp) == matrices(read("llama-3.1-8b"))
    assert 8 * matrices(read("mixtral-8x7b"), tp=8, ep=8) == pytest.approx(matrices(read("mixtral-8x7b")), rel=1e-3)


def test_one_sequence_reads_the_weights_and_its_cache() -> None:
    parts = replica().decode_parts(1.0, 1000.0)
    device = find_device("h100-sxm")
    weights = 2 * matrices(read("llama-3.1-8b")) / device.memory_bytes_per_s
    assert parts.weights == pytest.approx(weights, rel=0.01)  # activations of one row add a little
    assert parts.cache == pytest.approx(131_072 * 1000 / device.memory_bytes_per_s)
    assert parts.collectives == 0


def test_a_latent_is_read_whole_by_every_rank() -> None:
    one, eight = (replica("deepseek-v3", dtype="fp8", tp=tp).work for tp in (1, 8))
    assert sum(each.count * each.width for each in one.attending) == 61 * 576
    assert [each.width for each in eight.attending] == [each.width for each in one.attending]
    assert eight.attending[0].heads * 8 == one.attending[0].heads


def test_a_window_ends_the_growth_of_the_cache() -> None:
    near, far = (replica("gpt-oss-120b", dtype="mxfp4").decode_parts(1.0, keys).cache for keys in (128.0, 1128.0))
    # 18 of 36 layers see 128 positions only: the other 18 read 1,000 positions of 2 · 8 · 64 numbers of 2 bytes more
    assert far - near == pytest.approx(18 * 1000 * 2 * 8 * 64 * 2 / find_device("h100-sxm").memory_bytes_per_s)


def test_a_state_is_read_and_written_and_does_not_grow() -> None:
    short, long = (replica("mamba-2.8b").decode_parts(4.0, keys) for keys in (10.0, 1e5))
    assert short.passes == long.passes > 0
    assert short.cache == long.cache == 0


def test_entries_add_up_to_a_step() -> None:
    for name in PRESETS:
        served = replica(preset=name, tp=4)
        entries = served.decode_parts(64.0, 2000.0).seconds(served.profile)
        assert sum(entries.values()) == pytest.approx(served.decode_s(64.0, 2000.0), rel=1e-12)


def test_arrays_and_numbers_agree() -> None:
    served = replica(preset="vllm", tp=2)
    many = np.array([1.0, 8.0, 64.0])
    assert served.decode_s(many, 1000.0).tolist() == pytest.approx([served.decode_s(each, 1000.0) for each in many])


@settings(max_examples=40)
@given(st.integers(1, 512), st.integers(1, 256), st.integers(1, 100_000), st.sampled_from(PRESETS))
def test_a_larger_batch_never_decodes_fewer_tokens_a_second(batch: int, more: int, keys: int, preset: str) -> None:
    served = replica(preset=preset, tp=2)
    few, many = float(batch), float(batch + more)
    assert many / served.decode_s(many, float(keys)) >= few / served.decode_s(few, float(keys)) * (1 - 1e-9)


@settings(max_examples=40)
@given(st.integers(1, 512), st.integers(1, 100_000), st.sampled_from(PRESETS[1:]))
def test_an_engine_is_never_faster_than_the_ideal(batch: int, keys: int, preset: str) -> None:
    ideal, real = (replica(preset=name, tp=2) for name in ("ideal", preset))
    assert ideal.decode_s(float(batch), float(keys)) <= real.decode_s(float(batch), float(keys)) * (1 + 1e-9)
    assert ideal.prefill_s(float(keys), float(keys)) <= real.prefill_s(float(keys), float(keys)) * (1 + 1e-9)


@settings(max_examples=30)
@given(st.floats(1.0, 3.0), st.integers(1, 256), st.integers(1, 10_000), st.sampled_from(PRESETS))
def test_more_bandwidth_is_never_slower(more: float, batch: int, keys: int, preset: str) -> None:
    served = replica(preset=preset)
    device = served.device
    faster = replace(served, device=replace(device, memory_bytes_per_s=device.memory_bytes_per_s * more))
    assert faster.decode_s(float(batch), float(keys)) <= served.decode_s(float(batch), float(keys)) * (1 + 1e-9)


@pytest.mark.parametrize(("isl", "pairs"), [(1, 1), (4, 10), (100, 5050)])
def test_prefill_counts_each_pair_once(isl: int, pairs: int) -> None:
    served = replica()
    attention = served._prefill_attention(served.work, float(isl), isl - (isl - 1) / 2)
    flops = 32 * 2 * 32 * (128 + 128) * pairs  # layers, multiply-add, heads, both products
    assert attention == pytest.approx(flops / find_device("h100-sxm").peaks_flop_per_s["bf16"])


def test_a_pipeline_decodes_its_sequences_in_shares() -> None:
    one, two = replica("llama-3.1-70b", tp=4), replica("llama-3.1-70b", tp=4, pp=2)
    assert two.decode_parts(16.0, 1000.0).weights == pytest.approx(one.decode_parts(8.0, 1000.0).weights)


# --- positions that do not decode ---------------------------------------------------------------------------------


def test_a_picture_tower_is_no_part_of_a_step() -> None:
    """The same language model behind a tower reads the same weights for a token, and sees 256 positions more."""
    plain, seeing = replica("qwen2-7b"), replica("qwen2-vl-7b")
    assert seeing.work.layers == plain.work.layers == 28
    assert seeing.work.products == plain.work.products and seeing.work.extra == 256
    assert seeing.decode_s(8.0, 1000.0) == pytest.approx(plain.decode_s(8.0, 1256.0), rel=1e-12)


def test_a_picture_goes_with_the_first_piece_of_a_prompt() -> None:
    plain, seeing = replica("qwen2-7b"), replica("qwen2-vl-7b")
    tower = seeing.work.sides
    assert [side.rows for side in tower] == [1024.0, 256.0]
    macs = sum(side.rows * each.count * each.n * each.k for side in tower for each in side.products)
    attention = sum(each.count * 1024 * each.keys * each.heads * each.inner_prefill for each in tower[0].attending)
    first = seeing.prefill_parts(500.0, 500.0).arithmetic - plain.prefill_parts(756.0, 756.0).arithmetic
    assert first == pytest.approx(2 * (macs + attention) / seeing.peak("bf16"), rel=1e-9)
    assert seeing.prefill_parts(500.0, 1000.0).arithmetic == pytest.approx(
        plain.prefill_parts(500.0, 1256.0).arithmetic
    )


def test_a_decoder_reads_its_own_weights_and_the_encoders_keys() -> None:
    """T5-3B: 24 layers of self-attention over the answer, 24 of cross-attention over what the encoder was given."""
    served = build_replica(read("t5-3b"), find_device("h100-sxm"), ServingLayout(), Precision.of(), encoded=512.0)
    rate = find_device("h100-sxm").memory_bytes_per_s
    token = 24 * 2 * 32 * 128 * 2
    assert served.work.layers == 24
    assert served.decode_parts(1.0, 100.0).cache == pytest.approx(token * (100 + 512) / rate)
    # q and o of both attentions, k and v of one, and the MLP; keys and values of the other are made once a prompt
    layer = 6 * 1024 * 4096 + 2 * 1024 * 16384
    assert sum(each.count * each.n * each.k for each in served.work.products) == 24 * layer + 1024 * 32_128
    made = [side for side in served.work.sides if side.products]
    assert [side.rows for side in made] == [512.0]
    encoder = 4 * 1024 * 4096 + 2 * 1024 * 16384
    assert sum(each.count * each.n * each.k for each in made[0].products) == 24 * (encoder + 2 * 1024 * 4096)


@pytest.mark.parametrize("model", ["whisper-large-v3", "llama-3.2-11b-vision", "gemma-3-27b-vision", "t5-3b"])
def test_terms_of_all_streams_hold_every_matrix(model: str) -> None:
    arch = read(model)
    work = rank_work(arch, ServingLayout(), Precision.of(), 512.0)
    held = sum(each.count * each.n * each.k for part in (work, *work.sides) for each in part.products)
    linear = [placed for placed in arch.leaves() if isinstance(placed.layer, Linear)]
    assert held == sum(each.times * each.layer.in_features * each.layer.out_features for each in linear)
