"""Files that hold a report, and files that do not: each refused in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from suanli.errors import InputError, UnreadableFileError
from suanli.readers import reports as module
from suanli.readers.reports import read_report

GOOD: dict[str, Any] = {
    "ok": True, "kind": "mfu", "schema": 1, "version": "0.1.0", "inputs": {"model": "gpt2"}, "convention": "causal",
    "result": {"mfu": 0.4}, "uncounted": [], "sources": [], "notes": [],
}  # fmt: skip


def test_json_and_html_hold_the_same(tmp_path: Path) -> None:
    text = json.dumps(GOOD)
    (tmp_path / "a.json").write_text(text)
    inside = f'<!doctype html><script type="application/json" id="suanli-result">{text}</script><script>x</script>'
    (tmp_path / "a.html").write_text(inside)
    first, second = read_report(tmp_path / "a.json"), read_report(tmp_path / "a.html")
    assert (first.kind, first.version, first.convention) == ("mfu", "0.1.0", "causal")
    assert (first.inputs, first.result) == (second.inputs, second.result) == ({"model": "gpt2"}, {"mfu": 0.4})


REFUSED: list[tuple[str, str, str]] = [
    ("nothing here", "no_report", "no report of Suanli"),
    ("<html></html>", "no_report", "no report of Suanli"),
    ("[1, 2]", "no_report", "no report of Suanli"),
    ('{"a": 1}', "no_report", "expected JSON with kind, inputs and result"),
    (json.dumps(GOOD | {"result": 3}), "no_report", "expected JSON with kind, inputs and result"),
    (json.dumps(GOOD | {"kind": None}), "no_report", "expected JSON with kind, inputs and result"),
    (json.dumps(GOOD)[:-5], "bad_json", "the JSON of the report cannot be read"),
    (json.dumps(GOOD | {"result": {"a": float("nan")}}), "bad_json", "NaN is no number of JSON"),
    ('{"a":' * 100_000, "bad_json", "the JSON of the report is nested too deeply in "),
    (json.dumps(GOOD | {"schema": 2}), "other_schema", "got 2; expected schema 1"),
    (json.dumps({"ok": False, "error": {"code": "x", "message": "it broke"}}), "an_error", "got 'it broke'"),
]


@pytest.mark.parametrize(
    ("text", "code", "said"), REFUSED, ids=[f"{place}-{row[1]}" for place, row in enumerate(REFUSED)]
)
def test_what_is_no_report(text: str, code: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_report(path)
    (fault,) = caught.value.faults
    assert fault.code == code and said in str(caught.value) and str(path) in str(caught.value)


def test_bytes_folders_and_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="got bytes that are no text"):
        read_report(tmp_path / "bytes")
    with pytest.raises(InputError, match="got no regular file"):
        read_report(tmp_path)
    with pytest.raises(UnreadableFileError, match=r"the report A cannot be read in .*nothing; got No such file"):
        read_report(tmp_path / "nothing", "A")


def test_a_file_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 10)
    (tmp_path / "r.json").write_text(json.dumps(GOOD))
    with pytest.raises(InputError, match="expected a file of at most 10 bytes"):
        read_report(tmp_path / "r.json")
