"""Names that forms can choose from are those the verbs take."""

from __future__ import annotations

import json

import pytest

from suanli.catalog.devices import find_device, list_devices
from suanli.catalog.presets import presets
from suanli.web.names import names_json

FOUND = json.loads(names_json())


def test_every_preset_and_device_is_listed_once() -> None:
    assert [each[0] for each in FOUND["models"]] == list(presets())
    assert len({each[0] for each in FOUND["gpus"]}) == len(FOUND["gpus"]) == len(list_devices())


@pytest.mark.parametrize("each", FOUND["gpus"], ids=lambda each: each[0])
def test_a_listed_device_is_found_by_its_name(each: list[str]) -> None:
    assert find_device(each[0]).short_id == each[0]


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("models", ["llama-3.1-405b", "Llama 3.1 405B", "406 B"]),
        ("models", ["gpt2", "GPT-2", "124 M"]),
        ("gpus", ["h100-sxm", "H100 SXM5 80GB NVIDIA Hopper", "80 GB"]),
    ],
)
def test_sizes_tell_them_apart(kind: str, row: list[str]) -> None:
    assert next(each for each in FOUND[kind] if each[0] == row[0])[2] == row[2]


def test_what_is_unknown_is_left_blank() -> None:
    assert all(isinstance(part, str) for kind in FOUND.values() for each in kind for part in each)
