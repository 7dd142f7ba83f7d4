"""`calibrate` as typed: a file of runs to a stack that `layout` takes; the profiles that ship; faults by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import suanli
from suanli.errors import InputError
from suanli.report.files import write_result

pytest.importorskip("numpy")
HEAD = "run,model,gpu,gpus,tp,gbs,mbs,seq,zero,recompute,sp,step_s"
ROWS = (
    "a,llama-3.1-8b,h100-sxm,8,2,64,1,8192,1,none,1,6.8", "b,llama-3.1-8b,h100-sxm,16,2,128,1,8192,1,none,1,6.9",
    "c,llama-3.1-8b,h100-sxm,16,4,128,2,8192,1,full,1,9.7", "d,llama-3.1-8b,h100-sxm,8,2,64,2,4096,1,none,1,3.1",
)  # fmt: skip
ASKED = {"gpu": "h100-sxm", "gpus": 8, "global_batch": 64, "seq": 8192, "pin": "cp=1,pp=1", "top": 1}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return put(tmp_path, HEAD, *ROWS)


def put(folder: Path, *lines: str) -> Path:
    path = folder / "runs.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def said(*given: Any, **more: Any) -> list[str]:
    with pytest.raises(InputError) as problem:
        suanli.calibrate(*given, **more)
    return str(problem.value).splitlines()


def test_a_stack_of_ones_own_is_read_by_layout(runs: Path, tmp_path: Path) -> None:
    found = suanli.calibrate(runs, stack="nemo", name="mine")
    assert found.narrower_fraction > 0 and found.mean_error_held_out_fraction < found.mean_error_before_fraction
    target = tmp_path / "mine.toml"
    write_result(found, target)
    plain = suanli.layout("llama-3.1-8b", **ASKED, stack="nemo")
    for given in (str(target), target):
        plan = suanli.layout("llama-3.1-8b", **ASKED, stack=given)
        assert plan.stack == "mine" and plan.inputs["stack"] == str(target)
        (low, high), (lower, higher) = (each.layouts[0].step_time_interval_s for each in (plan, plain))
        assert high / low < higher / lower  # the interval of the ranking is the narrower one
        assert plan.layouts[0].memory_bytes == plain.layouts[0].memory_bytes  # what is kept is the base's
        assert any(source.startswith("profile: 4 own runs of runs.csv, ") for source in plan.sources)
    again = suanli.calibrate(runs, stack=target)
    assert again.base == "mine" and again.profile.base == "nemo" and again.mean_error_before_fraction < 0.05


def test_what_was_not_told_by_a_run_is_said_where_it_matters(runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.toml"
    write_result(suanli.calibrate(runs, stack="nemo", name="mine"), target)
    asked = {**ASKED, "pin": "pp=4,vpp=2,cp=2,tp=1", "global_batch": 8}
    found = suanli.layout("llama-3.1-8b", **asked, stack=target)
    assert any(each.startswith("no own run of mine tells ") and each.endswith(": as in nemo") for each in
               found.extrapolates)  # fmt: skip
    other = suanli.layout("llama-3.1-8b", **{**ASKED, "gpu": "b200"}, stack=target)
    assert "no run of mine on b200 bf16 was seen, only on h100-sxm bf16" in other.extrapolates


def test_inputs_sources_and_notes_say_what_was_taken(runs: Path) -> None:
    found = suanli.calibrate(runs)
    assert found.inputs == {"file": str(runs), "assumed": {"stack": "megatron-core"}}
    assert found.notes == (
        "assumed: stack megatron-core, pp 1, cp 1, ep 1, etp 1, vpp 1, dtype bf16", "links: hgx-h100, infiniband",
    )  # fmt: skip
    assert found.sources[0].startswith("runs: runs.csv, sha256 ") and len(found.sources[0]) == 23 + 64
    assert found.name == "megatron-core-own"
    assert found.profile.command == "suanli calibrate runs.csv"


def test_the_json_has_its_keys_and_no_inner_ones(runs: Path) -> None:
    found = json.loads(suanli.calibrate(runs, stack="nemo").to_json())
    assert (found["ok"], found["kind"]) == (True, "calibrate")
    assert set(found["result"]) == {
        "name", "base", "device", "numbers", "runs", "half_width_before", "half_width_after", "narrower_fraction",
        "mean_error_before_fraction", "mean_error_held_out_fraction", "extrapolates", "warnings",
    }  # fmt: skip
    assert {"id", "step_s", "before_s", "held_out_s", "fits"} < set(found["result"]["runs"][0])


def test_a_board_that_is_left_open_is_the_sxm_one_and_said(tmp_path: Path) -> None:
    found = suanli.calibrate(put(tmp_path, HEAD, *(row.replace("h100-sxm", "H100-80GB") for row in ROWS)), stack="nemo")
    assert found.device == "h100-sxm bf16" and "H100-80GB is taken to be h100-sxm" in found.notes


def test_device_and_links_by_option(tmp_path: Path) -> None:
    rows = [row.replace("h100-sxm,", "") for row in ROWS]
    path = put(tmp_path, HEAD.replace("gpu,", "", 1), *rows)
    found = suanli.calibrate(path, stack="nemo", gpu="h100-sxm", fabric="8x450GB/s+200GB/s")
    assert found.notes[-1] == "links: 8 × h100-sxm, infiniband"
    assert found.profile.command == ("suanli calibrate runs.csv --stack nemo --gpu h100-sxm --fabric 8x450GB/s+200GB/s")
    assert said(path, stack="nemo")[0] == (
        "no device in runs.csv, line 2, gpu; expected a column gpu, or --gpu h100-sxm."
    )


# --- faults -------------------------------------------------------------------------------------------------------


def test_fewer_than_three_runs_are_refused(tmp_path: Path) -> None:
    assert said(put(tmp_path, HEAD, *ROWS[:2]), stack="nemo") == [
        "too few step times to fit to and to judge by in runs.csv; got 2; expected 3 or more, best of several layouts."
    ]


def test_faults_of_rows_and_options_come_together(tmp_path: Path) -> None:
    path = put(tmp_path, HEAD, ROWS[0].replace("llama-3.1-8b", "lama-3.1-8b"), ROWS[1].replace("h100-sxm", "h1000"),
               ROWS[2].replace("16,4,128", "16,4,127"), ROWS[3])  # fmt: skip
    found = said(path, stack="nemo", name="")
    assert [line.split(";")[0] for line in found] == [
        "not a name in --name",
        "unknown model 'lama-3.1-8b' in runs.csv, line 2, MODEL",
        "unknown device 'h1000' in runs.csv, line 3, gpu",
        "the global batch is not whole micro-batches in runs.csv, line 4, global_batch",
    ]


def test_a_layout_that_cannot_be_is_a_fault_of_its_line(tmp_path: Path) -> None:
    path = put(tmp_path, HEAD, *ROWS[:3], ROWS[3].replace("8,2,64", "24,3,64"))
    assert all("runs.csv, line 5" in line for line in said(path, stack="nemo"))


def test_a_schedule_of_an_open_layout_is_refused(tmp_path: Path) -> None:
    rows = [f"{row},1f1b" for row in ROWS[:3]] + [ROWS[3].replace("64,2,4096", "64,0,4096") + ",zero-bubble"]
    assert said(put(tmp_path, HEAD + ",schedule", *rows), stack="nemo") == [
        "a schedule is of a known micro-batch and interleaving in runs.csv, line 5, schedule; got zero-bubble; "
        "expected micro_batch and vpp above 0."
    ]


def test_runs_of_two_devices_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path, HEAD, *ROWS[:3], ROWS[3].replace("h100-sxm", "b200"))
    assert said(path, stack="nemo") == [
        "runs of several devices, dtypes or releases; got b200 bf16, h100-sxm bf16; expected one of each: calibrate "
        "them one after another."
    ]


NOTHING = [
    ({}, ["own runs stand in a file in FILE.csv; expected the path of a CSV file, or --shipped STACK."]),
    ({"stack": "nemoo", "rows": "x"}, [
        "rows are added to those that ship in --rows; expected --shipped STACK too.",
        "own runs stand in a file in FILE.csv; expected the path of a CSV file, or --shipped STACK.",
        "unknown stack 'nemoo' in --stack",
    ]),
    ({"shipped": "nemoo", "stack": "nemo"}, [
        "the profiles that ship are fitted to the package's runs in --stack; got 'nemo'; expected --shipped alone, or "
        "with --rows FILE.csv.",
        "unknown stack 'nemoo' in --shipped",
    ]),
    ({"shipped": "all", "rows": "nothing.csv"}, [
        "rows are of one stack in --rows; got --shipped all; expected --shipped STACK.",
        "the file cannot be opened: No such file or directory in nothing.csv. Check the path.",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("given", "lines"), NOTHING)
def test_requests_that_cannot_be(given: dict[str, Any], lines: list[str]) -> None:
    found = said(**given)
    assert len(found) == len(lines)
    assert all(line.startswith(start) for line, start in zip(found, lines, strict=True))


# --- what ships ---------------------------------------------------------------------------------------------------


def test_a_shipped_profile_is_fitted_again(tmp_path: Path) -> None:
    found = suanli.calibrate(shipped="llama3")
    assert [each.stack for each in found.stacks] == ["llama3"]
    assert found.largest_difference_fraction < 1e-4
    assert found.inputs == {"shipped": "llama3"}
    target = tmp_path / "profiles.toml"
    write_result(found, target)
    from suanli.catalog.profiles import find_profile, prior_profile, read_profiles

    read = read_profiles(target.read_text(encoding="utf-8"), "p", {"llama3": prior_profile("llama3")}, {})["llama3"]
    assert read.numbers == find_profile("llama3").numbers and read.command == "suanli calibrate --shipped llama3"


def test_rows_of_a_file_join_those_that_ship(tmp_path: Path) -> None:
    row = "x,llama-3.1-405b,h100-sxm,16384,8,2048,1,8192,1,none,1,7.5"
    path = put(tmp_path, HEAD + ",pp,vpp", *[f"{row},16,8"] * 3)
    found = suanli.calibrate(shipped="llama3", rows=path)
    assert (found.stacks[0].rows, found.stacks[0].own_rows) == (5, 3)
    assert found.stacks[0].sources == ("2407.21783 T4", "own runs")
    assert found.largest_difference_fraction > 0.005
