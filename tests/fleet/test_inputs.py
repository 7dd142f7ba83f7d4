"""Which files are read, and in which order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from suanli.errors import UnreadableFileError
from suanli.fleet import inputs
from suanli.fleet.inputs import find_inputs, natural


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1..." if name.endswith(".parquet") else b"{}")


def test_natural_order() -> None:
    names = ["rank1.json", "rank2.json", "rank10.json", "rank010.json", "Rank11.json", "node2/rank0", "a", ""]
    expected = ["", "a", "node2/rank0", "rank1.json", "rank2.json", "rank010.json", "rank10.json", "Rank11.json"]
    for _ in range(10):
        random.shuffle(names)
        assert sorted(names, key=natural) == expected


def test_folders_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "job/rank10.json", "job/rank2.json.gz", "job/sub/rank1.json", "job/notes.txt", "job/.hidden/a.json",
          "job/s.parquet", "one.weird")  # fmt: skip
    monkeypatch.chdir(tmp_path)
    found = find_inputs(["job", "one.weird", "job/rank2.json.gz"])
    assert found.traces == ("job/rank2.json.gz", "job/rank10.json", "job/sub/rank1.json", "one.weird")
    assert found.summaries == ("job/s.parquet",)
    assert found.ignored == ("job/notes.txt",)
    assert len(found) == 5


def test_a_run_that_stands_there_twice_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "jax/a.xplane.pb", "jax/a.trace.json.gz", "jax/b.trace.json.gz", "nsys/r.nsys-rep",
          "nsys/r.sqlite", "nsys/s.nsys-rep", "other/r.nsys-rep")  # fmt: skip
    monkeypatch.chdir(tmp_path)
    found = find_inputs(["jax", "nsys", "other"])
    assert found.traces == ("jax/a.xplane.pb", "jax/b.trace.json.gz", "nsys/r.sqlite", "nsys/s.nsys-rep",
                            "other/r.nsys-rep")  # fmt: skip
    assert found.ignored == ("jax/a.trace.json.gz", "nsys/r.nsys-rep")


def test_summaries_are_left_out_where_traces_are_wanted(tmp_path: Path) -> None:
    touch(tmp_path, "a.json", "a.parquet")
    found = find_inputs([tmp_path], summaries=False)
    assert (len(found.traces), found.summaries) == (1, ())


def test_every_path_that_is_wrong_is_told(tmp_path: Path) -> None:
    touch(tmp_path, "empty/readme.txt")
    with pytest.raises(UnreadableFileError) as caught:
        find_inputs([tmp_path / "empty", tmp_path / "none", tmp_path / "none2"])
    assert [fault.sentence().replace(str(tmp_path), "T") for fault in caught.value.faults] == [
        "the folder holds no traces in T/empty; got 1 other file; expected files ending in .json, .json.gz, "
        ".json.zip, .zip, .sqlite, .xplane.pb, .xplane.pb.gz, .parquet, .nsys-rep.",
        "there is no such file or folder in T/none. Check the path.",
        "there is no such file or folder in T/none2. Check the path.",
    ]


@pytest.mark.parametrize(("count", "got"), [(0, "no file"), (1, "1 other file"), (1200, "1,200 other files")])
def test_how_many_files_are_no_traces(count: int, got: str) -> None:
    assert inputs._others(count) == got
