"""Answers of `layout` read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from suanli.errors import UnreadableFileError
from suanli.readers.layout_answers import read_layout_answer

GOOD = {"kind": "layout", "result": {"layouts": [
    {"tp": 8, "pp": 4, "dp": 2, "account": [{"entry": "matmul", "seconds": 1.5}, {"entry": "bubble", "seconds": 0}]},
    {"tp": 1, "account": []},
]}}  # fmt: skip


def written(tmp_path: Path, value: Any) -> Path:
    path = tmp_path / "layout.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_the_first_layout(tmp_path: Path) -> None:
    found = read_layout_answer(written(tmp_path, GOOD))
    assert found.name == "tp8 pp4 dp2"
    assert [(each.entry, each.seconds) for each in found.account] == [("matmul", 1.5), ("bubble", 0.0)]


def account(rows: Any) -> dict[str, Any]:
    return {"kind": "layout", "result": {"layouts": [{"tp": 1, "account": rows}]}}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"kind": "count", "result": {}}, "the file is no answer of layout"),
        ({"a": 1}, "the file is no answer of layout"),
        ({"kind": "layout", "result": []}, "the file is no answer of layout"),
        ({"kind": "layout", "result": {"layouts": []}}, "the answer holds no layout"),
        ({"kind": "layout", "result": {"layouts": [3]}}, "the answer holds no layout"),
        (account([]), "the first layout has no account of entries and seconds"),
        (account("x"), "the first layout has no account of entries and seconds"),
        (account([{"entry": "matmul", "seconds": -1}]), "the first layout has no account of entries and seconds"),
        (account([{"entry": "matmul", "seconds": True}]), "the first layout has no account of entries and seconds"),
        (account([{"entry": 4, "seconds": 1}]), "the first layout has no account of entries and seconds"),
    ],
)
def test_what_is_no_answer_is_refused(tmp_path: Path, value: Any, message: str) -> None:
    path = written(tmp_path, value)
    with pytest.raises(UnreadableFileError) as problem:
        read_layout_answer(path)
    assert str(problem.value).startswith(f"{message} in {path}")
    assert str(problem.value).endswith("expected what `suanli layout MODEL … --json` prints.")


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(UnreadableFileError, match="the file is not JSON"):
        read_layout_answer(path)
