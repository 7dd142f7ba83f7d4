"""A file is whole or not there, and what stood there before stays where writing fails."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from suanli.errors import UnreadableFileError
from suanli.written import write_bytes


def test_what_stood_there_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"longer than what comes")
    write_bytes(path, b"abc")
    assert path.read_bytes() == b"abc"
    assert [each.name for each in tmp_path.iterdir()] == ["x.parquet"]


def test_others_may_read_it_as_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "x", b"")
        assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640
        assert os.umask(0o027) == 0o027  # asked for, and left as it was
    finally:
        os.umask(before)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match=r"the file cannot be written in .*; got No such file or directory"):
        write_bytes(tmp_path / "none" / "x", b"abc")


def test_nothing_is_left_where_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UnreadableFileError, match=r"the file cannot be written in .*; got No space left on device"):
        write_bytes(tmp_path / "x.parquet", b"abc")
    assert list(tmp_path.iterdir()) == []
