"""Results read again from their JSON: those of another verb, errors and other files are told apart."""

from __future__ import annotations

import json

import pytest

import suanli
from suanli.errors import InputError, SuanliError
from suanli.readers.results import read_result
from suanli.readers.sizes_of_runs import NAME, read_runs, sizes_of_runs


def mfu(gpus: int, **options) -> object:
    rate = {"tokens_per_second": 8000 * gpus} if not {"step_time", "tflops_per_gpu"} & set(options) else {}
    return suanli.mfu("llama-3-8b", gpu="h100-sxm", gpus=gpus, seq=8192, **rate, **options)


@pytest.fixture
def files(tmp_path):
    """Two runs of `mfu` by step time, weak scaling."""
    paths = []
    for gpus, step in ((8, "4.00"), (16, "4.10")):
        paths.append(tmp_path / f"{gpus}.json")
        paths[-1].write_text(mfu(gpus, step_time=step, global_batch=str(2 * gpus)).to_json())
    return paths


def test_files_of_mfu_are_sizes(files) -> None:
    """4.00/4.10 = 97.56 %, half a unit of the last digits apart at most; the batch of each is read with it."""
    found = suanli.scale(files).result
    assert (found.series, found.kind) == (NAME, "weak")
    assert {form.by: round(form.ratio, 4) for form in found.pairs[0].forms} == {
        "step_time_s": 0.9756, "tokens_per_s_per_gpu": 0.9756, "mfu": 0.9756,
    }  # fmt: skip
    form = found.pairs[0].forms[0]
    assert form.low == pytest.approx(3.995 / 4.105) and form.high == pytest.approx(4.005 / 4.095)
    assert found.pairs[0].agree is True
    assert found.warnings == (
        "weak scaling: each GPU keeps its work, so ratios are per sample; strong scaling loses more",
    )


def test_objects_and_files_are_the_same(files) -> None:
    runs = [mfu(gpus, step_time=step, global_batch=str(2 * gpus)) for gpus, step in ((8, "4.00"), (16, "4.10"))]
    assert suanli.scale(points=runs).result.pairs == suanli.scale(files).result.pairs


def test_utilisations_of_two_conventions_are_not_compared(tmp_path) -> None:
    found = sizes_of_runs([("a", mfu(8).to_dict()), ("b", mfu(16, convention="palm").to_dict())])
    assert found.shared == ("tokens_per_s_per_gpu",)


def test_what_differs_is_said(tmp_path) -> None:
    runs = [mfu(8), suanli.mfu("llama-3-8b", gpu="a100-80gb-sxm", gpus=16, seq=4096, tokens_per_second=40_000)]
    warnings = suanli.scale(points=runs).result.warnings
    assert "gpu differs (h100-sxm, a100-80gb-sxm): the ratio compares those too" in warnings
    assert "seq differs (8192, 4096): the ratio compares those too" in warnings


def test_a_batch_may_be_given_beside(files) -> None:
    runs = [mfu(8), mfu(16)]
    assert suanli.scale(points=runs, global_batch=64).result.kind == "strong"
    with pytest.raises(InputError, match="the sizes say their batch themselves"):
        suanli.scale(files, global_batch=64)


def test_another_kind_of_result_is_refused(tmp_path, files) -> None:
    other = tmp_path / "goodput.json"
    other.write_text(suanli.goodput(mtti="3h", restart="10min", checkpoint_save="60s").to_json())
    with pytest.raises(InputError) as caught:
        read_result(other, "mfu")
    assert str(caught.value) == (
        f"the file is no result of `suanli mfu` in {other}; got kind 'goodput', schema 1; expected kind 'mfu', "
        "schema 1. Make one with `suanli mfu … -o FILE.json`."
    )


def test_the_faults_of_all_files_are_told(tmp_path, files) -> None:
    failed, config, torn = (tmp_path / name for name in ("failed.json", "config.json", "torn.json"))
    failed.write_text(json.dumps({"ok": False, "kind": "mfu", "schema": 1, "inputs": {}, "error": {}}))
    config.write_text('{"hidden_size": 8}')
    torn.write_text('{"kind": "mfu"')
    with pytest.raises(InputError) as caught:
        read_runs([*files, failed, config, torn, tmp_path / "nowhere.json"])
    text = str(caught.value)
    assert f"the result in the file is an error in {failed}; got ok False; expected a result that came out." in text
    assert f"the file is no result of `suanli mfu` in {config}; got kind None, schema None" in text
    assert f"the file is not JSON in {torn}" in text
    assert "nowhere.json" in text


@pytest.mark.parametrize("result", [{"gpus": 0}, {"gpus": "8"}, {"tokens_per_second_per_gpu": 0}, {"gpus": None}])
def test_a_result_without_a_rate_is_no_size(result) -> None:
    run = mfu(8).to_dict()
    run["result"] |= result
    with pytest.raises(InputError, match="the result has no GPUs or no rate above 0 in a; got gpus"):
        sizes_of_runs([("a", run), ("b", mfu(16).to_dict())])


def test_one_file_alone_and_twice_the_same(files) -> None:
    with pytest.raises(InputError, match="one size alone says nothing of scaling in results of mfu"):
        suanli.scale(files[:1])
    with pytest.raises(InputError, match=r"a size is given twice in results of mfu; got 8 GPUs"):
        suanli.scale([files[0], files[0], files[1]])


def test_a_table_and_results_do_not_mix(tmp_path, files) -> None:
    table = tmp_path / "x.csv"
    table.write_text("gpus,mfu\n8,0.4\n16,0.39\n")
    with pytest.raises(SuanliError, match=r"several files in FILE\.csv; .* expected one CSV file, or JSON files"):
        suanli.scale([table, files[0]])
    with pytest.raises(InputError, match="results of mfu are one series in --series"):
        suanli.scale(files, series="a")
