"""Serving presets: what ships, and what a faulty file is told."""

from __future__ import annotations

import pytest

from suanli.catalog.serving_presets import (
    find_serving_preset,
    ideal_preset,
    load,
    power_profile,
    serving_errors,
    serving_preset_names,
)
from suanli.errors import ConfigError, UnknownNameError
from suanli.nouns.serving_profile import NUMBERS

GOOD = {"title": "t", "half_width": 0.1, "rows": 3, "gpus": ["h100-sxm"], "source": "s"} | dict.fromkeys(NUMBERS, 1.0)
ERROR = {"quantity": "q", "source": "s", "judged": "", "n": 2, "bias_held_out": -0.1} | dict.fromkeys(
    ("mean_fitted", "mean_held_out", "median_fitted", "median_held_out"), 0.1
)
POWER = {"always": 0.5, "memory": 0.4, "products": 0.3, "half_width": 0.2, "rows": 5, "source": "s"}


def test_the_presets_of_the_contract_are_there() -> None:
    assert {"ideal", "vllm", "tensorrt-llm", "sglang"} <= set(serving_preset_names())
    for name in serving_preset_names()[1:]:
        preset = find_serving_preset(name)
        assert preset.rows > 0
        assert "scripts/fit_serving.py" in preset.source
        assert 0 < preset.half_width < 0.6
    assert find_serving_preset(" Ideal ") is ideal_preset()
    assert 0 < power_profile().always < 1


def test_no_engine_beats_the_ideal_in_any_number() -> None:
    ideal = ideal_preset().profile
    assert (ideal.weights, ideal.cache, ideal.prefill, ideal.passes, ideal.layer_s) == (1, 1, 1, 1, 0)
    for name in serving_preset_names():
        profile = find_serving_preset(name).profile
        assert all(getattr(ideal, number) <= getattr(profile, number) for number in NUMBERS)
        assert min(profile.weights, profile.cache, profile.prefill) >= 1  # no faster than the data sheet


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown preset 'vlm' in --preset; expected one of \d known; nearest: vllm"
    ):
        find_serving_preset("vlm")


def test_a_faulty_file_is_told_everything() -> None:
    bad = {key: value for key, value in GOOD.items() if key != "weights"} | {"wieghts": 1.0, "cache": -1.0}
    with pytest.raises(ConfigError) as caught:
        load({"vllm": bad, "power": {**POWER, "always": float("nan")}}, "file.toml")
    messages = [fault.sentence() for fault in caught.value.faults]
    assert messages == [
        "no weights in file.toml, [vllm].",
        "cache is no number of 0 or more in file.toml, [vllm]; got -1.0.",
        "unknown 'wieghts' in file.toml, [vllm]; nearest: weights.",
        "always is no number of 0 or more in file.toml, [power]; got nan.",
    ]


def test_a_good_file_is_read() -> None:
    presets, power, errors = load({"mine": GOOD, "power": POWER, "error": [ERROR]}, "file.toml")
    assert presets["mine"].profile.weights == 1.0
    assert power.rows == 5
    assert errors[0].bias_held_out == -0.1 and errors[0].bar_held_out is None


def test_a_faulty_record_of_errors_is_told() -> None:
    bad = {**{key: value for key, value in ERROR.items() if key != "n"}, "bar": 0.1, "mean_held_out": "much"}
    with pytest.raises(ConfigError) as caught:
        load({"power": POWER, "error": [ERROR, bad]}, "file.toml")
    assert [fault.sentence() for fault in caught.value.faults] == [
        "no n in file.toml, [[error]] 2.",
        "mean_held_out is no number of 0 or more in file.toml, [[error]] 2; got 'much'.",
        "unknown 'bar' in file.toml, [[error]] 2.",
    ]


def test_errors_found_when_the_presets_were_fitted_are_kept() -> None:
    """The three quantities with bars, each within them."""
    found = {each.quantity: each for each in serving_errors() if each.judged}
    assert set(found) == {"time per output token", "output throughput", "GPU energy per output token"}
    assert all(each.met for each in found.values())
    token = found["time per output token"]
    assert (token.n, token.bar_held_out) == (401, 0.15) and token.mean_held_out < 0.10
