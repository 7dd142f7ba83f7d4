"""A result keeps every option it was asked with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import suanli
from suanli.api.keeping import is_plain, keeps_request, written
from suanli.nouns.result import Result


@keeps_request
def verb(model: Any = None, *more: Any, seq: Any = None, fast: bool = False, every: bool = False, progress: Any = None,
         **options: Any) -> Result:  # fmt: skip
    del more, fast, progress, options, every
    return Result(kind="count", inputs={"model": model if isinstance(model, str) else None, "assumed": {"seq": seq}},
                  result=None)  # fmt: skip


class Live:
    def __eq__(self, other: object) -> bool:
        raise AssertionError("objects of a program are not compared")

    __hash__ = None  # type: ignore[assignment]


CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"model": None}),
    ({"model": "gpt2"}, {"model": "gpt2"}),
    ({"model": {"a": (1, 2)}}, {"model": {"a": [1, 2]}}),
    ({"seq": 8, "fast": True, "every": True}, {"model": None, "seq": 8, "fast": True, "every": True}),
    ({"fast": False, "progress": print}, {"model": None}),
    ({"seq": Path("a/b")}, {"model": None, "seq": "a/b"}),
    ({"other": 3, "none": None}, {"model": None, "other": 3}),
    ({"seq": {64: 1.0}}, {"model": None, "seq": {"64": 1.0}}),
    ({"model": Live()}, {"model": None, "live": ["model"]}),
]


@pytest.mark.parametrize(("options", "inputs"), CASES)
def test_inputs(options: dict[str, Any], inputs: dict[str, Any]) -> None:
    found = verb(**options).inputs
    assert {name: value for name, value in found.items() if name != "assumed"} == inputs
    assert list(found)[-1] == "assumed"


def test_what_a_verb_says_itself_stands() -> None:
    found = suanli.verify("articles", every=True)
    assert found.inputs == {"only": ["articles"], "all": True}
    assert suanli.count("gpt2", by="module").inputs["by"] == "module"


@pytest.mark.parametrize(("value", "plain", "made"), [
    (1, True, 1), ("a", True, "a"), (None, True, None), ((1, Path("x")), True, [1, "x"]), (range(2), True, [0, 1]),
    ({1: (2,)}, True, {"1": [2]}), (object, False, "<class 'object'>"), ([object], False, "[<class 'object'>]"),
])  # fmt: skip
def test_values_as_json_has_them(value: Any, plain: bool, made: Any) -> None:
    assert is_plain(value) is plain
    assert written(value) == made


def test_a_path_keeps_its_folder() -> None:
    assert (
        suanli.explain(Path(__file__).parents[2] / "examples" / "step.json")
        .inputs["trace"]
        .endswith("examples/step.json")
    )
