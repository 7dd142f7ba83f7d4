"""The examples run as a user runs them, quickly, and print what they should."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 10  # it takes a third of one; a loaded machine is given time


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_CONFIG_HOME": str(tmp_path_factory.mktemp("none")),
    }
    environment.pop("FORCE_COLOR", None)
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "llama_3_1_405b.py")],
        capture_output=True, text=True, encoding="utf-8", check=False, env=environment | {"PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert time.monotonic() - started < SECONDS
    return done.stdout


def line(text: str, start: str, last: bool = False) -> str:
    """The line that begins so, its spaces made one."""
    found = [" ".join(each.split()) for each in text.splitlines() if each.strip().startswith(start)]
    assert found, f"no line begins with {start!r}"
    return found[-1 if last else 0]


def test_the_model_and_a_step(printed):
    assert line(printed, "total") == "total 405,853,388,800 405.9 B"
    # 2048 sequences × 8192 tokens × 2,523,968,372,736 FLOPs of one token
    assert line(printed, "model per token") == "model per token 2,523,968,372,736 2.524 TFLOPs"
    assert line(printed, "model  ") == f"model {2048 * 8192 * 2_523_968_372_736:,} 42.35 EFLOPs"


def test_the_rate_under_each_convention(printed):
    # 400 / 989.4
    assert line(printed, "full", last=False) == "full 152.4 28,442,100 92.22 %"
    assert line(printed, "causal") == "causal 158.5 27,342,991 88.66 %"
    for name in ("megatron", "palm-noemb", "6n-all", "hardware"):
        assert line(printed, name, last=True).endswith("%")
    assert line(printed, "MFU  ") == "MFU 40.43 % as given"


def test_ours_beside_published(printed):
    assert line(printed, "parameters").startswith("parameters 405.9 B 405.0 B +0.21 %")
    assert line(printed, "FLOPs of the run, 6N").startswith("FLOPs of the run, 6N·tokens 3.799e+25 3.8e+25 -0.03 %")
    assert line(printed, "GPU-hours at goodput").startswith("GPU-hours at goodput 90 % 31.60 M 30.84 M +2.47 %")
    assert line(printed, "goodput that").startswith("goodput that gives them 92.22 % > 90% agrees")


def test_it_fits_a_hundred_columns_and_names_its_sources(printed):
    assert max(len(each.rstrip()) for each in printed.splitlines()) <= 100
    for source in ("arXiv:2407.21783 Table 4", "model card of Llama 3.1", "costnimbus", "upper bound"):
        assert source in printed


def test_the_hints_are_commands_that_work(printed):
    from typer.testing import CliRunner

    from suanli.cli.main import app

    hints = [each.split()[1:] for each in printed.splitlines() if each.strip().startswith("suanli ")]
    assert len(hints) == 4
    for words in hints:
        assert CliRunner().invoke(app, words).exit_code == 0, words
