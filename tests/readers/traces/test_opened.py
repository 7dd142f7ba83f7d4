"""The bytes of trace files: plain, packed, cut off, or no file at all."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.errors import UnreadableFileError
from suanli.readers.traces import opened
from suanli.readers.traces.opened import read_unpacked

TEXT = b"".join(b"line %d of something that packs\n" % number for number in range(20_000))
PACKED = gzip.compress(TEXT)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "a.gz"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        gzip.compress(TEXT),
        gzip.compress(TEXT[:777]) + gzip.compress(TEXT[777:]),
        gzip.compress(TEXT) + bytes(512),
    ],
    ids=["plain", "gzip", "two members", "padding behind"],
)
def test_the_whole_content(tmp_path: Path, content: bytes) -> None:
    assert read_unpacked(written(tmp_path, content)) == (TEXT, ())


def test_what_can_be_unpacked_of_a_cut_file(tmp_path: Path) -> None:
    packed = gzip.compress(TEXT)
    content, faults = read_unpacked(written(tmp_path, packed[: len(packed) // 2]))
    assert TEXT.startswith(content)
    assert len(content) > len(TEXT) // 4
    sentence = f"the gzip file is cut off or broken: {len(content):,} bytes of it could be unpacked"
    assert [(fault.code, fault.message) for fault in faults] == [("broken-gzip", sentence)]


def test_a_broken_member_keeps_what_stands_before(tmp_path: Path) -> None:
    content, faults = read_unpacked(written(tmp_path, gzip.compress(b"good") + gzip.compress(TEXT)[:40]))
    assert (content[:4], len(faults)) == (b"good", 1)


@pytest.mark.parametrize("at", [-8, -4], ids=["check", "length"])
def test_a_file_that_is_wrong_only_at_its_end_is_read_whole(tmp_path: Path, at: int) -> None:
    packed = bytearray(PACKED)
    packed[at] ^= 1
    content, faults = read_unpacked(written(tmp_path, bytes(packed)))
    assert (content, [each.code for each in faults]) == (TEXT, ["broken-gzip"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\x1f\x8b", "the gzip file holds nothing that can be read"),
        (b"\x1f\x8bnonsense of some length", "the gzip file holds nothing that can be read"),
    ],
)
def test_nothing_to_read(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        read_unpacked(written(tmp_path, content))


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="not a regular file"):
        read_unpacked(tmp_path)
    with pytest.raises(UnreadableFileError, match="the file cannot be opened: No such file or directory"):
        read_unpacked(tmp_path / "none")
    with pytest.raises(UnreadableFileError, match="the file cannot be opened: embedded null byte"):
        read_unpacked(Path("a\0b"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableFileError, match="not a regular file"):
        read_unpacked(tmp_path / "pipe")


def test_a_small_file_that_unpacks_to_a_large_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "MAX_BYTES", 2**20)
    with pytest.raises(UnreadableFileError, match="the trace is too large"):
        read_unpacked(written(tmp_path, gzip.compress(bytes(2**21))))


@given(st.binary(max_size=60))
def test_any_bytes_behind_the_mark(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = written(tmp_path_factory.mktemp("x"), b"\x1f\x8b" + content)
    try:
        read_unpacked(path)
    except UnreadableFileError as problem:
        assert "gzip" in str(problem)
