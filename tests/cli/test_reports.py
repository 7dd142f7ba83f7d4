"""Reports on the command line: -o x.html, language and units before the verb, rerun and diff with their exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from suanli.cli.main import app
from suanli.report.words import language


def call(*args: object) -> Any:
    return CliRunner().invoke(app, [str(each) for each in args])


def test_every_verb_says_that_it_writes_html() -> None:
    assert ".html" in call("count", "--help").output.replace("\n", "")


def test_a_report_is_written_and_repeated(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    done = call("mfu", "gpt2", "--gpu", "h100-sxm", "--tokens-per-second", "1000", "-o", path)
    assert (done.exit_code, done.stderr) == (0, f"wrote {path}\n")
    again = call("rerun", path, "--json")
    assert again.exit_code == 0
    found = json.loads(again.stdout)
    assert found["kind"] == "rerun" and found["result"]["equal"] and found["ok"]


def test_a_number_that_moved_is_exit_code_one(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    call("mfu", "gpt2", "--gpu", "h100-sxm", "--tokens-per-second", "1000", "-o", path)
    document = json.loads(path.read_text())
    document["result"]["mfu"] *= 2
    path.write_text(json.dumps(document))
    done = call("rerun", path)
    assert done.exit_code == 1
    assert "1 of 46 numbers differ" in done.stdout and "-50.00 %" in done.stdout


def test_two_reports(tmp_path: Path) -> None:
    for name, seq in (("a", 512), ("b", 1024)):
        call("count", "gpt2", "--seq", seq, "-o", tmp_path / f"{name}.html")
    done = call("diff", tmp_path / "a.html", tmp_path / "b.html", "-o", tmp_path / "d.html")
    assert done.exit_code == 0
    assert "a.html and b.html" in (tmp_path / "d.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("args", [("rerun", "nothing.html"), ("diff", "a.html", "b.html"), ("rerun",)])
def test_what_is_no_report_is_exit_code_two(args: tuple[str, ...]) -> None:
    assert call(*args).exit_code == 2


def test_language_and_units_come_before_the_verb() -> None:
    chinese = call("--lang", "zh", "--units", "si", "count", "gpt2")
    assert "参数量" in chinese.stdout and " MB" in chinese.stdout and "MiB" not in chinese.stdout
    english = call("count", "gpt2")
    assert "Parameters" in english.stdout and "MiB" in english.stdout and " MB" not in english.stdout
    assert language() == "en"
    assert "124,439,808" in call("--units", "exact", "models", "gpt2").stdout


def test_the_language_of_a_file(tmp_path: Path) -> None:
    call("--lang", "zh", "count", "gpt2", "-o", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert '<html lang="zh-Hans">' in text and "参数量" in text


WRONG = [
    (("--lang", "fr"), "error: unknown language 'fr' in --lang; expected one of 2 known. Languages: en, zh.\n"),
    (("--units", "metric"), "error: unknown system of units 'metric' in --units; expected one of 3 known"),
]


@pytest.mark.parametrize(("args", "said"), WRONG)
def test_other_languages_and_units_are_refused(args: tuple[str, str], said: str) -> None:
    done = call(*args, "count", "gpt2")
    assert done.exit_code == 2 and done.stderr.startswith(said) and done.stdout == ""
