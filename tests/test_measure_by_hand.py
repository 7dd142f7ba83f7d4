"""MFU on a net small enough to add up: rates, peaks, recompute and memory by hand, and the words of refusals."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from suanli.catalog.conventions import common_conventions, find_convention
from suanli.catalog.devices import find_device
from suanli.errors import InputError
from suanli.measure import PUBLISHED_SELECTIVE, RECOMPUTE_CHOICES, Rate, find_peak, flops_per_token, mfu
from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Conv, Linear, Norm
from suanli.nouns.measures import Mfu, Peak
from suanli.nouns.workload import Workload
from suanli.readers.hf import read_hf_config
from suanli.readers.paper import read_paper_decoder

# h = 4, one layer of 2 heads, f = 8, V = 10: weights 64 + 64 + 40; attention at s = 6: 21 pairs, 16 FLOPs each
NET = read_paper_decoder({"hidden": 4, "num_layers": 1, "heads": 2, "ffn": 8, "vocab": 10}, "net")
SEQ, PAIRS = 6, 21
LAYER, HEAD, SCORES = 2 * SEQ * 128, 2 * SEQ * 40, 16 * PAIRS
MODEL = 3 * (LAYER + HEAD + SCORES)
CAUSAL = find_convention("causal")
PEAK = Peak(flop_per_s=10_000.0, dtype="bf16", device=None, source="--peak")

# recompute: FLOPs of one sequence that the machine executes
EXECUTED = {
    "none": MODEL,
    "selective": MODEL + SCORES,
    "selective-published": MODEL + 3 * SCORES,  # the equation counts what it describes three times
    "full": MODEL + LAYER + SCORES,
}


def measured(rate: Rate, convention: str = "causal", arch: Arch = NET, peak: Peak = PEAK, **options: Any) -> Mfu:
    return mfu(arch, Workload(seq=SEQ, batch=7), rate, peak, find_convention(convention), **options)


@pytest.mark.parametrize(("recompute", "executed"), EXECUTED.items())
def test_flops_of_a_token(recompute: str, executed: int) -> None:
    """One sequence in training, whatever batch and phase the workload names."""
    for work in (Workload(seq=SEQ), Workload(seq=SEQ, batch=9, phase="decode", kv_len=99)):
        found = flops_per_token(NET, work, CAUSAL, recompute)
        assert (found.model * SEQ, found.hardware * SEQ) == (pytest.approx(MODEL), pytest.approx(executed))


def test_every_policy_is_in_the_table() -> None:
    assert set(EXECUTED) == set(RECOMPUTE_CHOICES)
    assert PUBLISHED_SELECTIVE in RECOMPUTE_CHOICES


@pytest.mark.parametrize(("recompute", "executed"), EXECUTED.items())
def test_utilisations(recompute: str, executed: int) -> None:
    """Eight tokens a second on two GPUs of 10 kFLOP/s: four tokens' FLOPs over the peak."""
    found = measured(Rate(tokens_per_second=8), gpus=2, recompute=recompute)
    assert found.mfu == pytest.approx(4 * MODEL / SEQ / 10_000)
    assert found.hfu == pytest.approx(4 * executed / SEQ / 10_000)
    assert found.achieved_flop_per_s == pytest.approx(4 * MODEL / SEQ)
    assert found.achieved_hardware_flop_per_s == pytest.approx(4 * executed / SEQ)
    assert (found.tokens_per_second, found.tokens_per_second_per_gpu, found.gpus) == (8, 4, 2)
    assert (found.recompute, found.convention, found.peak_flop_per_s) == (recompute, "causal", 10_000)
    assert found.reason is None


def test_a_step_of_a_batch() -> None:
    """Five sequences of six tokens in ten seconds: three tokens a second."""
    assert measured(Rate(step_time=10, global_batch=5)).tokens_per_second == 3


def test_a_rate_of_flops_is_of_model_flops() -> None:
    """2,000 FLOP/s on each of three GPUs are 0.2 of the peak, recomputed or not."""
    found = measured(Rate(tflops_per_gpu=2000), gpus=3, recompute="full")
    assert found.mfu == pytest.approx(0.2)
    assert found.tokens_per_second == pytest.approx(3 * 2000 / (MODEL / SEQ))
    assert found.hfu == pytest.approx(0.2 * EXECUTED["full"] / MODEL)


def test_the_chosen_convention_stands_first_among_the_common() -> None:
    names = [each.name for each in common_conventions()]
    assert list(measured(Rate(tokens_per_second=1)).by_convention) == ["causal", *(n for n in names if n != "causal")]
    assert next(iter(measured(Rate(tokens_per_second=1), "palm").by_convention)) == "palm"
    assert list(measured(Rate(tokens_per_second=1), "verl").by_convention) == ["verl", *names]


def test_every_view_is_of_the_same_tokens() -> None:
    found = measured(Rate(tokens_per_second=1))
    for view in found.by_convention.values():
        assert view.mfu == pytest.approx(view.flops_per_token / 10_000)
    assert found.by_convention["6n-all"].flops_per_token == 6 * NET.params_total


def test_closed_forms_are_left_out_where_a_model_has_no_letters() -> None:
    bare = Arch(name="bare", root=Module(name="", children=(Linear(name="x", in_features=2, out_features=2),)))
    found = mfu(bare, Workload(seq=SEQ), Rate(tokens_per_second=1), PEAK, CAUSAL)
    assert set(found.by_convention) == {each.name for each in common_conventions() if each.basis != "closed"}


# mfu of the model, hfu: what is said
PEAKS = [
    (MODEL / SEQ, True, True),  # exactly the peak is no fault
    (MODEL / SEQ * 0.999, False, False),
    (EXECUTED["full"] / SEQ, True, True),
    (EXECUTED["full"] / SEQ * 0.999, True, False),
]


@pytest.mark.parametrize(("peak", "model_fits", "hardware_fits"), PEAKS)
def test_at_and_above_the_peak(peak: float, model_fits: bool, hardware_fits: bool) -> None:
    top = Peak(flop_per_s=peak, dtype="bf16", device=None, source="--peak")
    policy = "none" if peak < EXECUTED["full"] / SEQ * 0.99 else "full"
    found = measured(Rate(tokens_per_second=1), peak=top, recompute=policy)
    assert (found.mfu is not None, found.hfu is not None) == (model_fits, hardware_fits)
    assert (found.reason is None) is (model_fits and hardware_fits)
    if not hardware_fits:
        assert found.reason is not None
        assert found.reason.startswith("1.001 times the peak of ")
        assert found.reason.endswith(
            ": no machine exceeds its peak. Check that --gpus counts all GPUs of the measured rate, that the rate is "
            "of the whole step, and that the GPU and dtype are those of the run"
        )


def test_below_zero() -> None:
    found = measured(Rate(tflops_per_gpu=-500))
    assert (found.mfu, found.hfu) == (None, None)
    assert found.reason == ("-0.050 times the peak: a rate below zero was measured. Check the sign of what was given")


def test_a_closed_form_of_a_model_with_letters() -> None:
    """neox at s = 6: 24·16 + 4·6·4 of one layer and 1.5·4·10 of the head, three times."""
    found = measured(Rate(tokens_per_second=1), "neox")
    assert found.by_convention["neox"].flops_per_token == 3 * (24 * 16 + 96 + 60)
    assert found.convention == "neox"


def test_a_net_without_products_uses_nothing() -> None:
    """No FLOPs are a utilisation of zero, and no fault."""
    net = Arch(name="n", root=Module(name="", children=(Norm(name="n", dim=4),)))
    found = measured(Rate(tokens_per_second=1), arch=net)
    assert (found.mfu, found.hfu, found.reason) == (0, 0, None)


def test_rates_and_tokens_never_change() -> None:
    for each in (Rate(tokens_per_second=1), flops_per_token(NET, Workload(seq=SEQ), CAUSAL, "none")):
        with pytest.raises(FrozenInstanceError):
            each.model = 5  # type: ignore[misc, union-attr]


@pytest.mark.parametrize("used", [0, 10**10, 80 * 10**9])
def test_memory(used: int) -> None:
    device = find_device("h100-sxm")
    found = measured(Rate(tokens_per_second=1), device=device, memory_used=used)
    assert found.memory_bytes == device.memory_bytes_per_torch_device
    assert found.memory_utilisation == pytest.approx(used / (device.memory_bytes_per_torch_device or 1))


def test_memory_of_no_device_or_not_given() -> None:
    assert measured(Rate(tokens_per_second=1), memory_used=5).memory_utilisation is None
    assert measured(Rate(tokens_per_second=1)).memory_bytes is None
    found = measured(Rate(tokens_per_second=1), device=find_device("h100-sxm"))
    assert (found.memory_utilisation, found.memory_bytes is None) == (None, False)


def test_positions_of_pictures() -> None:
    """A ViT's batch is pictures of 2·2 + 1 positions; a convolutional net's, samples of one."""
    vit = read_hf_config(
        {
            "model_type": "vit", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 8, "image_size": 8, "patch_size": 4,
        },
        "vit",
    )  # fmt: skip
    peak = Peak(flop_per_s=1e12, dtype="bf16", device=None, source="--peak")
    assert measured(Rate(step_time=1, global_batch=3), arch=vit, peak=peak).tokens_per_second == 3 * 5
    conv = Conv(name="c", in_channels=1, out_channels=1, kernel=(3,), in_size=(8,), out_size=(6,))
    net = Arch(name="c", root=Module(name="", stream="sample", children=(conv,)), main_stream="sample", streams=())
    found = measured(Rate(step_time=1, global_batch=3), "full", arch=net, peak=peak)
    assert found.tokens_per_second == 3
    assert found.by_convention["full"].flops_per_token == 2 * (2 * 6 * 3)  # forward, and the weights' gradient
    assert found.by_convention["megatron"].flops_per_token == 3 * (2 * 6 * 3)


def test_the_peak_is_given_or_the_catalogues() -> None:
    device = find_device("h100-sxm")
    given = find_peak(device, "fp8", 123.0)
    assert (given.flop_per_s, given.dtype, given.device, given.source) == (123.0, "fp8", "h100-sxm", "--peak")
    assert find_peak(None, "bf16", 5.0).device is None
    found = find_peak(device, "fp8", None)
    assert (found.flop_per_s, found.device) == (device.peak_flop_per_s("fp8"), "h100-sxm")
    assert found.source == f"catalogue row {device.id}, compiled {device.compiled} from {'; '.join(device.sources)}"
    with pytest.raises(InputError) as caught:
        find_peak(None, "bf16", None)
    assert str(caught.value) == (
        "a utilisation needs a peak in --gpu; expected a device of the catalogue, or --peak FLOP/s. "
        "`suanli gpus` lists the devices."
    )


OPTIONS = "--step-time with --global-batch, --tokens-per-second, or --tflops-per-gpu"
RATES = [
    (Rate(), [f"one measurement is needed; got none; expected {OPTIONS}."]),
    (
        Rate(step_time=1, global_batch=1, tokens_per_second=1, tflops_per_gpu=1),
        [
            "one measurement is needed; got --step-time and --tokens-per-second and --tflops-per-gpu; "
            f"expected {OPTIONS}."
        ],
    ),
    (Rate(step_time=1), ["a step time needs the global batch in --step-time; expected --global-batch SEQUENCES."]),
    (
        Rate(step_time=0, global_batch=0),
        [
            "step time is no measurement in --step-time; got 0; expected a number above 0.",
            "global batch is not possible in --global-batch; got 0; expected at least 1.",
        ],
    ),
    (
        Rate(tokens_per_second=float("nan")),
        ["tokens per second is no measurement in --tokens-per-second; got nan; expected a number above 0."],
    ),
]


@pytest.mark.parametrize(("rate", "sentences"), RATES)
def test_rates_that_are_none(rate: Rate, sentences: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        measured(rate)
    assert [fault.sentence() for fault in caught.value.faults] == sentences


@pytest.mark.parametrize(
    "rate",
    [Rate(step_time=1e-9, global_batch=1), Rate(tokens_per_second=-3), Rate(tflops_per_gpu=1e-30)],
)
def test_rates_that_are_some(rate: Rate) -> None:
    rate.check()
