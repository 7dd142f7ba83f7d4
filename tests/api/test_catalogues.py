"""`gpus` and `models`: sorting, filtering, one row in full."""

from __future__ import annotations

import pytest

import suanli
from suanli.errors import QuantityError, UnknownNameError


def test_all_devices_and_presets() -> None:
    assert len(suanli.gpus().devices) >= 120
    assert len(suanli.models().models) >= 250


def test_one_device_with_prices_and_sources() -> None:
    found = suanli.gpus("NVIDIA H100 80GB HBM3")
    assert [device.id for device in found.devices] == ["h100-80gb-sxm"]
    assert found.prices
    assert all(": " in source for source in found.sources)


def test_filter_by_number_and_sort() -> None:
    """A peak is shown in TFLOP/s, so a bare bound is one."""
    found = suanli.gpus(filter="bf16>2000", sort="bf16").devices
    assert found == suanli.gpus(filter="bf16>2PFLOPS", sort="bf16").devices
    peaks = [device.peaks_flop_per_s["bf16"] for device in found]
    assert peaks == sorted(peaks, reverse=True)
    assert min(peaks) > 2000e12


def test_filter_by_words() -> None:
    assert {row.family for row in suanli.models(filter="qwen3").models} == {"qwen", "qwen-vl"}
    assert all("causal" in row.task for row in suanli.models(filter="causal-lm llama").models)


def test_filter_models_by_size() -> None:
    rows = suanli.models(filter="params<1B", sort="params").models
    assert rows and all(row.params < 1e9 for row in rows)
    assert [row.params for row in rows] == sorted((row.params for row in rows), reverse=True)


def test_rows_without_the_figure_come_last() -> None:
    watts = [device.tdp_w for device in suanli.gpus(sort="tdp_w").devices]
    first_missing = watts.index(None)
    assert all(value is None for value in watts[first_missing:])


def test_wrong_fields_and_bounds() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown field 'bf61' in --sort.*nearest: bf16"):
        suanli.gpus(sort="bf61")
    with pytest.raises(UnknownNameError, match="unknown field 'colour' in --filter"):
        suanli.models(filter="colour>3")
    with pytest.raises(QuantityError):
        suanli.gpus(filter="tdp_w>many")
