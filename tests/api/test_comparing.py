"""`suanli.compare` and `count(like=…)`: answers, rows with reasons, and errors word by word."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

import suanli
from suanli.api.compared import compare_model
from suanli.cli.main import app
from suanli.errors import InputError, SuanliError

torch = pytest.importorskip("torch")

MODULES = """
import torch
from torch import nn

def net():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4, bias=False)), torch.zeros(3, 8)

def broken():
    raise ValueError("no net today")
"""
NET = 2 * 3 * (8 * 16 + 16 * 4)


@pytest.fixture
def package(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "compared_nets.py").write_text(MODULES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return "torch:compared_nets"


def message(request: Any) -> str:
    with pytest.raises(SuanliError) as caught:
        request()
    return str(caught.value)


# --- formulas alone: no torch, no process -------------------------------------------------------------------------


def test_formulas_of_a_preset() -> None:
    found = suanli.compare("gpt2", seq=128, tools="megatron, 6nd", time_limit="1s", device="meta")
    assert [each.name for each in found.counters] == ["megatron", "6nd"]
    assert all(each.phase == "train" and each.unexplained == 0 for each in found.counters)
    assert found.counters[1].flops == 6 * 128 * 124_439_808
    assert found.right[1].flops == 3 * 32_228_179_968  # no first input's gradient is left out: it is looked up
    assert found.convention == "full"
    assert found.inputs["assumed"]["memory_limit"] == "8 GiB"


def test_a_preset_without_a_module_is_compared_by_formula() -> None:
    """A paper describes shapes and holds no torch module."""
    found = suanli.compare("gopher-417m", tools="calflops,6nd")
    tool, formula = found.counters
    assert tool.reason == "gopher-417m is described by its paper, so there is no module to run"
    assert formula.flops == 6 * 2048 * found.params
    assert (found.right[0].trace, found.right[0].note) == (None, tool.reason)
    assert f"not run: {tool.reason}" in found.notes


@pytest.mark.torch
def test_a_layer_expression_is_run() -> None:
    found = suanli.compare("linear(64, 32) -> relu", seq=4, batch=2, tools="flop_counter_mode,6nd")
    assert found.counters[0].flops == 2 * 8 * 64 * 32
    assert found.right[0].equal
    assert found.counters[1].flops == 6 * 8 * (64 * 32 + 32)


@pytest.mark.torch
def test_scans_that_formula_and_trace_count_differently() -> None:
    """Two FLOPs fewer a state and position than recurrences; 3 padded positions of a kernel of 4 in 24 layers."""
    found = suanli.compare("mamba-130m", seq=16, tools="flop_counter_mode")
    right = found.right[0]
    positions = 24 * 1536 * 16  # layers, width of the scan, tokens
    assert right.trace - right.formula == -positions * 16 * 2 + 24 * 2 * 4 * 1536 * 3
    assert not right.equal
    assert right.note == (
        "the formula takes scans as recurrences, the trace runs transformers' fallback (-18,874,368), padding of "
        "convolutions (+884,736)"
    )


# --- tools --------------------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_a_factory_through_torch_s_own_counter(package: str) -> None:
    titles: list[tuple[str, int, int]] = []
    found = suanli.compare(
        f"{package}:net", tools=["flop_counter_mode", "palm"], progress=lambda *told: titles.append(told)
    )
    tool, formula = found.counters
    assert (found.right[0].trace, found.right[0].formula, found.right[0].equal) == (NET, None, None)
    assert (tool.flops, tool.ratio, tool.difference, tool.unexplained) == (NET, 1.0, 0, 0)
    assert tool.explanation == "the same"
    assert tool.version == torch.__version__
    assert tool.device == "meta"
    assert formula.reason == "a formula needs a config, a preset or a layer expression"
    assert found.params == 8 * 16 + 16 + 16 * 4
    assert titles == [("the model itself", 0, 1), ("torch FlopCounterMode", 0, 1), ("", 1, 1)]


@pytest.mark.torch
def test_a_live_module_is_left_as_it_was() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    found = suanli.compare(net, input="2x8", tools="flop_counter_mode")
    assert found.counters[0].flops == 2 * 2 * 8 * 4
    assert net.training
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    assert not any(hasattr(child, "__flops__") for child in net.modules())


@pytest.mark.torch
def test_a_module_that_cannot_be_sent_is_told() -> None:
    class Local(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x

    said = message(lambda: suanli.compare(Local(), input="1x2", tools="flop_counter_mode"))
    assert said.startswith("the module cannot be sent to another process in MODEL; got ")
    assert said.endswith("expected torch:package.module:factory.")


@pytest.mark.torch
def test_a_factory_that_fails(package: str) -> None:
    said = message(lambda: suanli.compare(f"{package}:broken", tools="flop_counter_mode"))
    assert said == ("the factory fails: ValueError: no net today in MODEL; got 'torch:compared_nets:broken'.")


def test_tools_that_are_not_installed_are_rows(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setattr(sys.modules["suanli.compare.session"], "find_spec", lambda name: None)
    found = suanli.compare(f"{package}:net", tools="calflops,thop")
    assert [each.reason for each in found.counters] == [
        "not installed: pip install calflops accelerate", "not installed: pip install thop",
    ]  # fmt: skip


# --- like ---------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    ("tool", "reported"),
    [("deepspeed", NET + 768 + 48), ("deepspeed@cpu", NET + 48), ("ptflops", 576 // 3 + 384 + 16 * 3 // 3)],
)  # fmt: skip
def test_like_of_a_factory(package: str, tool: str, reported: int) -> None:
    """DeepSpeed: a biased layer twice on meta, 48 of ReLU. ptflops divides its modules by the batch of 3."""
    found = suanli.count(f"{package}:net", like=tool)
    if tool == "ptflops":
        modules, functions = (
            3 * (8 * 16 + 16) + 3 * 16 * 4 + 48,
            3 * 8 * 16 + 48,
        )  # layers and ReLU; mm of the kernel, relu
        reported = modules // 3 + functions
    assert found.reported == reported
    assert found.unexplained == 0
    assert sum(cause.flops for cause in found.causes) == found.flops - NET


def test_like_of_a_formula_needs_no_torch() -> None:
    found = suanli.count("bert-base", seq=128, like="Megatron")
    assert (found.flops, found.phase, found.device) == (84_138_393_600, "train", None)
    assert found.to_dict()["kind"] == "count"


# --- errors -------------------------------------------------------------------------------------------------------

COUNTERS = (
    "flop_counter_mode, calflops, deepspeed, ptflops, ptflops-aten, thop, fvcore, torchinfo, torchprofile, megatron, "
    "electra, hf-trainer, palm, 6nd"
)
EVERY = COUNTERS.replace("torchprofile, ", "torchprofile, torchsummary, torchstat, ")
NO_COUNTER = f"expected names with commas between them, or a list of names. Leave it out for all. Counters: {EVERY}."
ERRORS = [
    (
        lambda: suanli.count("gpt2", like="calflop"),
        f"unknown counter 'calflop' in --like; expected one of 14 known; nearest: calflops, ptflops, ptflops-aten. "
        f"Counters: {COUNTERS}.",
    ),
    (
        lambda: suanli.count("gpt2", like="thop@gpu"),
        "unknown device 'gpu' in --like; expected one of 2 known; nearest: cpu. "
        "Write it behind the name: calflops@cpu.",
    ),
    (
        lambda: suanli.count("gpt2", like="palm@cpu"),
        "unknown device 'cpu' in --like; expected one of 2 known; nearest: cpu. A formula has no device.",
    ),
    (
        lambda: suanli.count("gpt2", like="palm", convention="full", dtype="fp8"),
        "--like counts by the other counter's rules in --dtype; got 'fp8'.\n"
        "--like counts by the other counter's rules in --convention; got 'full'.",
    ),
    (
        lambda: suanli.count("gpt2", like="palm", phase="forward"),
        "PaLM formula counts another phase in --phase; got forward; expected train.",
    ),
    (
        lambda: suanli.compare("gpt2", device="tpu", tools="palm"),
        "unknown device 'tpu' in --device; expected one of 3 known; nearest: cpu. Devices: auto, meta, cpu.",
    ),
    (
        lambda: suanli.compare("gpt2", time_limit="soon", tools="palm"),
        "not a number with a unit in --time-limit; got 'soon'; expected a number like 6.72s.",
    ),
    (
        lambda: suanli.compare("gpt2", time_limit=0, memory_limit="0", tools="palm"),
        "the time limit is not possible in --time-limit; got 0; expected more than 0 s.\n"
        "the memory limit is not possible in --memory-limit; got '0'; expected at least 1 B.",
    ),
    (
        lambda: suanli.compare("gpt2", time_limit="1e30s", memory_limit="1e30GB", tools="palm"),
        "the time limit is not possible in --time-limit; got '1e30s'; expected at most 30 days (30d).\n"
        "the memory limit is not possible in --memory-limit; got '1e30GB'; expected at most 1 PiB.",
    ),
    (
        lambda: suanli.compare("gpt2", tools=3),
        "these are no names in --tools; got 3; expected names with commas between them, or a list of names.",
    ),
    (
        lambda: suanli.compare("gpt2", tools=""),
        f"no counter is named in --tools; got ''; {NO_COUNTER}",
    ),
    (
        lambda: suanli.compare("gpt2", tools=[]),
        f"no counter is named in --tools; got []; {NO_COUNTER}",
    ),
    (
        lambda: suanli.compare("gpt2", tools="calflop,palm,megatro,calflop"),
        f"unknown counter 'calflop' in --tools; expected one of 16 known; nearest: calflops, ptflops, ptflops-aten. "
        f"Counters: {EVERY}.\n"
        f"unknown counter 'megatro' in --tools; expected one of 16 known; nearest: megatron, electra. "
        f"Counters: {EVERY}.",
    ),
    (
        lambda: suanli.compare("gpt2", input="foo", tools="palm"),
        "a preset, a config or an expression says itself what it is run on in --input; got 'foo'. Leave it out; --seq "
        "and --batch size the run.",
    ),
    (
        lambda: suanli.count("gpt2", input=["foo"], like="thop"),
        "a preset, a config or an expression says itself what it is run on in --input; got ['foo']. Leave it out; "
        "--seq and --batch size the run.",
    ),
    (
        lambda: suanli.compare("model.onnx", tools="palm"),
        "no torch module that other counters could run in MODEL; got 'model.onnx'; expected a preset, a config, a "
        "hub id, or torch:package.module:factory.",
    ),
    (
        lambda: suanli.count("resnet-50", like="electra"),
        "the formula is for an encoder or a decoder of text; resnet-50 is none that it describes in MODEL; got "
        "'resnet-50'.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "expected"), ERRORS, ids=range(len(ERRORS)))
def test_errors(request_: Any, expected: str) -> None:
    assert message(request_) == expected


def test_every_fault_at_once() -> None:
    with pytest.raises(InputError) as caught:
        suanli.compare("gpt2", seq="x", tools="frobnicate", device="tpu")
    assert len(caught.value.faults) == 3


# --- the command --------------------------------------------------------------------------------------------------


def test_the_command_gives_what_python_gives() -> None:
    done = CliRunner().invoke(
        app, ["compare", "gpt2", "--seq", "128", "--tools", "palm,6nd", "--device", "meta", "--json"]
    )
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    same = suanli.compare("gpt2", seq="128", tools="palm,6nd", device="meta").to_dict()
    for each in (found, same):  # seconds and bytes of the record are not part of the answer
        assert each["result"]["counters"][0]["name"] == "palm"
    assert found == same
    assert set(found["result"]["counters"][0]) >= {"name", "params", "flops", "seconds", "explanation"}


def test_the_command_on_screen_and_as_files(tmp_path: Any) -> None:
    words = ["compare", "gpt2", "--seq", "128", "--tools", "electra", "--device", "meta"]
    shown = CliRunner().invoke(app, words).stdout
    assert "backward taken as once the forward" in shown
    assert "8 smaller causes" not in shown
    file = tmp_path / "found.csv"
    assert CliRunner().invoke(app, [*words, "-o", str(file)]).exit_code == 0
    assert "counters[].params [parameters],counters[].reported" in file.read_text(encoding="utf-8")


def test_the_command_says_what_is_wrong() -> None:
    done = CliRunner().invoke(app, ["count", "gpt2", "--like", "megatro"])
    assert done.exit_code == 2
    assert "nearest: megatron" in done.stderr
    assert compare_model.__doc__


def test_what_a_time_limit_does_not_hold_is_said() -> None:
    from suanli.api.compared import _limit_note
    from suanli.api.request import Request

    request, session = Request(), object()
    assert _limit_note(request, session) == ()  # type: ignore[arg-type]  nothing was typed
    request.time_limit("1ms")
    assert _limit_note(request, None) == ()  # no counter ran
    assert _limit_note(request, session) == (  # type: ignore[arg-type]
        "--time-limit holds for each counter's own run: loading torch and the model is not counted in it",
    )
