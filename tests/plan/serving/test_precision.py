"""Bytes of a weight, and the peak it is multiplied at."""

from __future__ import annotations

import pytest

from suanli.catalog.devices import find_device
from suanli.errors import InputError, UnknownNameError
from suanli.nouns.layers import Experts, Linear
from suanli.plan.serving.precision import WEIGHT_BYTES, Precision, product_flop_per_s

LINEAR = Linear(name="up", in_features=8, out_features=8)
HEAD = Linear(name="head", in_features=8, out_features=8, role="lm_head")
EXPERTS = Experts(name="experts", num=4, top_k=1, hidden=8, ffn=8)


@pytest.mark.parametrize(
    ("dtype", "nbytes"),
    # one 8-bit scale for 32 values; for 16; a 16-bit scale and a 4-bit zero for 128
    [("mxfp8", 1 + 1 / 32), ("mxfp4", 0.5 + 1 / 32), ("nvfp4", 0.5 + 1 / 16), ("int4", (512 + 20) / 8 / 128)],
)
def test_scales_count(dtype: str, nbytes: float) -> None:
    assert WEIGHT_BYTES[dtype] == pytest.approx(nbytes)


@pytest.mark.parametrize(
    ("dtype", "layer", "mixture", "stored"),
    [
        ("fp8", LINEAR, False, "fp8"),
        ("fp8", HEAD, False, "bf16"),
        ("nvfp4", LINEAR, False, "nvfp4"),
        ("nvfp4", LINEAR, True, "bf16"),  # of a mixture the experts alone
        ("nvfp4", EXPERTS, True, "nvfp4"),
        ("fp8", LINEAR, True, "fp8"),
        ("fp16", HEAD, False, "fp16"),
    ],
)
def test_what_is_quantised(dtype: str, layer: object, mixture: bool, stored: str) -> None:
    assert Precision(dtype=dtype).stored(layer, mixture=mixture) == stored  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gpu", "stored", "peak"),
    [
        ("h100-sxm", "fp8", "fp8"),
        ("h100-sxm", "nvfp4", "fp8"),  # no fp4 units: the next wider
        ("a100-80gb-sxm", "fp8", "bf16"),
        ("h100-sxm", "int4", "bf16"),  # activations stay in 16 bit
        ("b200", "nvfp4", "fp4"),
    ],
)
def test_the_peak_of_stored_weights(gpu: str, stored: str, peak: str) -> None:
    device = find_device(gpu)
    assert product_flop_per_s(device, stored) == device.peaks_flop_per_s[peak]


def test_a_device_with_two_halves_gives_one_half() -> None:
    device = find_device("mi250x")
    assert product_flop_per_s(device, "bf16") == device.peaks_flop_per_s["bf16"] / 2


def test_unknown_dtypes_are_refused_word_by_word() -> None:
    with pytest.raises(UnknownNameError) as caught:
        Precision(dtype="fp9")
    text = str(caught.value)
    assert text.startswith("unknown dtype 'fp9' in --dtype; expected one of 9 known; nearest: fp8,")
    assert "Dtypes: fp32, bf16, fp16, fp8, int8, mxfp8, nvfp4, mxfp4, int4." in text


def test_a_device_without_peaks_is_refused() -> None:
    bare = find_device("h100-sxm").__class__(id="bare", family="bare", name="Bare", vendor="none")
    with pytest.raises(InputError, match="no dense peak of bare is known at which bf16 could be multiplied"):
        product_flop_per_s(bare, "bf16")
