"""Packed files are streamed; what is broken or hostile in the packing is said."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zipfile
from pathlib import Path

import pytest

from suanli.errors import UnreadableFileError
from suanli.readers.traces import source
from suanli.readers.traces.source import Source

TEXT = bytes(range(256)) * 20_000  # five megabytes: several blocks
PACKED = gzip.compress(TEXT)


def content(path: Path) -> bytes:
    return b"".join(Source(path).blocks())


def zipped(**members: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("@MACOSX", "__MACOSX").replace("@", "/"), data)
    return made.getvalue()


@pytest.fixture(params=["isal", "zlib"])
def inflater(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "zlib":
        monkeypatch.setitem(sys.modules, "isal", None)
    else:
        pytest.importorskip("isal", reason="half the time for gzip: pip install 'suanli[traces]'")


@pytest.mark.parametrize(
    "packed",
    [
        TEXT,
        gzip.compress(TEXT),
        gzip.compress(TEXT[:999]) + gzip.compress(TEXT[999:]),
        PACKED + b"\0" * 99,
    ],
    ids=["plain", "gzip", "two members", "zeros behind"],
)
def test_content(tmp_path: Path, packed: bytes, inflater: None) -> None:
    (tmp_path / "x").write_bytes(packed)
    file = Source(tmp_path / "x")
    blocks = list(file.blocks())
    assert b"".join(blocks) == TEXT
    assert (file.unpacked_bytes, file.faults) == (len(TEXT), [])
    assert max(map(len, blocks)) <= 2 * source.BLOCK_BYTES
    assert b"".join(file.blocks()) == TEXT  # and once more


@pytest.mark.parametrize("packed", [TEXT, PACKED, zipped(trace=TEXT)], ids=["plain", "gzip", "zip"])
@pytest.mark.parametrize("begin", [0, 1, 999, source.BLOCK_BYTES, len(TEXT) - 1, len(TEXT), len(TEXT) + 9])
def test_content_from_a_place_on(tmp_path: Path, packed: bytes, begin: int) -> None:
    (tmp_path / "x").write_bytes(packed)
    file = Source(tmp_path / "x")
    assert b"".join(file.blocks(begin)) == TEXT[begin:]
    assert file.unpacked_bytes == max(len(TEXT), begin if packed is TEXT else 0)


@pytest.mark.parametrize(
    ("packed", "said"),
    [
        (TEXT, len(TEXT)), (PACKED, len(TEXT)), (b"", 0), (zipped(trace=TEXT), None),
        (PACKED[:-4] + b"\1\0\0\0", None),  # shorter than it is packed
        (gzip.compress(TEXT) + gzip.compress(TEXT * 2), 2 * len(TEXT)),  # of its last member
        (b"\x1f\x8b", None),
    ],
    ids=["plain", "gzip", "empty", "zip", "no such length", "two members", "no gzip"],
)  # fmt: skip
def test_how_long_a_content_is_said_to_be(tmp_path: Path, packed: bytes, said: int | None) -> None:
    (tmp_path / "x").write_bytes(packed)
    assert Source(tmp_path / "x").content_bytes() == said


def test_zip_of_one_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(zipped(**{"trace": TEXT, "@MACOSX@trace": b"", "a@": b""}))
    assert content(tmp_path / "x") == TEXT


@pytest.mark.parametrize(
    ("members", "got"),
    [
        ({"a": b"1", "b": b"2"}, "2 files: 'a', 'b'"),
        ({"a": b"", "b": b"", "c": b"", "d": b""}, "4 files: 'a', 'b', 'c' …"),
        ({}, "no file"),
    ],
)
def test_zip_of_several_files_is_refused(tmp_path: Path, members: dict[str, bytes], got: str) -> None:
    made = zipped(**members) if members else zipped(**{"folder@": b""})
    (tmp_path / "x").write_bytes(made)
    with pytest.raises(UnreadableFileError) as caught:
        content(tmp_path / "x")
    assert caught.value.faults[0].got == got
    assert caught.value.faults[0].message == "the zip does not hold one file alone"


@pytest.mark.parametrize("cut", [20, 1_000, -30, -4])
def test_a_cut_gzip_gives_what_stands_before(tmp_path: Path, cut: int, inflater: None) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(TEXT)[:cut])
    file = Source(tmp_path / "x")
    assert TEXT.startswith(b"".join(file.blocks()))
    assert [(each.code, each.message) for each in file.faults] == [
        ("truncated", "the gzip ends before its end: the file was cut")
    ]


def test_a_broken_gzip_gives_what_stands_before(tmp_path: Path, inflater: None) -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[len(packed) // 2 : len(packed) // 2 + 500] = b"\xff" * 500
    (tmp_path / "x").write_bytes(packed)
    file = Source(tmp_path / "x")
    assert TEXT.startswith(b"".join(file.blocks())[:100])
    assert [each.code for each in file.faults] == ["broken-gzip"]


@pytest.mark.parametrize("at", [-8, -4], ids=["check", "length"])
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("read_bytes", [16, 256, source.READ_BYTES])
def test_a_gzip_that_is_wrong_only_at_its_end_is_read_whole(
    tmp_path: Path, at: int, members: int, read_bytes: int, inflater: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "READ_BYTES", read_bytes)
    packed = bytearray(PACKED * members)
    packed[at] ^= 1
    (tmp_path / "x").write_bytes(packed)
    file = Source(tmp_path / "x")
    blocks = list(file.blocks())
    assert b"".join(blocks) == TEXT * members
    assert len(blocks) <= len(TEXT) * members // source.BLOCK_BYTES + 2
    assert [each.code for each in file.faults] == ["broken-gzip"]
    assert file.faults[0].message.endswith("): what stands behind the break is not read")


def test_a_zip_with_a_wrong_check_is_read_nearly_to_its_end(tmp_path: Path) -> None:
    """Of the last block, with which zipfile sees that the check is wrong, only what it unpacks at once is lost."""
    packed = bytearray(zipped(trace=TEXT))
    for header, at in ((b"PK\x03\x04", 14), (b"PK\x01\x02", 16)):
        packed[packed.index(header) + at] ^= 1
    (tmp_path / "x").write_bytes(packed)
    file = Source(tmp_path / "x")
    found = b"".join(file.blocks())
    assert TEXT.startswith(found)
    assert len(found) >= len(TEXT) - 8192
    assert [each.code for each in file.faults] == ["broken-zip"]


def test_a_file_that_fails_while_it_is_read_is_no_broken_gzip(tmp_path: Path) -> None:
    def fails(done: int, size: int) -> None:
        raise RuntimeError("stop")

    (tmp_path / "x").write_bytes(PACKED)
    with pytest.raises(RuntimeError, match="stop"):
        list(Source(tmp_path / "x", fails).blocks())


@pytest.mark.parametrize("damage", ["cut", "method", "password"])
def test_a_broken_zip(tmp_path: Path, damage: str) -> None:
    packed = bytearray(zipped(trace=TEXT))
    if damage == "cut":
        packed = packed[:200]
    else:
        central = packed.rindex(b"PK\1\2")
        packed[central + (10 if damage == "method" else 8)] ^= 0x63 if damage == "method" else 1
        packed[8 if damage == "method" else 6] ^= 0x63 if damage == "method" else 1
    (tmp_path / "x").write_bytes(packed)
    with pytest.raises(UnreadableFileError, match="the zip cannot be unpacked"):
        content(tmp_path / "x")


def test_a_bomb_is_not_unpacked_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inflater: None) -> None:
    monkeypatch.setattr(source, "BOMB_BYTES", 1_000_000)
    (tmp_path / "x").write_bytes(gzip.compress(b"\0" * 50_000_000))  # 1,030 times
    seen = 0
    with pytest.raises(UnreadableFileError, match="the file unpacks to more than 400 times its size"):
        for block in Source(tmp_path / "x").blocks():
            seen += len(block)
    assert seen < 30_000_000


def test_progress_counts_bytes_of_the_file(tmp_path: Path) -> None:
    for packed in (TEXT, gzip.compress(TEXT), zipped(trace=TEXT)):
        (tmp_path / "x").write_bytes(packed)
        told: list[tuple[int, int]] = []
        list(Source(tmp_path / "x", lambda done, total: told.append((done, total))).blocks())  # noqa: B023
        assert {total for _, total in told} == {len(packed)}
        assert sorted(told) == told
        assert told[-1][0] > 0.9 * len(packed)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(
        UnreadableFileError, match=r"the trace cannot be read in .*; got No such file or directory\. Check the path\."
    ):
        Source(tmp_path / "absent")
    with pytest.raises(UnreadableFileError, match=r"a trace is a file in .*; got a folder"):
        Source(tmp_path)
    with pytest.raises(UnreadableFileError, match="the trace cannot be read"):
        Source("a\0b")


def test_head(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(TEXT))
    assert Source(tmp_path / "x").head(300) == TEXT[:300]


def test_what_cannot_be_read_twice_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, got in ((tmp_path / "pipe", "a stream"), ("-", "No such file or directory")):
        with pytest.raises(UnreadableFileError) as problem:
            Source(path)
        assert str(problem.value).endswith(f"; got {got}. It is read more than once: write it to a file first.")
