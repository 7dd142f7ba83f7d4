"""`calibrate` of kernels as typed: a CSV or a trace to a stack that `layout` takes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import suanli
from suanli.catalog.curves import find_curves
from suanli.errors import InputError, SuanliError
from suanli.nouns.trace_times import MeasuredKernels, MeasuredProduct
from suanli.report.files import write_result
from suanli.report.kernel_tables import kernels_csv

SIZES = [(4096, 4096, 4096), (8192, 4096, 14336), (8192, 28672, 4096), (16384, 6144, 4096)]
ASKED = {"gpu": "h100-sxm", "gpus": 8, "global_batch": 64, "seq": 8192, "pin": "cp=1,pp=1", "top": 1}


def put(folder: Path, factor: float = 1.4, gpu: str = "h100-sxm", name: str = "own.csv") -> Path:
    curves = find_curves("h100-sxm")
    rows = tuple(
        MeasuredProduct(gpu=gpu, dtype="bf16", m=m, n=n, k=k, runs=5, seconds=factor * float(curves.matmul_s(m, n, k)))
        for m, n, k in SIZES
    )
    path = folder / name
    path.write_text(kernels_csv(MeasuredKernels(products=rows, collectives=(), left_out={})), encoding="utf-8")
    return path


def said(*given: Any, **more: Any) -> str:
    with pytest.raises(SuanliError) as problem:
        suanli.calibrate(*given, **more)
    return str(problem.value)


def test_a_stack_from_kernels_is_one_that_layout_takes(tmp_path: Path) -> None:
    found = suanli.calibrate(put(tmp_path), stack="nemo", name="mine")
    stack = tmp_path / "mine.toml"
    write_result(found, stack)
    held = tomllib.loads(stack.read_text(encoding="utf-8"))
    assert (held["stack"]["name"], held["stack"]["base"], held["stack"]["data"]) == ("mine", "nemo", "own.csv")
    assert held["stack"]["command"] == "suanli calibrate own.csv --stack nemo"
    assert held["stack"]["devices"] == ["h100-sxm bf16"]
    before, after = (
        suanli.layout("llama-3.1-8b", stack=each, **ASKED).layouts[0].step_time_s for each in ("nemo", stack)
    )
    assert 1.02 < after / before < 1.4  # products alone are slower


def test_own_runs_go_on_from_there(tmp_path: Path) -> None:
    write_result(suanli.calibrate(put(tmp_path), stack="nemo", name="mine"), tmp_path / "mine.toml")
    runs = tmp_path / "runs.csv"
    head = "model,gpu,gpus,tp,global_batch,micro_batch,seq,zero,recompute,sp,step_s"
    rows = [f"llama-3.1-8b,h100-sxm,{n},2,{8 * n},1,8192,1,none,1,{t}" for n, t in ((8, 7.9), (16, 7.8), (32, 7.9))]
    runs.write_text("\n".join([head, *rows]), encoding="utf-8")
    again = suanli.calibrate(runs, stack=str(tmp_path / "mine.toml"))
    matmul = next(each for each in again.numbers if each.name == "matmul")
    assert matmul.before == pytest.approx(
        next(e.after for e in suanli.calibrate(put(tmp_path), stack="nemo").numbers if e.name == "matmul"), rel=1e-4
    )


def test_the_report(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    write_result(suanli.calibrate(put(tmp_path), stack="nemo"), path)
    text = path.read_text(encoding="utf-8")
    for words in ("nemo-own: nemo calibrated to 20 kernels on h100-sxm bf16", "| 1.400 |", "sides ≥ 1,024",
                  "as before: no step seen"):  # fmt: skip
        assert words in text


def test_the_device_asked_for_stands_above_the_files(tmp_path: Path) -> None:
    path = put(tmp_path, gpu="device 0")
    assert said(path) == "the file does not name the device in own.csv; expected --gpu, like h100-sxm."
    assert suanli.calibrate(path, gpu="h100-sxm").device == "h100-sxm bf16"


def test_a_device_that_is_not_known(tmp_path: Path) -> None:
    text = said(put(tmp_path, gpu="h101-sxm"))
    assert text.startswith("unknown device 'h101-sxm' in own.csv, gpu; ")
    assert text.endswith("Name the device with --gpu.")
    assert "'h102'" in said(put(tmp_path), gpu="h102")


def test_a_trace_is_read_itself(tmp_path: Path) -> None:
    from made_trace import as_text, training_trace

    path = tmp_path / "t.json"
    path.write_text(as_text(training_trace()), encoding="utf-8")
    assert said(path).startswith("too few sizes of products of h100-sxm to fit to; got ")
    assert said(tmp_path).startswith("not a regular file") or "folder" in said(tmp_path)


def test_a_trace_without_kernels_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1}]}', encoding="utf-8")
    with pytest.raises(InputError, match=r"no product or collective of a known size in t\.json; got none at all"):
        suanli.calibrate(path)


@pytest.mark.shared
def test_public_traces_agree_with_what_is_believed(shared: Path) -> None:
    """Products of a public trace are as much slower than the curves as the stacks' fits to step times say."""
    found = suanli.calibrate(shared / "traces" / "files" / "tl_mi300_xdit_sd35.json.gz")
    matmul = next(each for each in found.numbers if each.name == "matmul")
    assert found.device == "mi300x bf16"
    assert matmul.after == pytest.approx(matmul.before, rel=0.1)
    assert next(each.ratio for each in found.classes if each.fitted) == pytest.approx(1.18, abs=0.02)
