"""`learn` as it is asked: options read, every fault told, word by word."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suanli
from suanli.api.learning import OPTIONS
from suanli.catalog.lessons import TOPICS as ALL
from suanli.errors import InputError, UnknownNameError
from suanli.nouns.lesson import Contents, Lesson

TOPICS = f"Topics: {', '.join(ALL)}."

# what is asked, what is said
FAULTS: list[tuple[dict[str, Any], str]] = [
    (
        {"topic": "backprp"},
        f"unknown topic 'backprp' in TOPIC; expected one of {len(ALL)} known; nearest: backprop. {TOPICS}",
    ),
    ({"topic": "cost", "lang": "fr"}, "unknown language 'fr' in --lang; expected one of 2 known. Languages: en, zh."),
    (
        {"topic": "cost", "rate": 1},
        "an option of the lesson backprop in --rate; got 1. `suanli learn backprop` takes it.",
    ),
    (
        {"topic": "backprop", "seed": "3"},
        "an option of the lesson transformer in --seed; got '3'. `suanli learn transformer` takes it.",
    ),
    ({"prompt": "x"}, "an option of the lesson transformer in --prompt; got 'x'. `suanli learn transformer` takes it."),
    (
        {"topic": "backprop", "weights": "1,2"},
        "weights are not what the network has in --weights; got '1,2'; expected 8 numbers with commas between them.",
    ),
    (
        {"topic": "backprop", "inputs": 3},
        "inputs are not what the network has in --inputs; got 3; expected 2 numbers with commas between them.",
    ),
    (
        {"topic": "backprop", "inputs": "1,x"},
        "not a number with a unit in --inputs; got 'x'; expected a number like 1.2.",
    ),
    (
        {"topic": "backprop", "hidden_bias": float("nan")},
        "not a finite number in --hidden-bias; got nan; expected a number like 1.2.",
    ),
    ({"topic": "backprop", "rate": "2e6"}, "a number too large in --rate; got '2e6'; expected at most 1,000,000."),
    ({"topic": "backprop", "steps": "1M"}, "steps is not possible in --steps; got '1M'; expected at most 100,000."),
    ({"topic": "backprop", "steps": "-1"}, "a quantity below zero in --steps; got '-1'; expected a number like 8192."),
    ({"topic": "transformer", "new_tokens": 0}, "no token to put out in --new-tokens; got 0; expected at least 1."),
    (
        {"topic": "transformer", "seed": 2**32},
        "seed is not possible in --seed; got 4294967296; expected at most 4,294,967,295.",
    ),
    (
        {"topic": "transformer", "prompt": ""},
        "no prompt that can be read in --prompt; got ''; expected 1 to 2,000 characters.",
    ),
    (
        {"topic": "transformer", "prompt": "\ud800"},
        "no prompt that can be read in --prompt; got '\\ud800'; expected 1 to 2,000 characters.",
    ),
    (
        {"topic": "transformer", "new_tokens": 128},
        "the prompt does not fit the model in --prompt; got 11 tokens, and 128 to put out; expected 1 to 128 together.",
    ),
]


@pytest.mark.parametrize(("asked", "said"), FAULTS, ids=[str(row[0])[:50] for row in FAULTS])
def test_what_is_wrong_is_said(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as problem:
        suanli.learn(**asked)
    assert str(problem.value) == said


def test_all_faults_together() -> None:
    with pytest.raises(InputError) as problem:
        suanli.learn("nothing", lang="xx", seed=1, rate=2)
    assert [fault.code for fault in problem.value.faults] == [
        "unknown_language", "unknown_topic", "no_such_option", "no_such_option",
    ]  # fmt: skip


def test_an_unknown_topic_is_an_unknown_name() -> None:
    with pytest.raises(UnknownNameError):
        suanli.learn("x")


def test_without_a_topic_the_list() -> None:
    found = suanli.learn(lang="zh")
    assert isinstance(found.result, Contents) and len(found.topics) == len(ALL) >= 11
    assert found.to_dict()["inputs"] == {"topic": None, "lang": "zh", "assumed": {}}


def test_english_is_assumed_and_said() -> None:
    found = suanli.learn("cost")
    assert isinstance(found.result, Lesson) and found.lang == "en"
    assert found.to_dict()["inputs"] == {"topic": "cost", "assumed": {"lang": "en"}}


def test_names_may_be_in_capitals() -> None:
    assert suanli.learn(" Cost ", lang="ZH").title == suanli.learn("cost", lang="zh").title


SAME = [
    {"inputs": "0.1, 0.2"}, {"inputs": [0.1, 0.2]}, {"inputs": (0.1, 0.2)}, {"inputs": "0.1,2e-1"},
]  # fmt: skip


@pytest.mark.parametrize("given_", SAME)
def test_numbers_as_text_or_list(given_: dict[str, Any]) -> None:
    values = suanli.learn("backprop", **given_).values
    assert values["net_h1"] == pytest.approx(0.1 * 0.1 + 0.2 * 0.2 + 0.5)


# option of the command line → a result that it changes
CHANGES = [
    ("inputs", "1,2", "net_h1", 0.1 * 1 + 0.2 * 2 + 0.5),
    ("targets", "1,0", "e1", (1 - 0.7843803485) ** 2 / 2),
    ("weights", "1,1,0,0,0,0,0,0", "net_h1", 0.6),
    ("hidden_bias", "-1", "net_h2", 0.3 * 0.05 + 0.4 * 0.05 - 1),
    ("output_bias", "0", "net_y1", 0.5 * 0.6259778649 + 0.6 * 0.6306485300),
    ("rate", "0", "loss_after", 0.3698230480),
    ("steps", "1", "loss_last", 0.3627738926),
]


@pytest.mark.parametrize(("name", "text", "result", "wanted"), CHANGES)
def test_everything_of_the_network_can_be_changed(name: str, text: str, result: str, wanted: float) -> None:
    assert suanli.learn("backprop", **{name: text}).values[result] == pytest.approx(wanted, abs=1e-8)


def test_every_option_has_a_case() -> None:
    assert {row[0] for row in CHANGES} == set(OPTIONS["backprop"])


@given(st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=8, max_size=8), st.floats(0, 1e6))
def test_no_network_breaks_the_lesson(weights: list[float], rate: float) -> None:
    small = [0.0 if abs(weight) < 1e-90 else weight for weight in weights]
    found = suanli.learn("backprop", weights=small, rate=0.0 if rate < 1e-90 else rate, steps=12)
    assert found.to_json()


@given(st.text(min_size=1, max_size=30))
@settings(max_examples=30)
def test_no_prompt_breaks_the_lesson(prompt: str) -> None:
    try:
        found = suanli.learn("transformer", prompt=prompt, new_tokens=1)
    except InputError as problem:
        assert "--prompt" in str(problem)
    else:
        assert found.to_json()
