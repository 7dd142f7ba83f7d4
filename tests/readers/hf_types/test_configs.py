"""The configs a type is tried with: by hand where that is said, else made; and the table of those by hand."""

from __future__ import annotations

import pytest

from suanli.nouns.coverage import DEFAULT, SMALL
from suanli.readers.hf_types.configs import declared, declared_configs, given_configs

pytestmark = pytest.mark.torch
pytest.importorskip("transformers")


def test_every_entry_by_hand_is_of_a_type_in_a_mapping() -> None:
    from suanli.readers.hf_types.mappings import types_of_tasks

    known = {f"{task.model_type}@{task.mapping}" for task in types_of_tasks()}
    for table in declared_configs().values():
        assert set(table) <= known


def test_what_is_said_by_hand_comes_first() -> None:
    (only,) = given_configs(SMALL, "xlnet", "causal-lm")
    assert only.made == "declared"
    assert only.keys == declared(SMALL, "xlnet", "causal-lm")
    assert declared(SMALL, "llama", "causal-lm") is None


def test_made_ones_become_plainer_and_never_twice_the_same() -> None:
    made = [each.keys for each in given_configs(SMALL, "llama", "causal-lm")]
    assert made[0]["num_key_value_heads"] == 2
    assert len({str(keys) for keys in made}) == len(made) > 1


def test_defaults_are_taken_as_they_are_or_completed() -> None:
    (plain,) = given_configs(DEFAULT, "llama", "causal-lm")
    assert (plain.keys, plain.made) == ({}, "")
    (completed,) = given_configs(DEFAULT, "xmod", "masked-lm")
    assert completed.made == "completed: default_language"


def test_a_tower_that_does_not_fit_is_made_to() -> None:
    """GLM-OCR's default tower ends in another width than its decoder has."""
    plain, joined = given_configs(DEFAULT, "qwen2_5_vl", "image-text-to-text")
    assert plain.keys == {}
    assert joined.made == "completed: the tower made as wide as its decoder"
    assert joined.keys["vision_config"]["out_hidden_size"] == 8192
