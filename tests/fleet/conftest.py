"""A job of four ranks, and workers that die as they are told."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DYING = '''
import os, signal, time
from pathlib import Path
from suanli.fleet.job import summarise_job
from suanli.fleet.local import run_local

def once(job, known):
    """Dies at its first look at rank 2, as for want of memory."""
    mark = Path(__file__).with_name("died")
    if job.source.path.endswith("rank2.json") and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return summarise_job(job, known)

def always(job, known):
    if job.source.path.endswith("rank2.json"):
        os.kill(os.getpid(), signal.SIGKILL)
    return summarise_job(job, known)

def nested(jobs):
    return [done.content for done in run_local(jobs, workers=2)]

def long(job, known):
    print("begun", flush=True)
    time.sleep(60)

def meeting(job, known):
    """Goes on only while another job is under way too."""
    folder = Path(__file__).parent
    (folder / f"{Path(job.source.path).stem}.met").touch()
    until = time.monotonic() + 20
    while len(list(folder.glob("*.met"))) < 2:
        if time.monotonic() > until:
            raise TimeoutError("alone")
        time.sleep(0.01)
    return summarise_job(job, known)
'''


@pytest.fixture(scope="session")
def job(made_fleet: Any, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("job")
    return [str(path) for path in made_fleet.write_job(made_fleet.Job(ranks=4, steps=2), folder)]


@pytest.fixture
def dying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module that processes of their own can import too."""
    import importlib

    (tmp_path / "dying_work.py").write_text(DYING, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("dying_work", None)
    return importlib.import_module("dying_work")
