"""Bytes of a weight, and the peak it is multiplied at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suanli.catalog.devices import find_device
from suanli.catalog.schemes import find_scheme
from suanli.errors import InputError, UnknownNameError
from suanli.nouns.layers import Experts, Layer, Linear
from suanli.plan.serving.precision import Precision, product_flop_per_s

LINEAR = Linear(name="up", in_features=1024, out_features=2048)
HEAD = Linear(name="head", in_features=1024, out_features=2048, role="lm_head")
TIED = replace(HEAD, tied=True)
EXPERTS = Experts(name="experts", num=4, top_k=1, hidden=1024, ffn=2048)


@pytest.mark.parametrize(
    ("scheme", "layer", "nbytes", "peak"),
    [
        ("bf16", LINEAR, 2.0, "bf16"),
        ("fp8", LINEAR, 1 + 8 / 2**21, "fp8"),  # two scales of the matrix
        ("fp8-block", LINEAR, 1 + 4 / 128**2, "fp8"),
        ("fp8", HEAD, 2.0, "bf16"),
        ("fp8", TIED, 2.0, "bf16"),  # no weights of its own, read all the same
        ("mxfp4", EXPERTS, 0.5 + 1 / 32, "fp4"),
        ("mxfp4", LINEAR, 2.0, "bf16"),  # of a mixture the experts alone
        ("nvfp4", LINEAR, 0.5 + 1 / 16 + 8 / 2**21, "fp4"),
        ("awq-4bit-128", LINEAR, 0.5 + (2 + 0.5) / 128, "fp16"),  # unpacked, then multiplied in its base
    ],
)
def test_what_a_weight_takes(scheme: str, layer: Layer, nbytes: float, peak: str) -> None:
    stored = Precision.of(scheme).stored(layer)
    assert stored.weight_bytes == pytest.approx(nbytes, rel=1e-9)
    assert stored.peak == peak


@pytest.mark.parametrize(("cache", "nbytes"), [("bf16", 2), ("fp8", 1), ("q8_0", 34 / 32), ("nvfp4", 9 / 16)])
def test_what_a_cached_number_takes(cache: str, nbytes: float) -> None:
    assert Precision.of("bf16", cache).cache_bytes == nbytes


@pytest.mark.parametrize(
    ("gpu", "asked", "peak"),
    [
        ("h100-sxm", "fp8", "fp8"),
        ("h100-sxm", "fp4", "fp8"),  # no such units: the next wider
        ("a100-80gb-sxm", "fp8", "bf16"),
        ("b200", "fp4", "fp4"),
    ],
)
def test_the_peak_of_operands(gpu: str, asked: str, peak: str) -> None:
    device = find_device(gpu)
    assert product_flop_per_s(device, asked) == device.peaks_flop_per_s[peak]


def test_a_device_with_two_halves_gives_one_half() -> None:
    device = find_device("mi250x")
    assert product_flop_per_s(device, "bf16") == device.peaks_flop_per_s["bf16"] / 2


def test_unknown_schemes_and_formats_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown weight scheme 'fp9' in --dtype"):
        Precision.of("fp9")
    with pytest.raises(UnknownNameError, match="unknown storage format 'q8_1x'"):
        Precision.of("bf16", "q8_1x")
    assert find_scheme("fp8") is Precision.of("fp8").scheme


def test_a_device_without_peaks_is_refused() -> None:
    bare = replace(find_device("h100-sxm"), id="bare", aliases=(), peaks_flop_per_s={})
    with pytest.raises(InputError, match="no dense peak of bare is known at which bf16 could be multiplied"):
        product_flop_per_s(bare, "bf16")
