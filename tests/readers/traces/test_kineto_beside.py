"""A file read by several processes says what it says to one, whatever is broken in it. No process is left behind."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.readers.traces.test_kineto_widths import LAYOUTS, damaged, events, file_of

from suanli.errors import UnreadableFileError
from suanli.nouns.trace import Trace
from suanli.readers.traces import kineto_beside, kineto_part, source, stretches
from suanli.readers.traces.kineto import read_kineto
from suanli.readers.traces.kineto_beside import read_beside
from suanli.readers.traces.kineto_part import read_part
from suanli.readers.traces.source import Source
from suanli.readers.traces.stretches import NoBorderError

PLACES = {"name": "names", "detail": "details", "collective": "collectives", "thread": "threads", "copy": "copy_kinds"}


class Inline:
    """In the place of a process: reads its part here when it is asked for it."""

    def __init__(self, path: str, low: str, high: str) -> None:
        self.asked, self.killed = (path, low, high), False

    @property
    def stdout(self) -> io.BytesIO:
        path, low, high = self.asked
        try:
            part = read_part(Source(path), int(low), int(high) if high else None)
        except (NoBorderError, OSError):
            part = None
        return io.BytesIO(b"" if part is None else msgspec.msgpack.encode(part))

    def kill(self) -> None:
        self.killed = True

    def __enter__(self) -> Inline:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.killed


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Inline]]:
    """Processes that are none, parts of any size, small blocks."""
    with inline_patch() as started:
        yield started


class inline_patch:
    def __enter__(self) -> list[Inline]:
        self.patch, started = pytest.MonkeyPatch(), []

        def process(*asked: str) -> Inline:
            started.append(Inline(*asked))
            return started[-1]

        self.patch.setattr(kineto_beside, "_process", process)
        self.patch.setattr(kineto_beside, "PART_BYTES", 40)
        self.patch.setattr(source, "BLOCK_BYTES", 150)
        self.patch.setattr(stretches, "WINDOW", 400)
        return started

    def __exit__(self, *_: object) -> None:
        self.patch.undo()


def said(trace: Trace) -> dict[str, Any]:
    """Everything a trace says, its rows with the things they name, which may stand in another order."""
    found = {field.name: getattr(trace, field.name) for field in fields(trace)}
    for table in ("work", "host"):
        columns = found.pop(table)
        for each in fields(columns):
            values = getattr(columns, each.name).tolist()
            if listed := found.get(PLACES.get(each.name, "")):
                values = [listed[place] if place >= 0 else None for place in values]
            found[f"{table}.{each.name}"] = values
    return {name: value for name, value in found.items() if name not in PLACES.values()}


def read(path: Path, processes: int) -> Any:
    try:
        return said(read_kineto(path, None, processes))
    except UnreadableFileError as refused:
        return str(refused)


ROW = '{{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "dur": 5, "args": {{{}}}}}'


def made(rows: int = 60, gap: str = ",\n  ") -> bytes:
    """A sound file: operators, their launches and kernels, a category that nobody knows, a collective late in it."""
    texts = []
    for number in range(rows):
        at = 1000 + 20 * number
        texts += [
            ROW.format("cpu_op", f"aten::op{number % 7}", 5 + number % 3, at, f'"External id": {number + 1}'),
            ROW.format("cuda_runtime", "cudaLaunchKernel", 5 + number % 3, at + 1, f'"correlation": {number + 900}'),
            ROW.format("kernel", f"k{number % 5}", 7, at + 3, f'"correlation": {number + 900}, "stream": {number % 2}'),
        ]
    texts.insert(30, ROW.format("never seen", "x", 1, 5, ""))
    texts.insert(-9, ROW.format("kernel", "ncclAllReduce", 7, 99, '"Collective name": "allreduce", "Group size": 2'))
    return (
        f'{{"baseTimeNanoseconds": 7, "traceEvents": [{gap.join(texts)}], "distributedInfo": {{"rank": 3}}}}'.encode()
    )


HALF = '{{"ph": "{}", "cat": "kernel", "name": "half", "pid": 1, "tid": 7, "ts": {}, "args": {{"device": 0}}}}'


def with_rows(place: int, *rows: str) -> bytes:
    """The sound file with rows put in behind one of its own."""
    texts = made().decode().split(",\n  ")
    return ",\n  ".join([*texts[:place], *rows, *texts[place:]]).encode()


ODD = {
    "halves early": with_rows(3, HALF.format("B", 2000), HALF.format("E", 2004)),
    "halves late": with_rows(-3, HALF.format("B", 2000), HALF.format("E", 2004)),
    "halves far apart": with_rows(3, HALF.format("B", 2000)).replace(b'{"rank": 3}', b'{"rank": 3}, "x": 1').replace(
        b'{"ph": "X", "cat": "kernel", "name": "ncclAllReduce"',
        HALF.format("E", 9000).encode() + b', {"ph": "X", "cat": "kernel", "name": "ncclAllReduce"',
    ),
    "a half of no category": with_rows(-3, '{"ph": "E", "pid": 1, "tid": 7, "ts": 5}'),
    "another phase": with_rows(-3, HALF.format("b", 2000)),
    "two documents": made() + made(),
    "a second list": made()[:-1] + b', "traceEvents": [{"ph": "X"}]}',
    "a list inside": b'{"m": {"traceEvents": []}, ' + made()[1:],
    "an empty list before": b'{"traceEvents": [], ' + made()[1:],
    "many bytes behind": made() + b"x" * 2_000,
}  # fmt: skip


@pytest.mark.parametrize("processes", [2, 8])
@pytest.mark.parametrize("case", ODD)
@pytest.mark.usefixtures("inline")
def test_halves_lists_and_documents_are_read_as_one_process_does(tmp_path: Path, case: str, processes: int) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(ODD[case])
    alone = read(path, 1)
    assert read(path, processes) == alone
    known = {"halves early": 1, "halves late": 1, "halves far apart": 1}
    assert len(alone["work.start_ns"]) == 61 + known.get(case, 0)


@pytest.mark.parametrize("processes", [2, 3, 8])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_sound_file(tmp_path: Path, inline: list[Inline], processes: int, packed: bool) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(gzip.compress(made()) if packed else made())
    alone = read(path, 1)
    assert not inline
    assert read(path, processes) == alone
    assert len(inline) == processes - 1
    assert all(each.killed for each in inline)
    assert alone["rank"] == 3
    assert [fault.code for fault in alone["faults"]] == ["unknown-category"]
    with_reader = read_beside(Source(path), processes)
    assert with_reader is not None  # it was not read alone after all
    assert with_reader[1].state.events == alone["events"] == 182


@settings(max_examples=120)
@given(st.lists(events(), min_size=3, max_size=14), LAYOUTS, st.integers(2, 5), st.data())
def test_any_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], layout: tuple[str, str, str], processes: int,
    data: st.DataObject,
) -> None:  # fmt: skip
    text = damaged(file_of(rows, layout), data, b"]", b'}, {"ph": "X"')
    path = tmp_path_factory.mktemp("beside", numbered=True) / "rank0.json"
    path.write_bytes(text)
    with inline_patch():
        assert read(path, processes) == read(path, 1)


BROKEN = {
    "an event": (b'"name": "k3", "pid": 1, "tid": 7, "ts": 1463', b'"name": , "ts": 1463'),
    "borders in arguments": (b'"External id"', b'"l": [' + b'{"id": 1}, ' * 9 + b'{"id": 1}], "External id"'),
    "the end of the list within": (b'{"ph": "X", "cat": "never seen"', b'], "x": [{"ph": "X", "cat": "never seen"'),
    "a tail with events": (b', "distributedInfo"', b', "more": [' + made().partition(b"[")[2].partition(b"]")[0]
                           + b'], "distributedInfo"'),
}  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_broken_is_read_alone(tmp_path: Path, inline: list[Inline], broken: str) -> None:
    path = tmp_path / "rank0.json"
    text = made().replace(*BROKEN[broken])
    assert text != made()
    path.write_bytes(text)
    assert read_beside(Source(path), 3) is None
    assert read(path, 3) == read(path, 1)


def test_too_many_categories_are_read_alone(tmp_path: Path, inline: list[Inline]) -> None:
    rows = [ROW.format(f"c{number}", "x", 1, 5, "") for number in range(450)]
    path = tmp_path / "rank0.json"
    path.write_text(f'{{"traceEvents": [{", ".join(rows)}, {ROW.format("kernel", "k", 1, 5, "")}]}}')
    assert read_beside(Source(path), 2) is None
    assert read(path, 2) == read(path, 1)


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (b"", "nothing"), (b"[]", "too short"), (b"x" * 5000, "no events"),
        (gzip.compress(made())[:-4] + b"\xff\0\0\0", "a length that cannot be"),
        (gzip.compress(made())[:-9], "cut"),
        (gzip.compress(b" " * 9000)[:-4] + len(made()).to_bytes(4, "little"), "no events in a gzip"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)  # fmt: skip
def test_what_only_one_reader_can_tell(tmp_path: Path, inline: list[Inline], packed: bytes, why: str) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(packed)
    assert read_beside(Source(path), 4) is None
    assert read(path, 4) == read(path, 1)


def test_a_zip_is_read_alone(tmp_path: Path, inline: list[Inline]) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("rank0.json", made())
    path = tmp_path / "rank0.zip"
    path.write_bytes(packed.getvalue())
    assert read(path, 3) == read(path, 1)
    assert not inline


def test_a_gzip_of_several_members_is_read_whole(tmp_path: Path, inline: list[Inline]) -> None:
    """Its last member says a length that is not the file's: the parts are of unlike sizes, and nothing is lost."""
    text, path = made(), tmp_path / "rank0.json.gz"
    path.write_bytes(gzip.compress(text[:9000]) + gzip.compress(text[9000:]))
    assert Source(path).content_bytes() == len(text) - 9000
    assert read(path, 3) == read(path, 1)
    assert inline


def test_progress_comes_to_its_end(tmp_path: Path, inline: list[Inline]) -> None:
    path, told = tmp_path / "rank0.json", list[tuple[int, int]]()
    path.write_bytes(made())
    read_kineto(path, lambda done, size: told.append((done, size)), 3)
    assert sorted(told) == told
    assert told[-1] == (len(made()), len(made()))
    assert inline


def test_short_files_start_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto_beside, "_process", lambda *_: pytest.fail("a process was started"))
    path = tmp_path / "rank0.json"
    path.write_bytes(made())
    assert read(path, 8) == read(path, 1)
    monkeypatch.setattr(kineto_beside, "PART_BYTES", 40)
    monkeypatch.setattr(sys, "executable", None)  # an interpreter inside another program
    assert read_beside(Source(path), 2) is None


# --- with processes -------------------------------------------------------------------------------------------------


@pytest.fixture
def long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose name looks like an option, in a folder with a module that must not be imported."""
    monkeypatch.setattr(kineto_beside, "PART_BYTES", 1000)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "msgspec.py").write_text("raise SystemExit(3)")
    path = Path("-rank0 é.json")
    path.write_bytes(made(2000))
    return path


def test_processes(long: Path) -> None:
    found = read_beside(Source(long), 3)
    assert found is not None
    assert found[1].state.events == 6002
    assert read(long, 3) == read(long, 1)


def test_a_process_that_cannot_be_started(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert read(long, 3) == read(long, 1)


@pytest.mark.parametrize("code", ["import sys; sys.exit(1)", "print('?')", "import os; os.kill(os.getpid(), 9)"])
def test_a_process_that_fails(long: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(kineto_beside, "_CHILD", code)
    assert read_beside(Source(long), 3) is None
    assert read(long, 3) == read(long, 1)


def test_no_process_is_left_behind(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    process = kineto_beside._process
    monkeypatch.setattr(kineto_beside, "_process", lambda *asked: started.append(process(*asked)) or started[-1])
    monkeypatch.setattr(kineto_beside, "_CHILD", "import time; time.sleep(60)")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(kineto_beside, "_first", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_kineto(long, None, 3)
    assert [each.returncode for each in started] == [-9, -9]


_READS_LONG = """
import time
from suanli.readers.traces import kineto_part

def main(_):
    print("begun", flush=True)
    time.sleep(60)

kineto_part.main = main
"""


def test_a_process_ends_with_whoever_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where that one was killed: then nothing but the system closes its pipes."""
    before, run = kineto_beside._CHILD.split("from suanli", 1)
    monkeypatch.setattr(kineto_beside, "_CHILD", f"{before}{_READS_LONG}from suanli{run}")
    with kineto_beside._process("rank0.json", "0", "") as process:
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == b"begun\n"
            process.stdin.close()
            assert process.wait(timeout=20) == 1
        finally:
            process.kill()


def test_a_process_ends_where_its_user_asks_to_stay(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONINSPECT", "1")
    assert read_beside(Source(long), 3) is not None


@pytest.mark.parametrize("flag", ["-I", "-E", "-s"])
def test_a_process_is_as_shut_off_as_this_one(flag: str) -> None:
    code = "from suanli.readers.traces.kineto_beside import _interpreter as found; print(*found()[1:])"
    path = f"import sys; sys.path = {sys.path!r}; {code}"
    said = subprocess.run([sys.executable, flag, "-c", path], capture_output=True, text=True, check=True)
    assert flag in said.stdout.split()


def test_a_program_that_holds_its_interpreter_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert kineto_beside._interpreter() == []


def test_the_process_says_its_part(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(made())
    half = len(made()) // 2
    assert kineto_part.main([str(path), str(half), ""]) == 0
    part = msgspec.msgpack.decode(capfdbinary.readouterr().out, type=kineto_part.Part)
    assert (part.ended, part.content_bytes) == (True, len(made()))
    assert b"distributedInfo" in part.tail
    starts = kineto_part.unpacked(part.work)["start_ns"]
    assert starts.dtype == np.int64
    assert len(starts) + len(kineto_part.unpacked(part.host)["start_ns"]) == part.events - 0
    path.write_bytes(made().replace(b'"k4"', b'"k4'))
    assert kineto_part.main([str(path), str(half), ""]) == 1
    assert not capfdbinary.readouterr().out


def test_a_part_without_rows(tmp_path: Path) -> None:
    rows = [ROW.format("ac2g", "x", 1, 5, "") for _ in range(20)]
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": [json.loads(row) for row in rows]}))
    part = read_part(Source(path), 200, None)
    assert part is not None
    assert (part.work, part.host, part.names) == ({}, {}, [])
    assert 10 < part.events < 20
