"""Hostile factories through the command: one clear error, exit code 2, no traceback; it does not end with them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from suanli.cli.main import app

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

MODULE = """
import sys, time
import torch

class Odd(BaseException):
    pass

class Asleep(torch.nn.Module):
    def forward(self, x):
        time.sleep(60)

class Ends(torch.nn.Module):
    def forward(self, x):
        sys.exit(0)

def good(): return torch.nn.Linear(3, 3), torch.zeros(2, 3)
def leaves(): sys.exit(0)
def odd(): raise Odd("no")
def raises(): raise ValueError("not today")
def number(): return 3
def spins():
    while True: pass
def asleep(): return Asleep()
def ends(): return Ends()
def unsolved(): return Unsolved(), torch.eye(4)

class Unsolved(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.inv(x @ x)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "factories_of_the_test.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "spins_when_imported.py").write_text("while True: pass", encoding="utf-8")
    (tmp_path / "ends_when_imported.py").write_text("import sys; sys.exit(0)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def run(*args: str) -> tuple[int, str]:
    start = time.monotonic()
    result = CliRunner().invoke(app, ["count", *args, "--time-limit", "0.5s"])
    assert time.monotonic() - start < 20
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


OWN = "factories_of_the_test"
REFUSED = [
    (f"torch:{OWN}:leaves", "the factory fails: SystemExit: 0"), (f"torch:{OWN}:odd", "the factory fails: Odd: no"),
    (f"torch:{OWN}:raises", "the factory fails: ValueError: not today"),
    (f"torch:{OWN}:number", "the factory gives no torch module"),
    (f"torch:{OWN}:spins", "the factory still runs after 0.5 s"),
    (f"torch:{OWN}:asleep", "the module still runs after 0.5 s"), (f"torch:{OWN}:ends", "SystemExit: 0"),
    (f"torch:{OWN}:gone", "has no gone"), ("torch:spins_when_imported:f", "still runs after 0.5 s"),
    ("torch:ends_when_imported:f", "cannot be imported: SystemExit"),
]  # fmt: skip
PROGRAMS = [
    (f"{kind}:{OWN}:{name}", words)
    for kind in ("jax", "keras")
    for name, words in (
        ("leaves", "the factory raised SystemExit"), ("odd", "the factory raised Odd"),
        ("raises", "the factory raised ValueError"), ("spins", "the factory still runs after 0.5 s"),
        ("number", "the factory returned no"), ("gone", "has no gone"),
    )
]  # fmt: skip


@pytest.mark.parametrize(("model", "words"), REFUSED, ids=[model for model, _ in REFUSED])
def test_torch_factories(model: str, words: str) -> None:
    code, text = run(model, "--input", "2x3")
    assert code == 2
    assert words in " ".join(text.split()) and text.startswith("error: ") and "Traceback" not in text


@pytest.mark.parametrize(("model", "words"), PROGRAMS, ids=[model for model, _ in PROGRAMS])
def test_programs(model: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if model.startswith("keras"):
        monkeypatch.setenv("KERAS_BACKEND", "torch")
    pytest.importorskip(model.partition(":")[0])
    code, text = run(model)
    assert code == 2
    assert words in " ".join(text.split()) and "Traceback" not in text


def test_a_good_one_is_counted_and_what_has_no_formula_fails_only_where_asked() -> None:
    assert run(f"torch:{OWN}:good")[0] == 0
    code, text = run(f"torch:{OWN}:unsolved")
    assert code == 0 and "LOWER BOUND" in text and "aten.linalg_inv_ex.default" in text and "4×4" in text
    assert run(f"torch:{OWN}:unsolved", "--strict")[0] == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((f"torch:{OWN}:good", "--time-limit", "0"), "the time limit is not possible"),
        ((f"torch:{OWN}:good", "--time-limit", "soon"), "--time-limit"),
        (("gpt2", "--trace", "--time-limit", "1e30s"), "got '1e30s'; expected at most 30 days (30d)"),
        (("gpt2", "--trace", "--time-limit", "2592001s"), "the time limit is not possible"),
        (("gpt2", "--time-limit", "3s"), "nothing is run that a time limit could stop"),
    ],
)
def test_time_limits_that_are_none(args: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(app, ["count", *args])
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
