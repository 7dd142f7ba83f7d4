"""`suanli layout` at the command line: exit codes, JSON, files, and mistypings told in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from suanli.cli.layout import Bar
from suanli.cli.main import app

pytest.importorskip("numpy")
RUN = ["layout", "llama-3.1-8b", "--gpu", "h100-sxm", "--gpus", "8", "--global-batch", "16", "--seq", "2048"]


def call(*more: str):
    return CliRunner().invoke(app, [*RUN, *more])


def test_a_ranking_on_the_screen():
    found = call("--pin", "cp=1,pp=1", "--top", "2")
    assert found.exit_code == 0
    assert found.output.startswith("llama-3.1-8b on 8 GPUs: ")
    for title in ("Layouts", "Step of the first", "Memory of the first", "Levers", "Search", "Notes", "Sources"):
        assert f"\n{title}" in found.output


def test_json_and_nothing_else():
    found = call("--pin", "cp=1,pp=1", "--json")
    assert json.loads(found.output)["result"]["layouts"][0]["gpus"] == 8


@pytest.mark.parametrize("suffix", [".json", ".csv", ".md"])
def test_files(tmp_path: Path, suffix: str):
    path = tmp_path / f"plan{suffix}"
    assert call("--pin", "cp=1,pp=1,tp=1", "-o", str(path)).exit_code == 0
    assert "recompute" in path.read_text(encoding="utf-8")


def test_two_compared_and_flags_of_a_tool():
    found = call("--pin", "cp=1,pp=1,zero=1", "--why", "1", "tp=4", "--emit", "megatron")
    assert found.exit_code == 0
    assert "Why: first " in found.output
    assert "--tensor-model-parallel-size" in found.output


REFUSED = [
    (["--pin", "tp=3"], "error: tp cannot be so in --pin tp; got 3: 32 heads cannot be cut into 3"),
    (["--pin", "tp"], "error: a pin cannot be read in --pin"),
    (["--why", "1", "77"], "error: no such place in --why; got '77'"),
    (["--stack", "megatron"], "error: unknown stack 'megatron' in --stack"),
    (["--emit", "jax"], "error: unknown tool 'jax' in --emit"),
    (["--memory-limit", "80"], "error: a number without its unit in --memory-limit"),
    (["--memory-limit", "1GB"], "error: no layout fits the memory in --memory-limit"),
    (["--top", "0"], "error: top is not possible in --top"),
    (["--pin", "zero=1", "--emit", "torchtitan"], "error: torchtitan cannot express ZeRO 1 in --emit"),
]


@pytest.mark.parametrize(("more", "message"), REFUSED, ids=[" ".join(each[0]) for each in REFUSED])
def test_mistypings_are_told_and_the_code_is_2(more, message):
    found = call(*more)
    assert found.exit_code == 2
    assert found.output.startswith(message)


def test_without_its_numbers_every_one_is_asked_for():
    found = CliRunner().invoke(app, ["layout", "llama-3.1-8b"])
    assert found.exit_code == 2
    assert found.output.count("error: ") == 3


def test_the_bar_is_gone_before_the_report_is_printed(monkeypatch):
    """Left on the terminal, it would draw itself between the lines of the report."""
    left = []
    monkeypatch.setattr(Bar, "__exit__", lambda self, *_: left.append("bar"))
    monkeypatch.setattr("suanli.cli.run.show", lambda *_, **__: left.append("report"))
    assert call("--pin", "cp=1,pp=1,tp=1").exit_code == 0
    assert left == ["bar", "report"]


def test_a_bar_is_shown_only_on_a_terminal_and_after_a_while(monkeypatch):
    with Bar() as bar:
        bar(0.5)
        assert bar.shown is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Bar() as bar:
        bar(0.1)
        assert bar.shown is None
        bar.started -= 5
        bar(0.5)
        assert bar.shown is not None
