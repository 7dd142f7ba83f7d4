"""The hardware nouns: what a device answers and refuses."""

from __future__ import annotations

import dataclasses

import pytest

from suanli.errors import InputError, UnknownNameError
from suanli.nouns.hardware import DTYPES, Device, Node, Price
from suanli.units import GIGA, TERA


def _device(**changes: object) -> Device:
    fields = {
        "id": "x1-8gb-pcie",
        "aliases": ("x1",),
        "family": "x1",
        "name": "X1",
        "vendor": "Maker",
        "peaks_flop_per_s": {"fp16": 383 * TERA, "int8": 7},
        "memory_bytes": 8 * GIGA,
        "memory_bytes_per_s": 3277 * GIGA,
        "torch_devices_per_package": 2,
    }
    return Device(**(fields | changes))  # type: ignore[arg-type]


def test_a_peak_is_that_of_one_torch_device() -> None:
    device = _device()
    assert device.peak_flop_per_s("fp16") == 191_500_000_000_000  # 383e12 / 2
    assert isinstance(device.peak_flop_per_s("fp16"), int)
    assert device.peak_flop_per_s("int8") == 3.5
    assert device.memory_bytes_per_torch_device == 4 * GIGA
    assert device.memory_bytes_per_s_per_torch_device == 1_638_500_000_000  # 3277e9 / 2


def test_what_is_not_known_is_none() -> None:
    device = _device(memory_bytes=None, memory_bytes_per_s=None)
    assert device.memory_bytes_per_torch_device is None
    assert device.memory_bytes_per_s_per_torch_device is None


def test_short_id_is_the_first_alias_or_the_id() -> None:
    assert _device().short_id == "x1"
    assert _device(aliases=()).short_id == "x1-8gb-pcie"


def test_a_missing_peak_says_which_there_are() -> None:
    with pytest.raises(UnknownNameError) as caught:
        _device().peak_flop_per_s("bf16")
    assert isinstance(caught.value, InputError)
    assert str(caught.value) == (
        "x1 has no sourced 'bf16' peak; got 'bf16'; expected one of fp16, int8. "
        "MFU cannot be given without a peak; pass the dense one, like --peak 989TFLOPS."
    )


def test_a_row_without_figures_refuses() -> None:
    with pytest.raises(UnknownNameError) as caught:
        _device(status="no_figures", peaks_flop_per_s={}).peak_flop_per_s("bf16")
    assert str(caught.value) == (
        "x1 has no sourced peak at all; got 'bf16'. "
        "MFU cannot be given without a peak; pass the dense one, like --peak 989TFLOPS."
    )


def test_a_row_with_a_formula_refuses_and_shows_it() -> None:
    device = _device(status="formula", peaks_flop_per_s={}, formulas={"fp32": "cores*GHz*32/1000"})
    with pytest.raises(UnknownNameError) as caught:
        device.peak_flop_per_s("fp32")
    assert str(caught.value) == (
        "x1 has no sourced peak, only a formula (fp32 = cores*GHz*32/1000); got 'fp32'. "
        "MFU cannot be given without a peak; pass the dense one, like --peak 989TFLOPS."
    )


@pytest.mark.parametrize("noun", [Device, Node, Price])
def test_every_field_has_its_help(noun: type) -> None:
    for field in dataclasses.fields(noun):
        assert set(field.metadata) == {"unit", "doc"}, field.name
        assert field.metadata["doc"], field.name


def test_nouns_are_frozen_hashable_and_plain_data() -> None:
    device = _device()
    with pytest.raises(dataclasses.FrozenInstanceError):
        device.id = "y"  # type: ignore[misc]
    assert hash(device) == hash(_device())
    assert dataclasses.asdict(device)["peaks_flop_per_s"] == {"fp16": 383 * TERA, "int8": 7}


def test_the_dtypes_are_those_of_the_catalogue() -> None:
    assert DTYPES == ("fp64", "fp64_tc", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "int4")


def test_a_price_in_words() -> None:
    price = Price(device="x1", kind="spot", usd_per_gpu_hour=1.25, date="2026-03", source="list", provider="Rent")
    assert price.sentence() == "$1.25 per GPU-hour, spot, Rent, 2026-03 (list)"
    bare = Price(device="x1", kind="spot", usd_per_gpu_hour=2, date="2026", source="my contract")
    assert bare.sentence() == "$2.00 per GPU-hour, spot, 2026 (my contract)"
