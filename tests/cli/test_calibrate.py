"""`suanli calibrate`: the same result as Python, a stack file that `layout` reads, exit codes, nothing half-written."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import suanli
from suanli.cli.main import app

RUNNER = CliRunner()
HEAD = "model,gpu,gpus,tp,gbs,mbs,seq,zero,recompute,sp,step_s"
ROWS = [f"llama-3.1-8b,h100-sxm,{gpus},2,{8 * gpus},1,8192,1,none,1,{time}" for gpus, time in
        ((8, 6.8), (16, 6.9), (32, 7.0))]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text("\n".join([HEAD, *ROWS]), encoding="utf-8")
    return tmp_path


def call(line: str) -> Any:
    return RUNNER.invoke(app, line.split())


def test_json_is_pythons() -> None:
    done = call("calibrate runs.csv --stack nemo --json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads(suanli.calibrate("runs.csv", stack="nemo").to_json())


def test_the_stack_is_called_as_its_file_and_layout_takes_it(folder: Path) -> None:
    done = call("calibrate runs.csv --stack nemo -o mystack.toml")
    assert (done.exit_code, done.stdout) == (0, "") and "wrote mystack.toml" in done.stderr
    head = tomllib.loads((folder / "mystack.toml").read_text(encoding="utf-8"))["stack"]
    assert (head["name"], head["base"], head["command"]) == (
        "mystack", "nemo", "suanli calibrate runs.csv --stack nemo"
    )  # fmt: skip
    asked = "layout llama-3.1-8b --gpu h100-sxm --gpus 8 --global-batch 64 --seq 8192 --top 1 --pin pp=1,cp=1"
    planned = json.loads(call(f"{asked} --stack mystack.toml --json").stdout)
    assert planned["result"]["stack"] == "mystack" and planned["inputs"]["stack"] == "mystack.toml"
    assert sorted(path.name for path in folder.iterdir()) == ["mystack.toml", "runs.csv"]


def test_a_name_of_its_own(folder: Path) -> None:
    assert call("calibrate runs.csv --stack nemo --name other -o a.toml").exit_code == 0
    assert 'name = "other"' in (folder / "a.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", ["json", "csv", "md"])
def test_reports_by_suffix(folder: Path, suffix: str) -> None:
    assert call(f"calibrate runs.csv --stack nemo -o out.{suffix}").exit_code == 0
    text = (folder / f"out.{suffix}").read_text(encoding="utf-8")
    assert "matmul" in text and "tensor_exposed" in text


EXITS = [
    ("calibrate", "error: own runs stand in a file in FILE.csv; expected the path of a CSV file, or --shipped STACK."),
    ("calibrate none.csv", "error: the file cannot be opened: No such file or directory in none.csv. Check the path."),
    (
        "calibrate runs.csv -o out.tml",
        "expected a file ending in .json, .csv, .md, .html, .toml, .svg, .png; nearest: .toml",
    ),
    ("calibrate --shipped megatron", "error: unknown stack 'megatron' in --shipped"),
    ("layout gpt2 --gpu h100-sxm --gpus 8 --global-batch 8 --stack none.toml", "error: the file cannot be opened"),
    (
        "layout gpt2 --gpu h100-sxm --gpus 8 --global-batch 8 -o out.toml",
        "ending in .json, .csv, .md, .html, .svg, .png;",
    ),
]


@pytest.mark.parametrize(("line", "words"), EXITS, ids=[row[0] for row in EXITS])
def test_exit_codes(line: str, words: str) -> None:
    done = call(line)
    assert done.exit_code == 2
    assert words in done.stderr


def test_a_file_that_cannot_be_written_leaves_nothing(folder: Path) -> None:
    done = call("calibrate runs.csv --stack nemo -o nowhere/mine.toml")
    assert done.exit_code == 2 and "error: the file cannot be written" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["runs.csv"]
