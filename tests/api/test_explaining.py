"""`suanli.explain` from Python: what it answers, what it refuses, word by word."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from made_trace import EXAMPLE, as_text, training_trace

import suanli
from suanli.errors import InputError, UnreadableFileError
from suanli.nouns.result import Result

MODEL = {"model": "linear(4096, 11008)", "seq": 2048, "batch": 4}


def written(folder: Path, name: str = "t.json", **more: Any) -> Path:
    path = folder / name
    path.write_text(as_text(training_trace(**more)), encoding="utf-8")
    return path


def test_keys_are_the_contract() -> None:
    found = suanli.explain(EXAMPLE).to_dict()
    assert (found["ok"], found["kind"], found["convention"]) == (True, "explain", None)
    keys = (
        "steps", "account", "kernels", "collectives", "ranks", "attributed_fraction", "advice", "warnings", "devices",
        "roofline",
    )  # fmt: skip
    assert set(keys) <= set(found["result"])
    assert set(found["result"]["account"][0]) == {"entry", "seconds", "fraction"}
    assert found["result"]["ranks"] == [
        {"rank": 0, "path": str(EXAMPLE), "world_size": 8, "devices": 1, "seconds": pytest.approx(11185e-6),
         "idle_fraction": pytest.approx(0.1551, abs=1e-4)}
    ]  # fmt: skip
    json.loads(suanli.explain(EXAMPLE).to_json())  # no NaN, no infinity


def test_figures_by_hand() -> None:
    """8192 · 4096 · 11008 · 2 FLOPs forward, as many for the weight's gradient, at 989.4 TFLOP/s; three steps."""
    found = suanli.explain(EXAMPLE).result
    flops = 3 * 2 * 2 * 8192 * 4096 * 11008
    entries = {each.entry: each.seconds for each in found.account}
    assert entries["useful model FLOPs"] == pytest.approx(flops / 989.4e12)
    assert entries["matmul inefficiency"] == pytest.approx(3 * 2250e-6 - flops / 989.4e12)
    assert entries["non-matmul kernels"] == pytest.approx(3 * (130 + 200 + 150) * 1e-6)
    assert entries["exposed communication"] == pytest.approx(3 * 260e-6)
    assert sum(entries.values()) == pytest.approx(found.peak_s, rel=1e-12)
    assert sum(step.flops for step in found.steps) == pytest.approx(flops)


def test_a_model_agrees_with_its_trace() -> None:
    result = suanli.explain(EXAMPLE, **MODEL)
    used = result.model
    assert (used.phase, used.seq, used.batch, used.gpus, used.steps) == ("train", 2048, 4, 1, 3)
    assert used.check.agrees is True
    assert used.mfu == pytest.approx(used.mfu_attributed)
    assert used.mfu == pytest.approx(used.step_flops / (used.step_s * 989.4e12))
    assert result.convention == "causal"
    assert result.notes[0] == "assumed: convention causal, phase train (a backward pass in the trace), gpus 1"


def test_a_wrong_length_is_seen() -> None:
    check = suanli.explain(EXAMPLE, **{**MODEL, "seq": 4096}).model.check
    assert (check.agrees, check.ratio) == (False, pytest.approx(0.5))
    assert check.message.endswith("less than the model needs. Check --seq, --batch and how many devices share a step")


def test_convention_and_dtype_are_the_users() -> None:
    result = suanli.explain(EXAMPLE, **MODEL, convention="full", dtype="fp8", gpus=2)
    assert (result.convention, result.model.dtype, result.model.gpus) == ("full", "fp8", 2)
    assert result.model.peak_flop_per_s == 1978.9e12
    assert result.model.check.ratio == pytest.approx(2)


def test_a_device_named_stands_above_the_file() -> None:
    (device,) = suanli.explain(EXAMPLE, gpu="h200-sxm").devices
    assert (device.catalogue, device.name) == ("h200-sxm", "NVIDIA H100 80GB HBM3")


def test_parts_of_a_trace() -> None:
    result = suanli.explain(EXAMPLE, steps="1..2", device=0)
    assert [step.name for step in result.steps] == ["ProfilerStep#5", "ProfilerStep#6"]
    assert result.peak_s == pytest.approx(2 * 4000e-6)
    assert result.notes == ("steps, account and model are of the steps asked for; all else is of the whole window",)
    assert suanli.explain(EXAMPLE, steps=[1, 3], **MODEL).model.steps == 2


def test_compared_and_against(tmp_path: Path) -> None:
    answer = {"kind": "layout", "result": {"layouts": [{"tp": 1, "account": [{"entry": "matmul", "seconds": 1e-3}]}]}}
    plan = tmp_path / "layout.json"
    plan.write_text(json.dumps(answer), encoding="utf-8")
    result = suanli.explain(written(tmp_path, slower=1.2), compare=EXAMPLE, against=plan)
    # products are 0.2 × 2250 µs slower a step
    rows = {row.entry: row.difference for row in result.compared.rows}
    assert rows["matmul inefficiency"] == pytest.approx(450e-6)
    planned = {row.entry: (row.first, row.second) for row in result.against.rows}
    assert planned["products"] == pytest.approx((1e-3, 2700e-6))
    for found in (result.compared, result.against):
        assert sum(row.difference for row in found.rows) == pytest.approx(found.difference_s)
    assert result.notes == ("against: tp1 of layout.json", "compared with step.json, which stands first")
    again = suanli.explain(EXAMPLE, compare=EXAMPLE)
    assert again.result.compared.difference_s == 0
    assert again.notes == ("compared with step.json, the same file, which stands first",)


NO_MODEL = "the option is about a model in --{}; got {}. Add --model."


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seq": 5}, NO_MODEL.format("seq", 5)),
        ({"dtype": "bf16"}, NO_MODEL.format("dtype", "'bf16'")),
        ({"steps": "4"}, "the trace has no step 4 in --steps; got 4; expected 1 to 3."),
        ({"steps": "0"}, "these are no numbers in --steps; got '0'; expected numbers from 1, like 1..3 or 1,4."),
        ({"steps": "3..1"}, "these are no numbers in --steps; got '3..1'; expected numbers from 1, like 1..3 or 1,4."),
        ({"steps": "1..99999999"}, "these are no numbers in --steps; got '1..99999999'; expected numbers from 1, like "
         "1..3 or 1,4."),
        ({"device": "x"}, "these are no numbers in --device; got 'x'; expected numbers from 0, like 0..2 or 0,3."),
        ({"device": 3}, "the trace has no work of device 3 in --device; got '3'; expected 0."),
        ({"engine": "ray"}, "the option is for many ranks in --engine; got 'ray'. Give a folder, or several files."),
        ({"cache": "c"}, "the option is for many ranks in --cache; got 'c'. Give a folder, or several files."),
        ({"cache": Path("c")}, "the option is for many ranks in --cache; got 'c'. Give a folder, or several files."),
    ],
)  # fmt: skip
def test_refusals(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as problem:
        suanli.explain(EXAMPLE, **given)
    assert str(problem.value) == said


def test_all_faults_at_once_and_before_the_trace_is_read() -> None:
    with pytest.raises(InputError) as problem:
        suanli.explain("/nowhere.json", gpu="h101", model="gpt3000", steps="x", against="/nowhere-else.json")
    codes = [fault.code for fault in problem.value.faults]
    assert len(codes) == 4
    assert "no_file" in codes  # of the plan, not of the trace


@pytest.mark.parametrize("bad", [3, None, b"x", {}, ""])
def test_what_is_no_path(bad: Any) -> None:
    with pytest.raises(InputError, match="not a file in TRACE"):
        suanli.explain(bad)


def test_an_absent_file_and_one_that_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError):
        suanli.explain(tmp_path / "gone.json")
    letter = tmp_path / "letter.json"
    letter.write_text("dear all", encoding="utf-8")
    with pytest.raises(UnreadableFileError):
        suanli.explain(letter)


def test_progress_is_told_of_long_files(tmp_path: Path) -> None:
    said: list[float] = []
    suanli.explain(written(tmp_path, steps=200), progress=said.append)
    assert said and said == sorted(said) and said[0] >= 0 and said[-1] <= 1


# --- many ranks ---------------------------------------------------------------------------------------------------


def test_many_paths_go_to_the_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Any] = []

    def explain_folder(paths: Any, **options: Any) -> Result:
        seen.append((paths, {key: value for key, value in options.items() if key != "progress"}))
        options["progress"](1, 4, "rank1")
        return Result("explain", {}, "report")

    made = types.ModuleType("suanli.api.folders")
    made.explain_folder = explain_folder  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "suanli.api.folders", made)
    said: list[float] = []
    assert suanli.explain(tmp_path, engine="ray", gpu="h100-sxm", progress=said.append).result == "report"
    suanli.explain("a.json", "b.json", progress=said.append)
    suanli.explain("a.parquet", progress=said.append)
    assert seen == [
        ([str(tmp_path)], {"engine": "ray", "gpu": "h100-sxm"}), (["a.json", "b.json"], {}), (["a.parquet"], {}),
    ]  # fmt: skip
    assert said == [0.25, 0.25, 0.25]


def test_options_of_one_file_are_refused_for_many(tmp_path: Path) -> None:
    with pytest.raises(InputError) as problem:
        suanli.explain(tmp_path, model="gpt2", steps="1")
    assert str(problem.value).splitlines() == [
        "the option is for one file in --model; got 'gpt2'. Explain the file of one rank by itself.",
        "the option is for one file in --steps; got '1'. Explain the file of one rank by itself.",
    ]
