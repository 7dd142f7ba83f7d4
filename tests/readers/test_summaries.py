"""Summaries in files: what is written comes back, and what is none is refused with the reason."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from suanli.errors import MissingExtraError, UnreadableFileError
from suanli.explain.summary import summary_of
from suanli.fleet.store import summary_bytes
from suanli.nouns.summary import COLUMNS, RankSummary
from suanli.readers.summaries import KEY, is_summary, read_about, read_summary
from suanli.readers.traces.front import read_trace

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def summary(made_fleet: Any, tmp_path_factory: pytest.TempPathFactory) -> RankSummary:
    folder = tmp_path_factory.mktemp("job")
    made_fleet.write_job(made_fleet.Job(ranks=2, steps=2, received={0: 10, 1: 20}), folder)
    return summary_of(read_trace(folder / "rank1.json"), digest="d", size_bytes=1, mtime_ns=2)


@pytest.fixture
def file(summary: RankSummary, tmp_path: Path) -> Path:
    path = tmp_path / "rank1.parquet"
    path.write_bytes(summary_bytes(summary))
    return path


def test_what_is_written_comes_back(summary: RankSummary, file: Path) -> None:
    found = read_summary(file)
    assert found.about == summary.about and read_about(file) == summary.about
    assert list(found.columns) == list(COLUMNS)
    for name, (kind, _) in COLUMNS.items():
        if kind == "word":
            assert found.texts(name) == summary.texts(name)
        else:
            assert found.columns[name].dtype == kind
            assert np.array_equal(found.columns[name], summary.columns[name], equal_nan=kind == "float64")


def test_any_tool_reads_the_columns(file: Path) -> None:
    """Texts are texts and what is not said is null: no table of codes is needed."""
    rows = pq.read_table(file).to_pylist()
    call = next(row for row in rows if row["collective"] == "all-to-all")
    assert (call["group"], call["sequence"], call["nth"], call["out_bytes"], call["peer"]) == ("9", 1, 0, 40, None)
    gemm = next(row for row in rows if row["work_class"] == "matmul")
    assert (gemm["collective"], gemm["group_size"], gemm["flops"], gemm["step"]) == (
        None,
        None,
        None,
        "ProfilerStep#10",
    )


def test_an_empty_summary(summary: RankSummary, tmp_path: Path) -> None:
    nothing = {name: each[:0] for name, each in summary.columns.items()}
    path = tmp_path / "none.parquet"
    path.write_bytes(summary_bytes(replace(summary, columns=nothing, words=dict.fromkeys(summary.words, ()))))
    assert len(read_summary(path)) == 0 and read_summary(path).texts("name") == []


def changed(file: Path, metadata: Any = None, **columns: Any) -> None:
    """The file with other metadata, or with columns replaced or (None) left out."""
    table = pq.read_table(file)
    said = pq.ParquetFile(file).metadata.metadata
    kept = {KEY: said[KEY]} if metadata is None else metadata
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.remove_column(place)
        if values is not None:
            table = table.add_column(place, name, values)
    pq.write_table(table.replace_schema_metadata(kept), file)


def refusal(file: Path) -> str:
    with pytest.raises(UnreadableFileError) as caught:
        read_summary(file)
    return str(caught.value).replace(str(file), "FILE")


def test_of_another_version(summary: RankSummary, file: Path) -> None:
    changed(file, {KEY: msgspec.json.encode({"schema": 99})})
    assert refusal(file) == (
        "a summary of another version in FILE; got schema 99; expected schema 1. "
        "Make it again from the trace: suanli summarise TRACE -o FILE.parquet."
    )


def test_no_summary_of_ours(file: Path) -> None:
    changed(file, {})
    assert refusal(file) == ("a Parquet file, but no summary of a rank in FILE; expected one of `suanli summarise`.")


def test_what_it_says_of_itself_is_broken(file: Path) -> None:
    changed(file, {KEY: b'{"schema": 1, "version": 3}'})
    assert refusal(file).startswith("what the summary says of itself cannot be read in FILE; got Expected `str`")
    changed(file, {KEY: b"{"})
    assert refusal(file).startswith(
        "what the summary says of itself cannot be read in FILE; got Input data was truncated"
    )


def test_columns_that_are_not_there(file: Path) -> None:
    changed(file, bytes=None, nth=None)
    assert refusal(file) == "the summary lacks columns in FILE; got nth, bytes."


def test_columns_of_another_type(file: Path) -> None:
    count = pq.read_table(file).num_rows
    changed(file, bytes=pa.array(["x"] * count))
    assert refusal(file).startswith("column bytes is not int64 in FILE; got ")


def test_negative_durations(file: Path) -> None:
    count = pq.read_table(file).num_rows
    changed(file, duration_ns=pa.array([-5] * count, type=pa.int64()))
    assert refusal(file) == "the summary has negative durations in FILE."


def test_cut_files_are_refused_wherever_they_are_cut(file: Path) -> None:
    content = file.read_bytes()
    for size in range(0, len(content), max(1, len(content) // 40)):
        file.write_bytes(content[:size])
        assert refusal(file).startswith("not a Parquet file in FILE")


def test_what_it_says_of_itself_is_written_once(summary: RankSummary, file: Path) -> None:
    """pyarrow writes the metadata of a schema a second time, within its own copy of the schema."""
    said = pq.ParquetFile(file).metadata.metadata
    assert said[KEY] == msgspec.json.encode(summary.about)
    assert len(said[b"ARROW:schema"]) < 6_000
    assert pq.read_table(file).schema.metadata is None


@pytest.mark.parametrize("place", [3, -2])
def test_places_beyond_the_texts(file: Path, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    """pyarrow reads places of a broken page as they stand."""
    rows = pq.read_table(file).num_rows
    wrong = pa.DictionaryArray.from_arrays(pa.array([place] * rows, pa.int32()), pa.array(["a", "b"]), safe=False)
    table = pq.read_table(file)
    table = table.set_column(table.schema.get_field_index("name"), "name", wrong)
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: table)
    assert refusal(file) == "column name points beyond its texts in FILE."


def test_texts_that_are_none(file: Path) -> None:
    names = pa.array([b"\x93"] * pq.read_table(file).num_rows, type=pa.binary())
    changed(file, name=pa.Array.from_buffers(pa.string(), len(names), names.buffers()))
    assert refusal(file).startswith("column name holds what is no text in FILE; got ")


@pytest.mark.parametrize("begin", range(4, 9))
def test_flipped_bytes_never_crash(file: Path, begin: int) -> None:
    content = file.read_bytes()
    for place in range(begin, len(content), max(1, len(content) // 60)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            read_summary(file)
        except UnreadableFileError:
            continue


def test_no_such_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none") == "the summary cannot be read in FILE; got No such file or directory."


def test_what_looks_like_one(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "x.parquet"
    other.write_text("{}")
    assert is_summary(file) and not is_summary(other) and not is_summary(tmp_path / "none")


def test_without_pyarrow(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match="summaries of ranks need pyarrow, which is not installed") as caught:
        read_summary(file)
    assert caught.value.faults[0].hint == "pip install 'suanli[traces]'"


def test_somebody_elses_parquet(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    assert refusal(path) == "a Parquet file, but no summary of a rank in FILE; expected one of `suanli summarise`."
