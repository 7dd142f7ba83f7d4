"""Checked reads of a description: what each returns, the words of each fault, and that all come together."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.errors import ConfigError
from suanli.readers.config import Config, StandIn, brief

Read = Callable[[Config], Any]


def config(**values: Any) -> Config:
    return Config(values, "config.json")


def faults(found: Config) -> list[str]:
    return [fault.sentence() for fault in found.faults.faults]


WHOLE = "expected a whole number from 1 to 1,000,000,000."

# --- reads that succeed -------------------------------------------------------------------------------------------

GOOD: list[tuple[dict[str, Any], Read, Any]] = [
    ({"a": 3}, lambda c: c.need("a"), 3),
    ({"a": 1}, lambda c: c.whole("a", default=9), 1),
    ({"a": 1}, lambda c: c.maybe("a"), 1),
    ({"a": 10**9}, lambda c: c.maybe("a"), 10**9),
    ({"a": 3.0}, lambda c: c.need("a"), 3),  # JSON written by a tool that knows only floats
    ({"b": 4}, lambda c: c.need("a", "b"), 4),
    ({"a": None, "b": 4}, lambda c: c.need("a", "b"), 4),
    ({"a": 4, "b": 4}, lambda c: c.need("a", "b"), 4),
    ({"a": 1}, lambda c: c.need("a"), 1),
    ({"a": 10**9}, lambda c: c.need("a"), 10**9),
    ({"a": 0}, lambda c: c.need("a", low=0), 0),
    ({"a": 7}, lambda c: c.need("a", high=7), 7),
    ({}, lambda c: c.whole("a", default=9), 9),
    ({"a": None}, lambda c: c.whole("a", default=9), 9),
    ({"a": 2}, lambda c: c.whole("a", default=9), 2),
    ({"a": 0}, lambda c: c.whole("a", default=9, low=0), 0),
    ({}, lambda c: c.maybe("a"), None),
    ({"b": 2}, lambda c: c.maybe("a", "b"), 2),
    ({"a": 100_000}, lambda c: c.layers("a"), 100_000),
    ({}, lambda c: c.flag("a", default=True), True),
    ({"a": False}, lambda c: c.flag("a", default=True), False),
    ({"b": True}, lambda c: c.flag("a", "b", default=False), True),
    ({}, lambda c: c.choice("a", ("x", "y"), "y"), "y"),
    ({"a": "x"}, lambda c: c.choice("a", ("x", "y"), "y"), "x"),
    ({}, lambda c: c.names("a", 2, ("x", "y")), None),
    ({"a": ["x", "y"]}, lambda c: c.names("a", 2, ("x", "y")), ("x", "y")),
    ({"a": ("x",)}, lambda c: c.names("a", 1, ("x", "y")), ("x",)),
    ({}, lambda c: c.wholes("a"), None),
    ({"a": [1, 2.0, 0]}, lambda c: c.wholes("a"), (1, 2, 0)),
    ({"a": [True, False]}, lambda c: c.wholes("a"), (1, 0)),  # switches, a layer each
    ({"a": []}, lambda c: c.wholes("a"), ()),
    ({"head_dim": 5}, lambda c: c.head_dim(64, 7), 5),  # given: need not divide
    ({}, lambda c: c.head_dim(64, 4), 16),
    ({}, lambda c: c.kv_heads(8), 8),
    ({"num_key_value_heads": 2}, lambda c: c.kv_heads(8), 2),
    ({"n_kv": 4}, lambda c: c.kv_heads(8, "n_kv"), 4),
    ({"num_key_value_heads": 2}, lambda c: c.kv_heads(8, "n_kv"), 8),  # another family's spelling
    ({"a": 0}, lambda c: c.has("a"), True),
    ({"a": None}, lambda c: c.has("a"), False),
    ({"b": 1}, lambda c: c.has("a", "b"), True),
    ({"a": None, "b": 5}, lambda c: c.raw("a", "b"), 5),
    ({}, lambda c: c.raw("a"), None),
]


@pytest.mark.parametrize(("values", "read", "value"), GOOD)
def test_good_values(values: dict[str, Any], read: Read, value: Any) -> None:
    found = config(**values)
    got = read(found)
    assert got == value
    assert type(got) is type(value)
    assert faults(found) == []
    found.check()


# --- reads that find a fault --------------------------------------------------------------------------------------

# values, read, what stands in, the sentence
BAD: list[tuple[dict[str, Any], Read, Any, str]] = [
    ({}, lambda c: c.need("a"), 1, "missing key a in config.json: a; expected a whole number."),
    ({"a": None}, lambda c: c.need("a"), 1, "missing key a in config.json: a; got null; expected a whole number."),
    (
        {"hiden_size": 4, "model_type": "x"},
        lambda c: c.need("hidden_size"),
        1,
        "missing key hidden_size in config.json: hidden_size; expected a whole number; nearest: hiden_size.",
    ),
    ({"a": 0}, lambda c: c.need("a"), 1, f"a is not possible in config.json: a; got 0; {WHOLE}"),
    ({"a": -3}, lambda c: c.need("a"), 1, f"a is not possible in config.json: a; got -3; {WHOLE}"),
    ({"a": 10**9 + 1}, lambda c: c.need("a"), 1, f"a is not possible in config.json: a; got 1000000001; {WHOLE}"),
    ({"a": 1.5}, lambda c: c.need("a"), 1, f"a is not possible in config.json: a; got 1.5; {WHOLE}"),
    ({"a": math.inf}, lambda c: c.need("a"), 1, f"a is not possible in config.json: a; got inf; {WHOLE}"),
    ({"a": True}, lambda c: c.need("a"), 1, f"a is not possible in config.json: a; got True; {WHOLE}"),
    ({"b": "3"}, lambda c: c.need("a", "b"), 1, f"b is not possible in config.json: b; got '3'; {WHOLE}"),
    (
        {"a": 8},
        lambda c: c.need("a", high=7),
        1,
        "a is not possible in config.json: a; got 8; expected a whole number from 1 to 7.",
    ),
    (
        {"a": 1},
        lambda c: c.whole("a", default=9, low=2),
        2,
        "a is not possible in config.json: a; got 1; expected a whole number from 2 to 1,000,000,000.",
    ),
    (
        {"a": -1},
        lambda c: c.whole("a", default=9, low=0),
        1,
        "a is not possible in config.json: a; got -1; expected a whole number from 0 to 1,000,000,000.",
    ),
    (
        {"a": 100_001},
        lambda c: c.layers("a"),
        1,
        "a is not possible in config.json: a; got 100001; expected a whole number from 1 to 100,000.",
    ),
    (
        {"a": 3, "b": 4},
        lambda c: c.need("a", "b"),
        3,
        "a and b name the same thing and differ in config.json: b; got 3 and 4.",
    ),
    (
        {"a": True, "b": False},
        lambda c: c.flag("a", "b", default=False),
        True,
        "a and b name the same thing and differ in config.json: b; got True and False.",
    ),
    ({"a": 1}, lambda c: c.flag("a", default=True), True, "a is not true or false in config.json: a; got 1."),
    ({"a": "z"}, lambda c: c.choice("a", ("x", "y"), "y"), "y",
     "a is not possible in config.json: a; got 'z'; expected one of x, y."),
    ({"a": ["x"]}, lambda c: c.choice("a", ("x", "y"), "y"), "y",
     "a is not possible in config.json: a; got a list of 1; expected one of x, y."),
    ({"a": "xy"}, lambda c: c.names("a", 2, ("x", "y")), None,
     "a is not a list of words in config.json: a; got 'xy'."),
    ({"a": ["x"]}, lambda c: c.names("a", 2, ("x", "y")), None,
     "a does not have one entry a layer in config.json: a; got 1; expected 2."),
    ({"a": ["x", "z"]}, lambda c: c.names("a", 2, ("x", "y")), None,
     "a has an unknown entry in config.json: a; got 'z'; expected x, y."),
    ({"a": 3}, lambda c: c.wholes("a"), None,
     "a is not a list of whole numbers in config.json: a; got 3."),
    ({"a": [0] * 100_001}, lambda c: c.wholes("a"), None,
     "a is not a list of whole numbers in config.json: a; got a list of 100,001."),
    ({"a": [1, "2", -1]}, lambda c: c.wholes("a"), None,
     "a is not possible in config.json: a; got '2'; expected a whole number from 0 to 1,000,000,000."),
    ({"a": [0]}, lambda c: c.wholes("a", low=1, high=5), None,
     "a is not possible in config.json: a; got 0; expected a whole number from 1 to 5."),
    ({}, lambda c: c.head_dim(64, 7), 9,
     "the number of heads does not divide the width, and no head_dim is given in config.json: num_attention_heads; "
     "got 7 heads, width 64."),
    ({}, lambda c: c.head_dim(4, 8), 1,
     "the number of heads does not divide the width, and no head_dim is given in config.json: num_attention_heads; "
     "got 8 heads, width 4."),
    ({"num_key_value_heads": 3}, lambda c: c.kv_heads(8), 8,
     "the number of key/value heads does not divide the number of heads in config.json: num_key_value_heads; "
     "got 8 heads, 3 key/value heads."),
    ({"n_kv": 3}, lambda c: c.kv_heads(8, "n_kv"), 8,
     "the number of key/value heads does not divide the number of heads in config.json: n_kv; "
     "got 8 heads, 3 key/value heads."),
    ({}, lambda c: c.part("text").values, {},
     "missing part text in config.json: text; expected a nested description."),
    ({"text": [1]}, lambda c: c.part("text").values, {},
     "missing part text in config.json: text; got a list of 1; expected a nested description."),
]  # fmt: skip


@pytest.mark.parametrize(("values", "read", "stand_in", "sentence"), BAD, ids=[row[3][:60] for row in BAD])
def test_bad_values(values: dict[str, Any], read: Read, stand_in: Any, sentence: str) -> None:
    found = config(**values)
    assert read(found) == stand_in
    assert faults(found) == [sentence]
    with pytest.raises(ConfigError) as caught:
        found.check()
    assert str(caught.value) == sentence


CODES = [
    ({}, lambda c: c.need("a"), "missing_key"),
    ({"a": 0}, lambda c: c.need("a"), "bad_value"),
    ({"a": 1, "b": 2}, lambda c: c.raw("a", "b"), "contradiction"),
    ({"a": 1}, lambda c: c.flag("a", default=True), "bad_value"),
    ({"a": "z"}, lambda c: c.choice("a", ("x",), "x"), "bad_value"),
    ({"a": []}, lambda c: c.names("a", 2, ("x",)), "contradiction"),
    ({}, lambda c: c.part("a"), "missing_key"),
    ({}, lambda c: c.head_dim(3, 2), "contradiction"),
]


@pytest.mark.parametrize(("values", "read", "code"), CODES)
def test_codes(values: dict[str, Any], read: Read, code: str) -> None:
    found = config(**values)
    read(found)
    assert [fault.code for fault in found.faults.faults] == [code]


# --- together -----------------------------------------------------------------------------------------------------


def test_a_fault_is_said_once_however_often_it_is_read() -> None:
    found = config(a=-1)
    for _ in range(3):
        found.need("a")
        found.need("b")
    assert len(faults(found)) == 2


def test_two_faults_of_one_key_are_both_said() -> None:
    found = config(a=-1)
    found.need("a")
    found.flag("a", default=True)
    assert len(faults(found)) == 2


def test_faults_of_parts_are_raised_with_the_rest_and_say_where() -> None:
    found = config(a=-1, text={"b": "x"})
    found.need("a")
    found.part("text").need("b")
    with pytest.raises(ConfigError) as caught:
        found.check()
    assert [fault.where for fault in caught.value.faults] == ["config.json: a", "config.json: text: b"]


def test_contradictions_with_what_stands_in_are_not_reported() -> None:
    """One mistake, one fault: a missing width is not also a width that heads do not divide."""
    found = config(layer_types=["x"] * 5)
    width, heads, layers = found.need("width"), found.need("heads"), found.layers("depth")
    assert all(isinstance(each, StandIn) for each in (width, heads, layers))
    found.head_dim(width, 7)
    config(num_key_value_heads=3).kv_heads(heads)
    found.names("layer_types", layers, ("x",))
    assert [fault.message for fault in found.faults.faults] == [
        "missing key width",
        "missing key heads",
        "missing key depth",
    ]


def test_nearest_keys_are_two_words_of_a_sane_length() -> None:
    values = {"num_layer": 1, "num_layers_": 1, "nun_layers": 1, 5: 1, "num_layers" + "s" * 100: 1}
    found = Config(values, "config.json")  # type: ignore[arg-type]
    found.need("num_layers")
    nearest = found.faults.faults[0].nearest
    assert len(nearest) == 2
    assert set(nearest) <= {"num_layer", "num_layers_", "nun_layers"}


def test_only_the_first_keys_and_short_ones_are_compared() -> None:
    """A config of a million keys costs no more than one of five hundred."""
    filler = {f"{n:08d}": 1 for n in range(499)}
    for values, nearest in (
        ({**filler, "widht": 1}, ("widht",)),  # the 500th
        ({**filler, "0": 1, "widht": 1}, ()),  # the 501st
    ):
        found = Config(values, "config.json")
        found.need("width")
        assert found.faults.faults[0].nearest == nearest


@pytest.mark.parametrize(("length", "near"), [(99, True), (100, False)])
def test_keys_of_a_hundred_letters_are_not_compared(length: int, near: bool) -> None:
    key = "w" * length
    found = Config({key: 1}, "config.json")
    found.need("w" * 99 + "x")
    assert found.faults.faults[0].nearest == ((key,) if near else ())


def test_lists_may_be_as_long_as_there_may_be_layers() -> None:
    assert len(config(a=[0] * 100_000).wholes("a") or ()) == 100_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "a nested description of 0 keys"),
        ({"a": 1, "b": 2}, "a nested description of 2 keys"),
        ([1] * 1234, "a list of 1,234"),
        ((), "a list of 0"),
        (3, "3"),
        ("word", "'word'"),
        (None, "None"),
        ("x" * 10**6, "'" + "x" * 58 + "…"),
    ],
)
def test_brief(value: object, text: str) -> None:
    assert brief(value) == text


@given(st.integers(-(10**12), 10**12), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_number_is_read_or_refused_by_its_bounds(value: int, low: int, more: int) -> None:
    for typed in (value, float(value)):
        found = config(a=typed)
        got = found.need("a", low=low, high=low + more)
        inside = low <= value <= low + more
        assert (faults(found) == []) is inside
        assert got == (value if inside else max(low, 1))
        assert isinstance(got, StandIn) is not inside
