"""Serving presets: what ships, and what a faulty file is told."""

from __future__ import annotations

import pytest

from suanli.catalog.serving_presets import (
    IDEAL,
    find_serving_preset,
    load,
    power_profile,
    serving_preset_names,
)
from suanli.errors import ConfigError, UnknownNameError
from suanli.nouns.serving_profile import NUMBERS

GOOD = {"title": "t", "half_width": 0.1, "rows": 3, "gpus": ["h100-sxm"], "source": "s"} | dict.fromkeys(NUMBERS, 1.0)
POWER = {"always": 0.5, "memory": 0.4, "products": 0.3, "half_width": 0.2, "rows": 5, "source": "s"}


def test_the_presets_of_the_contract_are_there() -> None:
    assert {"ideal", "vllm", "tensorrt-llm", "sglang"} <= set(serving_preset_names())
    for name in serving_preset_names()[1:]:
        preset = find_serving_preset(name)
        assert preset.rows > 0
        assert "scripts/fit_serving.py" in preset.source
        assert 0 < preset.half_width < 0.6
    assert find_serving_preset(" Ideal ") is IDEAL
    assert 0 < power_profile().always < 1


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
    presets, power = load({"mine": GOOD, "power": POWER}, "file.toml")
    assert presets["mine"].profile.weights == 1.0
    assert power.rows == 5
