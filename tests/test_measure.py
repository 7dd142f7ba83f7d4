"""MFU and HFU against published tables, and refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.conventions import CONVENTIONS, find_convention
from suanli.catalog.devices import find_device
from suanli.errors import InputError
from suanli.measure import Rate, find_peak, mfu
from suanli.nouns.measures import Mfu
from suanli.nouns.workload import Workload
from suanli.readers.model import read_model

A100, H100 = find_device("a100-80gb-sxm"), find_device("h100-sxm")


def measured(model: str, rate: Rate, *, seq: int = 2048, gpus: int = 1, recompute: str = "none",
             convention: str = "megatron-full", device: object = A100, peak: float | None = None) -> Mfu:  # fmt: skip
    top = find_peak(device, "bf16", peak)  # type: ignore[arg-type]
    return mfu(read_model(model), Workload(seq=seq), rate, top, find_convention(convention), gpus=gpus,
               device=device, recompute=recompute)  # type: ignore[arg-type]  # fmt: skip


# arXiv:2205.05198 Table 5 (A100, s = 2048, V = 51200): step time s, recompute, MFU, HFU in percent
TABLE_5 = [
    ("megatron-22b", 8, 4, 1.42, "full", 32.26, 42.87),
    ("megatron-22b", 8, 4, 1.10, "selective-published", 41.65, 43.81),
    ("megatron-22b", 8, 4, 1.10, "selective", 41.65, 42.37),
    ("megatron-175b", 64, 64, 18.13, "full", 38.97, 51.92),
    ("megatron-175b", 64, 64, 13.75, "selective-published", 51.39, 52.77),
    ("megatron-175b", 64, 64, 13.75, "selective", 51.39, 51.85),
    ("megatron-530b", 280, 280, 49.05, "full", 43.23, 57.61),
    ("megatron-530b", 280, 280, 37.83, "selective-published", 56.05, 56.96),
    ("megatron-530b", 280, 280, 37.83, "selective", 56.05, 56.35),
    ("megatron-1t", 512, 512, 94.42, "full", 42.60, 56.79),
    ("megatron-1t", 512, 512, 71.49, "selective-published", 56.27, 57.01),
    ("megatron-1t", 512, 512, 71.49, "selective", 56.27, 56.51),
]
PRINTED = {
    "megatron-22b": (41.5, 43.7),
    "megatron-175b": (51.4, 52.8),
    "megatron-530b": (56.0, 57.0),
    "megatron-1t": (56.3, 57.0),
}


@pytest.mark.parametrize(("model", "gpus", "batch", "seconds", "recompute", "percent_mfu", "percent_hfu"), TABLE_5)
def test_table_5(
    model: str, gpus: int, batch: int, seconds: float, recompute: str, percent_mfu: float, percent_hfu: float
) -> None:
    found = measured(model, Rate(step_time=seconds, global_batch=batch), gpus=gpus, recompute=recompute)
    assert found.mfu is not None and found.hfu is not None
    assert round(found.mfu * 100, 2) == percent_mfu
    assert round(found.hfu * 100, 2) == percent_hfu
    if recompute == "selective-published":
        assert found.mfu * 100 == pytest.approx(PRINTED[model][0], abs=0.2)
        assert found.hfu * 100 == pytest.approx(PRINTED[model][1], abs=0.2)


# Llama-3-8B, s = 8192, 8,000 tokens/s on one H100: convention, GFLOP/token, MFU at 989.4, MFU at 989
LLAMA = [
    ("causal", 51.471, 41.62, 41.63),
    ("full", 57.913, 46.83, 46.85),
    ("palm", 61.066, 49.38, 49.40),
    ("6n", 45.030, 36.41, 36.42),
]


@pytest.mark.parametrize(("convention", "gflop", "catalogue", "rounded"), LLAMA)
def test_llama_3_8b_under_each_convention(convention: str, gflop: float, catalogue: float, rounded: float) -> None:
    for peak, percent in ((None, catalogue), (989e12, rounded)):
        found = measured(
            "llama-3-8b", Rate(tokens_per_second=8000), seq=8192, convention="causal", device=H100, peak=peak
        )
        view = found.by_convention[convention]
        assert view.flops_per_token / 1e9 == pytest.approx(gflop, abs=5e-4)
        assert view.mfu is not None
        assert round(view.mfu * 100, 2) == percent


def test_three_ways_to_say_one_rate() -> None:
    """Step time with batch, tokens a second and FLOP/s of a GPU are one measurement."""
    by_step = measured("llama-3-8b", Rate(step_time=2.0, global_batch=16), gpus=4)
    by_tokens = measured("llama-3-8b", Rate(tokens_per_second=by_step.tokens_per_second), gpus=4)
    by_rate = measured("llama-3-8b", Rate(tflops_per_gpu=by_step.achieved_flop_per_s), gpus=4)
    assert by_step.tokens_per_second == 16 * 2048 / 2.0
    assert by_step.mfu == pytest.approx(by_tokens.mfu, rel=1e-12) == pytest.approx(by_rate.mfu, rel=1e-12)


def test_above_the_peak_is_no_percentage() -> None:
    found = measured("llama-3-8b", Rate(tokens_per_second=16_000), seq=8192)
    assert found.mfu is None and found.hfu is None
    assert found.reason is not None and found.reason.startswith("2.970 times the peak of 312.0 TFLOP/s")


def test_hfu_alone_may_pass_the_peak() -> None:
    """A model rate under the peak whose recomputation would pass it: MFU stands, HFU does not."""
    found = measured("gpt3-175b-megatron", Rate(tflops_per_gpu=300e12), recompute="full")
    assert found.mfu == pytest.approx(300 / 312)
    assert found.hfu is None and found.reason is not None


@given(
    model=st.sampled_from(["gpt2", "llama-3-8b", "mixtral-8x7b", "t5-small", "vit-b16"]),
    convention=st.sampled_from(sorted(set(CONVENTIONS) - {"hardware"})),
    recompute=st.sampled_from(["none", "selective", "selective-published", "full"]),
    tokens=st.floats(1, 1e4),
)  # fmt: skip
def test_mfu_never_exceeds_hfu(model: str, convention: str, recompute: str, tokens: float) -> None:
    if CONVENTIONS[convention].basis == "closed":
        recompute = {"none": "none"}.get(recompute, "full")  # a closed formula knows no other
    found = measured(model, Rate(tokens_per_second=tokens), convention=convention, recompute=recompute, seq=512)
    view = found.by_convention[convention]
    assert view.flops_per_token <= view.hardware_flops_per_token
    if view.mfu is not None and view.hfu is not None:
        assert 0 < view.mfu <= view.hfu <= 1


def test_below_zero_is_no_percentage() -> None:
    found = measured("llama-3-8b", Rate(tokens_per_second=-100), seq=8192)
    assert found.mfu is None and found.hfu is None
    assert found.reason is not None
    assert "a rate below zero was measured. Check the sign" in found.reason


BAD_RATES = [
    (Rate(), "one measurement is needed; got none; expected --step-time with --global-batch"),
    (Rate(tokens_per_second=1, tflops_per_gpu=2), "got --tokens-per-second and --tflops-per-gpu"),
    (Rate(step_time=1), "a step time needs the global batch in --step-time; expected --global-batch SEQUENCES"),
    (Rate(tokens_per_second=0), "tokens per second is no measurement in --tokens-per-second; got 0"),
    (Rate(step_time=0, global_batch=1), "step time is no measurement in --step-time; got 0; expected a number above 0"),
    (Rate(step_time=1, global_batch=0), "global batch is not possible in --global-batch; got 0; expected at least 1"),
    (Rate(tflops_per_gpu=float("nan")), "tflops per gpu is no measurement"),
    (Rate(tokens_per_second=float("inf")), "is no measurement"),
]


@pytest.mark.parametrize(("rate", "words"), BAD_RATES)
def test_rates_that_cannot_be(rate: Rate, words: str) -> None:
    with pytest.raises(InputError) as caught:
        rate.check()
    assert words in str(caught.value)


def test_no_peak_no_guess() -> None:
    with pytest.raises(InputError, match=r"a utilisation needs a peak in --gpu; expected a device of the catalogue"):
        find_peak(None, "bf16", None)
    with pytest.raises(InputError, match=r"v100-32gb-sxm has no sourced 'bf16' peak"):
        find_peak(find_device("v100-32gb-sxm"), "bf16", None)


def test_memory_utilisation() -> None:
    found = mfu(
        read_model("gpt2"), Workload(seq=1024), Rate(tokens_per_second=10), find_peak(H100, "bf16", None),
        find_convention("causal"), device=H100, memory_used=40 * 10**9,
    )  # fmt: skip
    assert found.memory_bytes == 80 * 10**9
    assert found.memory_utilisation == 0.5
