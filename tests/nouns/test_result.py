"""The envelope: one shape, no NaN, attributes read through."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from suanli.nouns.result import Result, plain


@dataclass(frozen=True)
class Inner:
    pass_: str
    secret: int = field(metadata={"hidden": True})
    values: tuple[int, ...] = (1, 2)


def test_plain_values() -> None:
    assert plain({"a": Inner("x", 3), 1: range(2)}) == {"a": {"pass": "x", "values": [1, 2]}, "1": [0, 1]}


def test_envelope_keys() -> None:
    found = Result(kind="count", inputs={"model": "m"}, result=Inner("x", 3), convention="causal").to_dict()
    assert list(found) == [
        "ok", "kind", "schema", "version", "inputs", "convention", "result", "uncounted", "sources", "notes"
    ]  # fmt: skip
    assert found["schema"] == 1


def test_attributes_read_through_to_the_result() -> None:
    found = Result(kind="count", inputs={}, result=Inner("x", 3))
    assert found.pass_ == "x"
    with pytest.raises(AttributeError):
        _ = found.nothing


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_no_nan_leaves_the_house(bad: float) -> None:
    with pytest.raises(ValueError, match="Out of range float values"):
        Result(kind="count", inputs={}, result={"x": bad}).to_json()


def test_json_keeps_integers_exact() -> None:
    text = Result(kind="count", inputs={}, result={"flops": 39_373_900_000_000_000_000_000_001}).to_json()
    assert json.loads(text)["result"]["flops"] == 39_373_900_000_000_000_000_000_001
