"""Traces to summaries: a break loses nothing, a second run does nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from suanli.errors import InputError
from suanli.fleet import run
from suanli.fleet.local import run_local
from suanli.fleet.store import Store


def test_a_second_run_makes_nothing(job: list[str], tmp_path: Path) -> None:
    first = run.summarise_all(job, Store(tmp_path / "s"), workers=1)
    assert [each.path for each in first] == job and not any(each.reused for each in first)
    stamps = [each.summary.stat().st_mtime_ns for each in first if each.summary]
    second = run.summarise_all(job, Store(tmp_path / "s"), workers=1)
    assert all(each.reused for each in second)
    assert [each.summary.stat().st_mtime_ns for each in second if each.summary] == stamps


def test_a_break_half_way_loses_nothing(job: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*args, **options):  # type: ignore[no-untyped-def]
        for count, done in enumerate(run_local(*args, **options)):
            if count == 2:
                raise KeyboardInterrupt
            yield done

    monkeypatch.setattr(run, "run_local", stopped)
    with pytest.raises(KeyboardInterrupt):
        run.summarise_all(job, Store(tmp_path / "s"), workers=1)
    assert len(list((tmp_path / "s").glob("*.parquet"))) == 2
    monkeypatch.undo()
    made = run.summarise_all(job, Store(tmp_path / "s"), workers=1)
    assert [each.reused for each in made] == [True, True, False, False]


def test_moved_files_are_known_by_their_digest(job: list[str], tmp_path: Path) -> None:
    run.summarise_all(job[:1], Store(tmp_path / "s"), workers=1)
    copy = tmp_path / "moved.json"
    copy.write_bytes(Path(job[0]).read_bytes())
    (made,) = run.summarise_all([str(copy)], Store(tmp_path / "s"), workers=1)
    assert made.reused and len(list((tmp_path / "s").iterdir())) == 1


def test_progress_and_faults(job: list[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("nothing")
    told: list[tuple[int, int, str]] = []
    made = run.summarise_all(
        [job[0], str(bad)], Store(tmp_path / "s"), workers=1, progress=lambda *each: told.append(each)
    )
    assert told == [(1, 2, "rank0.json"), (2, 2, "bad.json")]
    assert made[0].summary is not None and made[1].summary is None and made[1].faults


@pytest.mark.parametrize("engine", ["local", "ray", "ray://127.0.0.1:10001", "ray://head.cluster:10001"])
def test_engines(engine: str) -> None:
    assert run.check_engine(engine) == engine


@pytest.mark.parametrize("engine", ["", "rai", "dask", "ray://", "ray://host", "ray://host:x", "local:4"])
def test_engines_nobody_knows(engine: str) -> None:
    with pytest.raises(InputError) as caught:
        run.check_engine(engine)
    fault = caught.value.faults[0]
    assert (fault.message, fault.where) == (f"unknown engine {engine!r}", "--engine")
    assert fault.expected == "local, ray, ray://HOST:PORT"


def test_the_nearest_engine() -> None:
    with pytest.raises(InputError, match="nearest: ray"):
        run.check_engine("rai")
