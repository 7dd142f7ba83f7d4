"""Processes of this machine: every job comes back, whatever becomes of a worker."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from suanli.fleet.job import Done, Job, summarise_job
from suanli.fleet.local import run_local
from suanli.fleet.store import source_of


def jobs(paths: list[str]) -> list[Job]:
    return [Job(source_of(path)) for path in paths]


@pytest.fixture(scope="module")
def alone(job: list[str]) -> dict[str, Done]:
    """Done one after the other in this process."""
    return {done.job.source.path: done for done in run_local(jobs(job), workers=1)}


def contents(done: list[Done]) -> dict[str, bytes | None]:
    return {each.job.source.path: each.content for each in done}


def test_processes_give_what_one_after_the_other_gives(job: list[str], alone: dict[str, Done]) -> None:
    done = list(run_local(jobs(job), workers=2))
    assert contents(done) == contents(list(alone.values()))
    assert len({each.pid for each in done} | {next(iter(alone.values())).pid}) > 1  # others than this one


def test_traces_are_read_at_the_same_time(job: list[str], alone: dict[str, Done], dying: ModuleType) -> None:
    """HTA #24: ranks were looked at one after the other. Here neither of two is done before both are under way."""
    done = list(run_local(jobs(job[:2]), workers=2, work=dying.meeting))
    assert contents(done) == {path: alone[path].content for path in job[:2]}
    assert len({each.pid for each in done}) == 2


def test_a_worker_that_dies_loses_nothing(job: list[str], alone: dict[str, Done], dying: ModuleType) -> None:
    done = list(run_local(jobs(job), workers=2, work=dying.once))
    assert contents(done) == contents(list(alone.values()))


def test_a_trace_that_always_kills_its_worker_is_told_and_the_rest_goes_on(
    job: list[str], alone: dict[str, Done], dying: ModuleType
) -> None:
    done = {each.job.source.path: each for each in run_local(jobs(job), workers=2, work=dying.always)}
    bad = done.pop(job[2])
    assert bad.content is None
    assert bad.faults[0].sentence() == (
        f"reading the trace killed its process twice in {job[2]}; got no answer, as where memory runs out."
    )
    assert contents(list(done.values())) == {path: alone[path].content for path in job if path != job[2]}


def test_what_is_known_is_not_done_again(job: list[str], alone: dict[str, Done]) -> None:
    known = frozenset({alone[job[0]].digest})
    done = {each.job.source.path: each for each in run_local(jobs(job), known, workers=1)}
    assert (done[job[0]].content, done[job[0]].digest) == (None, alone[job[0]].digest)
    assert done[job[1]].content is not None


def test_no_jobs() -> None:
    assert list(run_local([])) == []


def test_a_trace_that_cannot_be_read_is_told(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "bad.json"
    path.write_text("no trace at all")
    done = summarise_job(Job(source_of(path)))
    assert done.content is None and done.faults[0].where == str(path)
    gone = summarise_job(Job(source_of(tmp_path / "none")))
    assert (
        gone.faults[0].sentence() == f"the trace cannot be read in {tmp_path / 'none'}; got No such file or directory."
    )


def test_a_mistake_of_ours_in_one_rank_loses_no_other(job: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import suanli.fleet.job as module

    def broken(*_: object) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(module, "read_trace", broken)
    done = summarise_job(Job(source_of(job[0])))
    assert done.faults[0].sentence() == (
        f"the trace broke its reader: please report it in {job[0]}; got ZeroDivisionError('of ours')."
    )


def test_a_worker_of_a_pool_reads_one_after_the_other(
    job: list[str], alone: dict[str, Done], dying: ModuleType
) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(dying.nested, (jobs(job[:2]),)) == [alone[path].content for path in job[:2]]


_SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv.pop(1))
import dying_work
from suanli.fleet.job import Job
from suanli.fleet.local import run_local
from suanli.fleet.store import source_of
next(run_local([Job(source_of(path)) for path in sys.argv[1:]], workers=2, work=dying_work.long))
"""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_whoever_started_it(job: list[str], dying: ModuleType, end: signal.Signals) -> None:
    """They hold the standard output open that they were started with: where it ends, they have ended."""
    command = [sys.executable, "-c", _SCRIPT, str(Path(str(dying.__file__)).parent), *job[:2]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = b""
        while said.count(b"begun") < 2:  # two write at once, and their line ends may come together
            said += process.stdout.read1(99)
        process.send_signal(end)
        assert process.communicate(timeout=30)[0].strip() == b""
    assert process.returncode != 0
