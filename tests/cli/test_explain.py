"""`suanli explain` and `verify --only traces` at the command line."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from made_trace import EXAMPLE
from typer.testing import CliRunner

import suanli
from suanli.cli.main import app


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_page() -> None:
    found = call("explain", EXAMPLE)
    assert found.exit_code == 0
    headline = "step.json: 40.1 % of peak useful, 15.5 % idle in 11.19 ms of h100-sxm [kineto, rank 0]"
    assert found.output.startswith(headline)
    for title in ("Where the time went", "Idle", "Devices", "Steps", "Kernels", "Roofline", "Communication", "What wo"):
        assert f"\n{title}" in found.output


def test_json_is_pythons() -> None:
    line = ("explain", EXAMPLE, "--model", "linear(4096, 11008)", "--seq", "2048", "--batch", "4", "--steps", "2..3")
    found = call(*line, "--json")
    same = suanli.explain(str(EXAMPLE), model="linear(4096, 11008)", seq="2048", batch="4", steps="2..3")
    assert json.loads(found.output) == json.loads(same.to_json())


@pytest.mark.parametrize("suffix", [".json", ".csv", ".md"])
def test_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"account{suffix}"
    assert call("explain", EXAMPLE, "-o", path).exit_code == 0
    assert "useful model FLOPs" in path.read_text(encoding="utf-8")


def test_nothing_is_written_beside_the_input(tmp_path: Path) -> None:
    trace = tmp_path / "step.json"
    shutil.copy(EXAMPLE, trace)
    assert call("explain", trace).exit_code == 0
    assert [each.name for each in tmp_path.iterdir()] == ["step.json"]


def test_kernels_as_csv(tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    assert call("explain", EXAMPLE, "--kernels-csv", path).exit_code == 0
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert [(row["table"], row["m"], row["num_gpus"], row["runs"]) for row in rows] == [
        ("gemm", "8192", "", "3"), ("gemm", "11008", "", "3"), ("nccl", "", "8", "3"),
    ]  # fmt: skip
    wrong = call("explain", EXAMPLE, "--kernels-csv", tmp_path / "kernels.parquet")
    assert (wrong.exit_code, wrong.stdout) == (2, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("/nowhere.json",), "No such file"),
        ((EXAMPLE, "--gpu", "h101"), "unknown device 'h101'"),
        ((EXAMPLE, "--seq", "9"), "the option is about a model in --seq"),
        ((EXAMPLE, "--device", "7"), "the trace has no work of device 7 in --device"),
        ((EXAMPLE, "-o", "x.doc"), "the suffix names no format"),
    ],
)
def test_mistypings_are_told_in_a_line(words: tuple[object, ...], said: str) -> None:
    found = call("explain", *words)
    assert found.exit_code == 2
    assert said in found.stderr
    assert found.stdout == ""


def test_json_errors() -> None:
    found = call("explain", "/nowhere.json", "--json")
    assert found.exit_code == 2
    assert json.loads(found.stdout)["ok"] is False


def test_traces_are_verified_where_their_data_are(tmp_path: Path) -> None:
    found = call("verify", "--only", "traces", "--data", tmp_path / "gone")
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.startswith("error: there is no such folder in --data")
    (tmp_path / "traces" / "files").mkdir(parents=True)
    found = call("verify", "--only", "traces", "--data", tmp_path)
    assert found.exit_code == 1
    assert "samples read or refused: 0 of 45" in found.output
    assert f"traces: {tmp_path}" in found.output


@pytest.mark.parametrize(
    ("kernels", "output", "said"),
    [
        (
            "k.csv",
            "k.csv",
            "the report and the kernels need a file each in --kernels-csv; got 'k.csv'. Name another file.",
        ),
        ("k.txt", "k.csv", "kernels are written as CSV in --kernels-csv; got 'k.txt'; expected a file ending in .csv."),
    ],
)
def test_files_are_checked_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernels: str, output: str, said: str
) -> None:
    monkeypatch.setattr("suanli.api.explain", lambda *_, **__: pytest.fail("the trace was read"))
    found = call("explain", EXAMPLE, "--kernels-csv", tmp_path / kernels, "-o", tmp_path / output)
    assert found.exit_code == 2
    assert found.stderr == f"error: {said}\n"
    assert not list(tmp_path.iterdir())
