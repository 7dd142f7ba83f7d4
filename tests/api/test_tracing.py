"""`suanli.count` of modules: live, by the name of a factory, and by running a preset; on screen and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import suanli
from suanli.cli.main import app
from suanli.errors import InputError, SuanliError

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = pytest.mark.torch

FACTORY = """
import torch
from torch import nn

def net():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 10))

def with_inputs():
    return nn.LSTM(12, 128, batch_first=True), torch.zeros(1, 250, 12)

class Odd(nn.Module):
    def forward(self, x):
        return torch.linalg.svd(x)[1]

def values():
    raise ValueError("no net today")

def looks():
    return nn.Linear(int(torch.ones(3).sum().item()), 5)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """An importable module in the working folder, of a name of its own."""
    name = "factories_" + "".join(c if c.isalnum() else "_" for c in request.node.name)
    (tmp_path / f"{name}.py").write_text(FACTORY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return name


def ran(*words: str) -> Any:
    return CliRunner().invoke(app, ["count", *words])


def test_a_factory_and_a_shape(package: str) -> None:
    found = suanli.count(f"torch:{package}:net", input="2x3x8x8", phase="train")
    conv, linear = 2 * 2 * 64 * 8 * 27, 2 * 2 * 512 * 10
    assert found.flops.forward == conv + linear
    assert found.flops.backward == conv + 2 * linear
    assert found.params.total == 8 * 27 + 8 + 5120 + 10
    assert (found.units, found.unit, found.lower_bound) == (2, "sample", False)
    assert found.bytes.weights == 4 * found.params.total
    assert found.bytes.optimizer == 8 * found.params.total  # two moments, no master copy of fp32 weights
    assert sum(row.params for row in found.rows) == found.params.total


def test_a_factory_that_brings_its_inputs(package: str) -> None:
    assert suanli.count(f"torch:{package}:with_inputs").flops.forward == 35_840_000


def test_a_factory_that_needs_values_is_called_off_the_meta_device(package: str) -> None:
    assert suanli.count(f"torch:{package}:looks", input="1x3").flops.forward == 30


def test_the_path_is_as_it_was(package: str) -> None:
    import sys

    before = list(sys.path)
    suanli.count(f"torch:{package}:net", input="1x3x8x8")
    assert sys.path == before


def test_a_live_module() -> None:
    module = nn.Linear(3, 5)
    assert suanli.count(module, input=torch.zeros(7, 3)).flops.forward == 2 * 7 * 15
    assert suanli.count(module, input=(7, 3)).flops.forward == 2 * 7 * 15
    assert json.loads(suanli.count(module, input="7x3").to_json())["result"]["flops"]["forward"] == 210


@pytest.mark.parametrize("by", ["module", "kind", "layer", "pass"])
def test_rows_close(by: str) -> None:
    module = nn.Sequential(nn.Linear(3, 5), nn.Sequential(nn.ReLU(), nn.Linear(5, 7)))
    found = suanli.count(module, input="2x3", phase="train", by=by)
    assert sum(row.model_flops for row in found.rows) == found.flops.model
    assert sum(row.params for row in found.rows) == found.params.total == 20 + 42


def test_on_the_command_line(package: str) -> None:
    done = ran(f"torch:{package}:net", "--input", "1x3x8x8", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["result"]["flops"]["forward"] == 2 * 64 * 8 * 27 + 2 * 5120


def test_a_lower_bound_is_called_one_and_strict_fails(package: str) -> None:
    words = (f"torch:{package}:Odd", "--input", "4x4")
    done = ran(*words)
    assert done.exit_code == 0
    assert "LOWER BOUND" in done.output
    assert "aten._linalg_svd.default: 1 calls on 4×4" in done.output
    assert ran(*words, "--strict").exit_code == 1
    document = json.loads(ran(*words, "--strict", "--json").output)
    assert (document["ok"], document["result"]["lower_bound"]) == (False, True)
    assert document["uncounted"][0]["shapes"] == ["4×4"]


def test_errors_are_one_sentence(package: str) -> None:
    done = ran(f"torch:{package}:values", "--input", "1x3")
    assert done.exit_code == 2
    assert "the factory fails: ValueError: no net today" in done.output
    assert "Traceback" not in done.output
    assert ran(f"torch:{package}:net").exit_code == 2  # no input


@pytest.mark.parametrize(
    "options",
    [{"convention": "6n"}, {"convention": "megatron"}, {"phase": "decode"}, {"kv_len": 7}, {"recompute": "full"},
     {"trainable": "lora:r=4"}, {"params": "7B"}, {"by": "colour"}],
)  # fmt: skip
def test_options_that_a_trace_cannot_follow(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        suanli.count(nn.Linear(3, 5), input="1x3", **options)


def test_other_verbs_say_that_only_count_runs_a_module() -> None:
    with pytest.raises(SuanliError, match="suanli count torch:"):
        suanli.train("torch:package:factory", tokens="1T", gpu="h100-sxm", gpus=8)
    with pytest.raises(SuanliError, match="counted by running it"):
        suanli.mfu(nn.Linear(3, 5), gpu="h100-sxm", tokens_per_second=1)
