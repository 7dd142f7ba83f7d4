"""SQLite files that somebody means ill with, or that are broken: an error or a fault, no code of the file, no crash."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.errors import UnreadableFileError
from suanli.nouns.trace import Trace
from suanli.readers.traces.nsys import read_nsys

from .nsys_made import call, copy, kernel, made, nvtx

KERNEL, RUNTIME, NVTX = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"


def refused(path: Path) -> str:
    with pytest.raises(UnreadableFileError) as raised:
        read_nsys(path)
    return str(raised.value)


def test_a_view_in_a_tables_place_is_not_asked(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS end, 0 AS deviceId"
    path = made(tmp_path / "a.sqlite", {RUNTIME: [call(0, 1)]}, f'CREATE VIEW "{KERNEL}" AS {endless} FROM n;')
    assert len(read_nsys(path).work) == 0


def test_a_view_over_metadata_is_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE VIEW META_DATA_EXPORT AS SELECT load_extension('x') AS name, 1 AS value")
    connection.close()
    assert "the SQLite database is no export of Nsight Systems" in refused(path)


def test_generated_columns_are_not_computed(tmp_path: Path) -> None:
    sql = f'CREATE TABLE "{KERNEL}" (start, "end" AS (zeroblob(1000000000)), deviceId, demangledName);'
    path = made(tmp_path / "a.sqlite", {}, sql + f'INSERT INTO "{KERNEL}" VALUES (1, 0, 1);')
    assert f"lacks the column {KERNEL}.end" in refused(path)


def test_triggers_and_indexes_on_expressions_do_not_run(tmp_path: Path) -> None:
    sql = f"""CREATE INDEX evil ON "{KERNEL}" (start) WHERE start > 1000;
    CREATE TRIGGER worse AFTER INSERT ON "{KERNEL}" BEGIN DELETE FROM "{KERNEL}"; END;"""
    trace = read_nsys(made(tmp_path / "a.sqlite", {KERNEL: [kernel(1, 2)]}, sql))
    assert len(trace.work) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"not a database at all", "the file is no SQLite database"),
        (b"SQLite format 3\0" + bytes(200), "the SQLite database is broken"),
    ],
)
def test_no_database(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(content)
    assert refused(path).startswith(f"{message} in {path}")


def test_a_folder_and_a_path_that_is_not_there(tmp_path: Path) -> None:
    assert refused(tmp_path).startswith("not a regular file")
    assert refused(tmp_path / "none.sqlite").startswith("the file cannot be opened: No such file or directory")


def test_another_database(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE friends (name TEXT)")
    connection.close()
    assert refused(path) == (
        f"the SQLite database is no export of Nsight Systems in {path}; "
        f"expected a table META_DATA_EXPORT or {KERNEL}. "
        "Export the report: nsys export --type sqlite REPORT.nsys-rep."
    )


def test_text_that_is_no_utf8(tmp_path: Path) -> None:
    sql = "INSERT INTO StringIds VALUES (90, CAST(x'ff41' AS TEXT));"
    trace = read_nsys(made(tmp_path / "a.sqlite", {KERNEL: [kernel(1, 2, demangledName=90)]}, sql))
    assert trace.names[trace.work.name[0]] == "\ufffdA"


def test_pages_in_a_circle_end(tmp_path: Path) -> None:
    """An interior page whose children are all one leaf gives its rows many times over."""
    rows = [kernel(number, number + 1) for number in range(2000)]
    path = made(tmp_path / "a.sqlite", {KERNEL: rows})
    content = bytearray(path.read_bytes())
    interior = [at for at in range(4096, len(content), 4096) if content[at] == 5]
    assert interior, "a table of 2,000 rows has an interior page"
    page = interior[-1]
    count = int.from_bytes(content[page + 3 : page + 5], "big")
    for cell in range(count):  # every child becomes the page itself
        at = page + int.from_bytes(content[page + 12 + 2 * cell : page + 14 + 2 * cell], "big")
        content[at : at + 4] = (page // 4096 + 1).to_bytes(4, "big")
    path.write_bytes(content)
    assert "the SQLite database is broken" in refused(path)


def whole(folder: Path) -> tuple[bytes, Trace]:
    rows = [kernel(10 * number, 10 * number + 5, number) for number in range(1, 60)]
    tables = {KERNEL: rows, RUNTIME: [call(number, number + 1, number) for number in range(1, 60)],
              NVTX: [nvtx(0, 9, f"aten::mm, seq = {n}, sizes = [[{n}, 2]]") for n in range(30)],
              "CUPTI_ACTIVITY_KIND_MEMCPY": [copy(700, 800)]}  # fmt: skip
    path = made(folder / "whole.sqlite", tables)
    return path.read_bytes(), read_nsys(path)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Trace]:
    return whole(tmp_path_factory.mktemp("nsys"))


@settings(max_examples=60)
@given(data=st.data())
def test_broken_bytes_are_an_error_or_a_sound_trace(
    original: tuple[bytes, Trace], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(original[0])
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("x") / "broken.sqlite"
    path.write_bytes(content)
    try:
        trace = read_nsys(path)
    except UnreadableFileError:
        return
    assert (trace.work.end_ns >= trace.work.start_ns).all()
    assert (trace.work.launch < len(trace.host)).all()
    assert len(trace.work) <= len(content)


@settings(max_examples=25)
@given(part=st.floats(0, 0.999))
def test_a_cut_file_invents_no_time(
    original: tuple[bytes, Trace], tmp_path_factory: pytest.TempPathFactory, part: float
) -> None:
    content, trace = original
    path = tmp_path_factory.mktemp("x") / "cut.sqlite"
    path.write_bytes(content[: int(part * len(content))])
    try:
        cut = read_nsys(path)
    except UnreadableFileError:
        return
    known = set(zip(trace.work.start_ns.tolist(), trace.work.end_ns.tolist(), strict=True))
    assert set(zip(cut.work.start_ns.tolist(), cut.work.end_ns.tolist(), strict=True)) <= known
