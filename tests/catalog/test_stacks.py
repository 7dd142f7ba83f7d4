"""Software stacks: every value with its source, what one takes from another, and faults told together."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from importlib import resources

import pytest

from suanli.catalog.stacks import find_stack, list_stacks, load
from suanli.errors import ConfigError, InputError, UnknownNameError
from suanli.nouns.stack import Stack

TABLES = tomllib.loads(resources.files("suanli.catalog").joinpath("stacks.toml").read_text(encoding="utf-8"))


def test_every_value_has_a_source() -> None:
    names = [stack.name for stack in list_stacks()]
    assert names == ["megatron-core", "nemo", "megatron-2021", "megascale", "deepspeed", "megatron-deepspeed",
                     "deepspeed-zero3", "megatron-bridge", "llama3", "hai-llm", "torchtitan",
                     "composer-fsdp"]  # fmt: skip
    for stack in list_stacks():
        assert set(stack.sources) == {field.name for field in fields(Stack)} - {"name", "title", "sources"}
        assert all(stack.sources.values()) and stack.title


def test_every_field_is_explained() -> None:
    assert all(field.metadata["doc"] for field in fields(Stack))


def test_a_stack_takes_what_it_does_not_give() -> None:
    old = find_stack("megatron-2021")
    assert (old.flash, old.vocab_multiple, old.gradient_bytes["fp16"]) == (False, 128, 4)
    assert find_stack(" DeepSpeed ").gradient_bytes == {"bf16": 6, "fp16": 2}


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError) as problem:
        find_stack("megatron-cor")
    assert str(problem.value).startswith("unknown stack 'megatron-cor' in --stack; expected one of 12")
    assert "megatron-core" in problem.value.faults[0].nearest


def test_faults_are_told_together() -> None:
    table = dict(TABLES["megatron-core"])
    del table["flash"]
    table |= {"selective": {"value": "all", "source": "x"}, "flsh": {"value": True, "source": "x"}, "step_bytes": 3}
    with pytest.raises(ConfigError) as problem:
        load({"mine": table})
    assert [fault.sentence() for fault in problem.value.faults] == [
        "stack mine lacks flash in stacks.toml; expected a value.",
        "stack mine has an unknown field flsh in stacks.toml; nearest: flash, offloads.",
        "stack mine gives step_bytes without value and source in stacks.toml.",
        "stack mine recomputes something unknown in stacks.toml; expected one of scores, matmuls, light.",
    ]


@pytest.mark.parametrize("tables", [{"a": {"extends": "b"}}, {"a": {"extends": "b"}, "b": {"extends": "a"}}])
def test_extending_must_lead_somewhere(tables: dict[str, object]) -> None:
    with pytest.raises(InputError, match="which cannot be"):
        load(tables)
