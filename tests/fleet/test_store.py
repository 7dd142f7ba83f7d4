"""Summaries on disk: whole or not at all, and found again by what they were made of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from suanli.errors import UnreadableFileError
from suanli.fleet.job import Job, summarise_job
from suanli.fleet.store import Store, digest_of, source_of


@pytest.fixture(scope="module")
def trace(made_fleet: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_fleet.write_job(made_fleet.Job(ranks=1, steps=1), tmp_path_factory.mktemp("job"))[0]


def kept(trace: Path, folder: Path, gpu: str | None = None) -> Store:
    done = summarise_job(Job(source_of(trace), gpu))
    assert done.content is not None
    store = Store(folder, gpu)
    store.keep(done.digest, done.content)
    return store


def test_a_new_store_finds_what_an_old_one_kept(trace: Path, tmp_path: Path) -> None:
    kept(trace, tmp_path / "s")
    found = Store(tmp_path / "s").find(source_of(trace))
    assert found == tmp_path / "s" / f"{digest_of(trace)}.parquet"
    assert Store(tmp_path / "s").digests() == {digest_of(trace)}


def test_a_relative_path_is_the_same_place(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(trace, tmp_path / "s")
    monkeypatch.chdir(trace.parent)
    assert Store(tmp_path / "s").find(source_of(trace.name)) is not None


def test_a_file_written_since_is_another(trace: Path, tmp_path: Path) -> None:
    copy = tmp_path / "t.json"
    copy.write_bytes(trace.read_bytes())
    kept(copy, tmp_path / "s")
    os.utime(copy, ns=(1, 1))
    store = Store(tmp_path / "s")
    assert store.find(source_of(copy)) is None  # asked by its time; its digest is still known
    assert digest_of(copy) in store.digests()


def test_another_gpu_is_another_summary(trace: Path, tmp_path: Path) -> None:
    kept(trace, tmp_path / "s", "h100-sxm")
    assert Store(tmp_path / "s").find(source_of(trace)) is None
    assert Store(tmp_path / "s", "h100-sxm").find(source_of(trace)) is not None


@pytest.mark.parametrize("content", [b"", b"PAR1", b"nonsense"])
def test_a_broken_summary_is_as_if_it_were_not_there(trace: Path, tmp_path: Path, content: bytes) -> None:
    store = kept(trace, tmp_path / "s")
    store.path_of(digest_of(trace)).write_bytes(content)
    assert Store(tmp_path / "s").digests() == frozenset()


def test_a_summary_under_another_name_is_not_trusted(trace: Path, tmp_path: Path) -> None:
    store = kept(trace, tmp_path / "s")
    path = store.path_of(digest_of(trace))
    path.rename(path.with_name("0" * 32 + ".parquet"))
    assert Store(tmp_path / "s").digests() == frozenset()


def test_a_summary_for_another_gpu_is_not_trusted_under_the_plain_name(trace: Path, tmp_path: Path) -> None:
    path = kept(trace, tmp_path / "s", "h100-sxm").path_of(digest_of(trace))
    path.rename(path.with_name(f"{digest_of(trace)}.parquet"))
    assert Store(tmp_path / "s").digests() == frozenset()


def test_digest_of_bytes(tmp_path: Path) -> None:
    """RFC 7693's own vector is for 64 bytes; of 16 the empty input gives this (Python's hashlib and b2sum -l 128)."""
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert digest_of(path) == "cae66941d9efbd404e4d88758ea67670"


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreadableFileError, match=r"the folder of summaries cannot be made in .*; got "):
        Store(tmp_path / "file")


def test_a_file_that_is_not_there_has_no_size() -> None:
    assert (source_of("/none").size_bytes, source_of("a\0b").size_bytes) == (0, 0)
