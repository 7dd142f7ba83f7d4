"""Results handed from verb to verb by files on the command line: `mfu` → `scale`, `goodput` → `train`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import suanli
from suanli.cli.main import app


def call(*words: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == code, found.output
    return found.output


def result(*words: str) -> Any:
    return json.loads(call(*words, "--json"))["result"]


def test_runs_measured_apart_are_one_series(tmp_path: Path) -> None:
    """8,000 tokens/s a GPU, then 7,600: 95 %."""
    files = []
    for gpus, rate in ((8, 64_000), (16, 121_600)):
        files.append(str(tmp_path / f"{gpus}.json"))
        call("mfu", "llama-3-8b", "--gpu", "h100-sxm", "--gpus", str(gpus), "--seq", "8192", "--tokens-per-second",
             str(rate), "-o", files[-1])  # fmt: skip
    found = result("scale", *files)
    assert (found["series"], found["sizes"][-1]["ratio"]) == ("results of mfu", pytest.approx(0.95))
    assert result("scale", *files, "--global-batch", "64")["kind"] == "strong"


def test_a_planned_goodput_goes_into_a_plan(tmp_path: Path) -> None:
    path = str(tmp_path / "goodput.json")
    call("goodput", "--gpus", "16384", "--failures", "llama-3-405b", "--restart", "10min", "--checkpoint-save", "5s",
         "-o", path)  # fmt: skip
    run = ("train", "llama-3.1-405b", "--tokens", "15.6T", "--gpu", "h100-sxm", "--gpus", "16384", "--mfu", "38%..43%")
    by_file = result(*run, "--goodput", path)
    short = result(*run, "--failures", "llama-3-405b", "--restart", "10min", "--checkpoint-save", "5s")
    assert by_file["goodput"] == pytest.approx(0.9194, abs=5e-5)
    for name in ("goodput", "gpu_hours_paid_interval", "days_interval", "spreads"):
        assert by_file[name] == short[name]


def test_the_command_line_says_what_python_says() -> None:
    words = (
        "train",
        "llama-3.1-405b",
        "--tokens",
        "15.6T",
        "--gpu",
        "h100-sxm",
        "--gpu-hours",
        "30.84M",
        "--seq",
        "8192",
    )
    found = suanli.train("llama-3.1-405b", tokens="15.6T", gpu="h100-sxm", gpu_hours="30.84M", seq="8192")
    assert result(*words) == found.to_dict()["result"]


def test_every_fault_is_named_and_the_exit_code_is_2() -> None:
    said = call("train", "llama-3-8b", "--tokens", "1T", "--gpu", "h100-sxm", "--failures", "llama-3-405b", code=2)
    assert [option for option in ("--gpus N", "--checkpoint-save 60s", "--restart 60s") if option not in said] == []
    said = call("scale", "nowhere.json", "nowhere-either.json", code=2)
    assert said.splitlines() == [
        f"error: the file cannot be opened: No such file or directory in {name}. Check the path."
        for name in ("nowhere.json", "nowhere-either.json")
    ]
