"""Ray: the same result as the cores of this machine, workers and a node killed half-way."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from suanli.api.folders import explain_folder
from suanli.errors import InputError, MissingExtraError
from suanli.fleet import on_ray
from suanli.fleet.job import Job, summarise_job
from suanli.fleet.store import source_of

SCENARIO = Path(__file__).with_name("ray_scenario.py")
SOURCE = Path(__file__).resolve().parents[2] / "src"
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")


def on_cluster(folder: Path, cache: Path, way: str, nodes: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, str(SCENARIO), str(folder), str(cache), way, nodes]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def compare(made_fleet: Any, folder: Path, cache: Path, ranks: int, way: str, nodes: str) -> None:
    made_fleet.write_job(made_fleet.Job(ranks=ranks, steps=2, slow={1: 1.3}, clocks={2: 10**9}), folder)
    said = on_cluster(folder, cache, way, nodes)
    assert said["killed"] and said["removed"] is (nodes == "one-dies")
    here = explain_folder(folder, workers=1)
    assert said["result"] == json.loads(here.to_json())["result"]
    assert said["result"]["lost"] == [] and len(said["result"]["ranks"]) == ranks
    assert len(list(cache.glob("*.parquet"))) == ranks


@needs_ray
@pytest.mark.full
def test_four_ranks_on_two_nodes_and_a_worker_dies(made_fleet: Any, tmp_path: Path) -> None:
    compare(made_fleet, tmp_path / "job", tmp_path / "cache", 4, "direct", "both-live")


@needs_ray
@pytest.mark.full
@pytest.mark.parametrize("way", ["direct", "client"])
def test_64_ranks_on_two_nodes_of_which_one_dies(made_fleet: Any, tmp_path: Path, way: str) -> None:
    compare(made_fleet, tmp_path / "job", tmp_path / "cache", 64, way, "one-dies")


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError) as caught:
        list(on_ray.run_on_ray([]))
    assert str(caught.value) == (
        "the engine ray needs Ray, which is not installed in --engine. "
        "pip install 'suanli[ray]', or leave --engine out: it then runs on the cores of this machine."
    )


class Stub:
    """Ray without Ray: tasks run when they are asked for, and are lost where they are told to be."""

    class exceptions:
        class RayError(Exception):
            pass

    def __init__(self, lost: str = "", answers: bool = True) -> None:
        self.lost, self.answers, self.most, self.shut = lost, answers, 0, False
        self.waiting: list[Any] = []

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: Any) -> None:
        if not self.answers:
            raise ConnectionError("ray client connection timeout\nmore")

    def shutdown(self) -> None:
        self.shut = True

    def put(self, value: Any) -> Any:
        return value

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def remote(self, **options: Any) -> Any:
        assert options == {"max_retries": 3, "num_cpus": 1}

        class Task:
            def __init__(self, work: Any, of: Stub) -> None:
                self.work, self.of = work, of

            def remote(self, job: Job, known: frozenset[str]) -> Any:
                reference = (job, known, self.work)
                self.of.waiting.append(reference)
                self.of.most = max(self.of.most, len(self.of.waiting))
                return reference

        return lambda work: Task(work, self)

    def wait(self, references: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        self.waiting.remove(references[-1])
        return [references[-1]], references[:-1]

    def get(self, reference: Any) -> Any:
        job, known, work = reference
        if self.lost and job.source.path.endswith(self.lost):
            raise self.exceptions.RayError("The worker died\nwith a long story")
        return work(job, known)


def test_tasks_come_back_in_any_order_and_a_lost_one_is_told(job: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stub = Stub(lost="rank1.json")
    monkeypatch.setattr(on_ray, "ray_module", lambda: stub)
    done = {each.job.source.path: each for each in on_ray.run_on_ray([Job(source_of(path)) for path in job])}
    assert set(done) == set(job) and stub.shut
    assert done[job[1]].faults[0].sentence() == f"the task was lost 4 times in {job[1]}; got The worker died."
    assert done[job[0]].content == summarise_job(Job(source_of(job[0]))).content


def test_no_more_is_handed_over_than_keeps_all_busy(job: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stub = Stub()
    monkeypatch.setattr(on_ray, "ray_module", lambda: stub)
    jobs = [Job(source_of(f"/none/{k}")) for k in range(40)]
    assert len(list(on_ray.run_on_ray(jobs))) == 40
    assert stub.most == 8  # 2 tasks a core, 8 at least


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "ray_module", lambda: Stub(answers=False))
    with pytest.raises(InputError) as caught:
        list(on_ray.run_on_ray([], address="ray://x:1"))
    assert str(caught.value) == (
        "the Ray cluster does not answer in --engine; got ray://x:1; expected ray://HOST:PORT of its client server, "
        "10001 as a rule. Ray says: ray client connection timeout"
    )


def test_a_cluster_that_is_lost_on_the_way(job: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Stub):
        def wait(self, references: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
            raise ConnectionError("gone")

    monkeypatch.setattr(on_ray, "ray_module", Gone)
    with pytest.raises(InputError) as caught:
        list(on_ray.run_on_ray([Job(source_of(job[0]))]))
    assert str(caught.value) == (
        "the Ray cluster was lost on the way in --engine; got ConnectionError. "
        "Start again with the same --cache: what was done is kept there."
    )
