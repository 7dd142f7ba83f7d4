"""SQLite files that somebody means ill with, or that are broken: an error or a fault, no code of the file, no crash."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.errors import UnreadableFileError
from suanli.nouns.trace import Trace
from suanli.readers.traces.nsys import read_nsys

from .nsys_made import call, copy, kernel, made, nvtx

PAGE = 4096
KERNEL, RUNTIME, NVTX = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"


def refused(path: Path) -> str:
    with pytest.raises(UnreadableFileError) as raised:
        read_nsys(path)
    return str(raised.value)


def test_a_view_in_a_tables_place_is_not_asked(tmp_path: Path) -> None:
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS end, 0 AS deviceId"
    )
    path = made(tmp_path / "a.sqlite", {RUNTIME: [call(0, 1)]}, f'CREATE VIEW "{KERNEL}" AS {endless} FROM n;')
    assert len(read_nsys(path).work) == 0


def test_a_view_over_metadata_is_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE VIEW META_DATA_EXPORT AS SELECT load_extension('x') AS name, 1 AS value")
    connection.close()
    assert "the SQLite database is no export of Nsight Systems" in refused(path)


def test_a_database_of_rocprofv3_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE rocpd_kernel_dispatch_0a1b (id, start, end)")
    connection.close()
    assert refused(path) == (
        f"the SQLite database is one of rocprofv3 (rocpd), which is not read in {path}; expected its JSON. "
        "Record with rocprofv3 --output-format json."
    )


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


def page_of(content: bytearray, number: int) -> int:
    return (number - 1) * PAGE


def children(content: bytearray, page: int) -> list[int]:
    """Where an interior page holds the numbers of its children: in its cells, and one in its head."""
    count = int.from_bytes(content[page + 3 : page + 5], "big")
    cells = [page + 12 + 2 * cell for cell in range(count)]
    return [page + 8, *(page + int.from_bytes(content[at : at + 2], "big") for at in cells)]


def interior_of(path: Path) -> tuple[bytearray, int]:
    """The bytes of a database, and the place of the root page of its kernels."""
    with closing(sqlite3.connect(path)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (KERNEL,)).fetchall()
    content = bytearray(path.read_bytes())
    page = page_of(content, root)
    assert content[page] == 5, "the table is large enough to have an interior page"
    return content, page


def test_pages_in_a_circle_end(tmp_path: Path) -> None:
    """Every child of the root is the root."""
    path = made(tmp_path / "a.sqlite", {KERNEL: [kernel(number, number + 1) for number in range(2000)]})
    content, page = interior_of(path)
    for at in children(content, page):
        content[at : at + 4] = (page // PAGE + 1).to_bytes(4, "big")
    path.write_bytes(content)
    assert "the SQLite database is broken" in refused(path)


def test_one_page_read_over_and_over_is_no_large_table(tmp_path: Path) -> None:
    """Every child of the root is the same leaf, and the other leaves are cut off: few bytes that give many rows."""
    row = {"start": 1, "end": 2, "deviceId": 0, "demangledName": 1}
    path = made(tmp_path / "a.sqlite", {KERNEL: [row] * 40_000})
    content, page = interior_of(path)
    places = children(content, page)
    leaf = min(int.from_bytes(content[at : at + 4], "big") for at in places)
    for at in places:
        content[at : at + 4] = leaf.to_bytes(4, "big")
    pages = max(leaf, page // PAGE + 1)
    content[28:32] = pages.to_bytes(4, "big")
    path.write_bytes(content[: pages * PAGE])
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        ((rows,),) = connection.execute(f'SELECT count(*) FROM "{KERNEL}"').fetchall()
    assert rows > path.stat().st_size  # SQLite itself finds nothing wrong
    assert f"got {KERNEL} gives more rows than the file has bytes" in refused(path)


def test_an_index_that_lies_is_not_asked(tmp_path: Path) -> None:
    """An index that holds every column asked for would be read in the table's place."""
    start = 0x0123456789AB
    row = {"start": start, "end": start + 5, "deviceId": 0, "demangledName": 1, "unused": "x" * 500}
    index = f'CREATE INDEX cover ON "{KERNEL}" (start, "end", deviceId, demangledName);'
    path = made(tmp_path / "a.sqlite", {KERNEL: [row] * 50}, index + "ANALYZE;")
    content = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'cover'").fetchall()
    page = page_of(content, root)
    content[page : page + PAGE] = content[page : page + PAGE].replace(start.to_bytes(6, "big"), bytes(5) + b"\x07")
    path.write_bytes(content)
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        sql = f'SELECT start, "end", deviceId, demangledName FROM "{KERNEL}"'
        assert connection.execute(sql).fetchone()[0] == 7  # who asks carelessly is lied to
    assert set(read_nsys(path).work.start_ns.tolist()) == {start}


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


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_broken_bytes_are_an_error_or_a_sound_trace(
    original: tuple[bytes, Trace], tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """A seed, not a draw a byte: of tens of thousands of places hardly any two draws are alike."""
    content, chance = bytearray(original[0]), random.Random(seed)
    for _ in range(chance.randint(1, 8)):
        content[chance.randrange(len(content))] = chance.randrange(256)
    path = tmp_path_factory.mktemp("x") / "broken.sqlite"
    path.write_bytes(content)
    try:
        trace = read_nsys(path)
    except UnreadableFileError:
        return
    assert (trace.work.end_ns >= trace.work.start_ns).all()
    assert (trace.work.launch < len(trace.host)).all()
    assert len(trace.work) <= len(content)


def test_a_message_that_is_no_text_is_refused_as_a_broken_file(original: tuple[bytes, Trace], tmp_path: Path) -> None:
    """SQLite quotes the word that it cannot parse; where that is no UTF-8, Python has no message to raise."""
    path = tmp_path / "broken.sqlite"
    path.write_bytes(original[0].replace(b"CREATE TABLE", b"CREATE TABL\xbd"))
    with pytest.raises(UnreadableFileError, match="SQLite database is broken"):
        read_nsys(path)


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
