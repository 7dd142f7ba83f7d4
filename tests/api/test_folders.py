"""`suanli.summarise`, and `explain` over folders: what is asked for, refused, kept, and gone on with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import suanli
from suanli.api.folders import explain_folder
from suanli.errors import InputError, UnreadableFileError


@pytest.fixture(scope="module")
def job(made_fleet: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("api") / "job"
    made_fleet.write_job(made_fleet.Job(ranks=4, steps=2, slow={1: 1.3}), folder, packed=True)
    return folder


def figures(result: Any) -> dict[str, Any]:
    """All of the report but where its traces lie."""
    found = json.loads(result.to_json())["result"]
    for row in found["ranks"]:
        del row["path"]
    return found


def test_one_summary(job: Path, tmp_path: Path) -> None:
    result = suanli.summarise(job / "rank2.json.gz", tmp_path / "r2.parquet")
    (row,) = result.files
    assert (row.rank, row.devices, row.steps, row.reused) == (2, 1, 2, False)
    assert row.work == 2 * (3 * 2 + 1)  # steps of three layers of two kernels, and an all-reduce
    assert row.trace_bytes == (job / "rank2.json.gz").stat().st_size
    assert row.summary_bytes == (tmp_path / "r2.parquet").stat().st_size
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r2.parquet"]
    assert json.loads(result.to_json())["kind"] == "summarise"


def test_a_folder_of_traces_a_folder_of_summaries_and_both_say_the_same(job: Path, tmp_path: Path) -> None:
    whole = figures(explain_folder(job, workers=1))
    for rank in range(4):
        suanli.summarise(job / f"rank{rank}.json.gz", tmp_path / f"{rank}.parquet")
    assert figures(explain_folder(tmp_path)) == whole
    mixed = [job / "rank0.json.gz", job / "rank3.json.gz", tmp_path / "1.parquet", tmp_path / "2.parquet"]
    assert figures(explain_folder(mixed, workers=1)) == whole
    assert figures(explain_folder(list(reversed(mixed)), workers=1)) == whole


def test_a_trace_beside_its_summary_is_one_rank(job: Path, tmp_path: Path) -> None:
    suanli.summarise(job / "rank1.json.gz", tmp_path / "1.parquet")
    result = explain_folder([job, tmp_path], workers=1)
    assert [row.rank for row in result.ranks] == [0, 1, 2, 3]
    assert result.warnings[0].message == "summaries of the same trace as another, left out: 1"


def test_a_cache_is_used_and_can_be_explained_itself(job: Path, tmp_path: Path) -> None:
    told: list[int] = []
    options = {"workers": 1, "cache": tmp_path / "c", "progress": lambda done, *_: told.append(done)}
    first = explain_folder(job, **options)
    assert told == [1, 2, 3, 4]
    assert explain_folder(job, **options).to_json() == first.to_json()
    assert told == [1, 2, 3, 4]  # nothing was made again
    assert figures(explain_folder(tmp_path / "c")) == figures(first)


def test_nothing_is_written_beside_the_traces(job: Path, tmp_path: Path) -> None:
    before = sorted(path.name for path in job.iterdir())
    explain_folder(job, workers=1)
    suanli.summarise(job, tmp_path / "s", workers=1)
    assert sorted(path.name for path in job.iterdir()) == before
    with pytest.raises(InputError, match=r"^summaries are not kept among the traces in --cache; got .* Name another"):
        explain_folder(job, cache=job)
    with pytest.raises(InputError, match="summaries are not kept among the traces"):
        suanli.summarise(job, job)


def test_a_relative_folder(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(job.parent)
    assert figures(explain_folder("job", workers=1)) == figures(explain_folder(job, workers=1))


def test_broken_traces_are_told_and_the_rest_goes_on(job: Path, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    shutil.copytree(job, folder)
    (folder / "rank1.json.gz").write_bytes(b"nonsense")
    (folder / "rank9.parquet").write_bytes(b"PAR1 nonsense")
    (folder / "notes.txt").write_text("hello")
    (folder / "rank1.nsys-rep").write_bytes(b"once more")
    (folder / "rank1.sqlite").write_bytes(b"nonsense")
    result = explain_folder(folder, workers=1)
    assert [row.rank for row in result.ranks] == [0, 2, 3]
    assert [(Path(each.path).name, each.ranks) for each in result.lost] == [
        ("rank1.json.gz", "1"),
        ("rank1.sqlite", "1"),
        ("rank9.parquet", ""),
    ]
    assert any("rank1.json.gz: " in each for each in result.findings)
    assert [each.message for each in result.warnings[:2]] == [
        "files in the folders that are not called like traces, left alone: 1 (notes.txt)",
        "files in the folders that hold the run of another once more, left alone: 1 (rank1.nsys-rep)",
    ]


def test_nothing_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_text("nonsense")
    (tmp_path / "rank1.json").write_text("nonsense")
    with pytest.raises(UnreadableFileError) as caught:
        explain_folder(tmp_path, workers=1)
    assert [Path(fault.where or "").name for fault in caught.value.faults] == ["rank0.json", "rank1.json"]


def test_traces_without_device_work(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1}]}'
    )
    with pytest.raises(UnreadableFileError, match=r"^none of 1 traces has work of a device in TRACE. Profile with"):
        explain_folder(tmp_path, workers=1)


def test_every_fault_of_a_request_is_told() -> None:
    with pytest.raises(InputError) as caught:
        explain_folder("/none/at/all", gpu="h1000", engine="dask", workers="many")
    assert [fault.code for fault in caught.value.faults] == [
        "unknown_device", "unknown_engine", "bad_workers", "no_file",
    ]  # fmt: skip
    with pytest.raises(InputError) as caught:
        suanli.summarise(["/none"], engine="dask", workers=0)
    assert [fault.code for fault in caught.value.faults] == [
        "unknown_engine",
        "bad_workers",
        "no_file",
        "missing_option",
    ]


def test_several_summaries_need_a_folder(job: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        suanli.summarise(job, tmp_path / "all.parquet", workers=1)
    assert str(caught.value) == (
        f"4 summaries need a folder in --output; got {tmp_path / 'all.parquet'}; "
        "expected a folder, or one trace and a file ending in .parquet."
    )


def test_summaries_are_not_summarised(job: Path, tmp_path: Path) -> None:
    made = tmp_path / "a.parquet"
    suanli.summarise(job / "rank0.json.gz", made)
    for output in (made, tmp_path / "b.parquet", tmp_path):
        with pytest.raises(UnreadableFileError) as caught:
            suanli.summarise(made, output)
        assert str(caught.value) == (
            "there are only summaries, and no trace to summarise in TRACE. `suanli explain` takes them as they are."
        )


def test_one_summary_is_parquet_in_a_folder_that_is_there(job: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^a summary is a Parquet file in --output; got .*r\.json; expected a folder, or"
    ):
        suanli.summarise(job / "rank0.json.gz", tmp_path / "r.json")
    with pytest.raises(InputError, match=r"^there is no such folder in --output; got .*none\.$"):
        suanli.summarise(job / "rank0.json.gz", tmp_path / "none" / "r.parquet")


def test_one_trace_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("nonsense")
    with pytest.raises(UnreadableFileError):
        suanli.summarise(tmp_path / "x.json", tmp_path / "x.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_named_gpu_is_for_all(job: Path) -> None:
    result = explain_folder(job, gpu="h100-sxm", workers=1)
    assert {each.link_bytes_per_s for each in result.collectives} == {450e9}  # NVLink of 900 GB/s, one direction
    assert result.inputs["gpu"] == "h100-sxm"
