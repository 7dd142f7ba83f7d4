"""Jobs as tasks of Ray: on this machine, on a cluster this process belongs to, or through `ray://HOST:PORT`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from suanli.errors import Fault, InputError, MissingExtraError
from suanli.fleet.job import Done, Job, failed, summarise_job
from suanli.fleet.local import Work

RETRIES = 3  # of a task whose worker or node died
_AHEAD = 2  # tasks per core that are handed over: enough to keep all busy, and the results fit here
_FEWEST_AHEAD = 8


def ray_module() -> Any:
    """Ray. Raises MissingExtraError where it is not installed."""
    try:
        import ray  # noqa: PLC0415  a second, and only this engine needs it
    except ImportError as problem:
        raise MissingExtraError(
            Fault(
                code="missing_extra",
                message="the engine ray needs Ray, which is not installed",
                where="--engine",
                hint="pip install 'suanli[ray]', or leave --engine out: it then runs on the cores of this machine.",
            )
        ) from problem
    return ray


def run_on_ray(
    jobs: Sequence[Job], known: frozenset[str] = frozenset(), address: str | None = None, work: Work = summarise_job
) -> Iterator[Done]:
    """What comes of each job, as it comes. Where Ray runs in this process already, that is used and left running.

    A task whose worker dies is done again elsewhere, up to three times; then its rank is given up and told.
    Raises MissingExtraError without Ray, InputError where the address does not answer.
    """
    ray = ray_module()
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, address)
    try:
        yield from _tasks(ray, jobs, known, work)
    finally:
        if ours:
            ray.shutdown()


def _connect(ray: Any, address: str | None) -> None:
    try:
        if address is None:
            ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
        else:
            ray.init(address=address, log_to_driver=False)
    except Exception as problem:
        raise InputError(
            Fault(code="no_cluster", message="the Ray cluster does not answer", where="--engine", got=str(address),
                  expected="ray://HOST:PORT of its client server, 10001 as a rule",
                  hint=f"Ray says: {str(problem).splitlines()[0][:200] if str(problem) else type(problem).__name__}")
        ) from problem  # fmt: skip


def _tasks(ray: Any, jobs: Sequence[Job], known: frozenset[str], work: Work) -> Iterator[Done]:
    task = ray.remote(max_retries=RETRIES, num_cpus=1)(work)
    seen = ray.put(known)
    waiting, running = list(reversed(jobs)), dict[Any, Job]()
    ahead = max(_FEWEST_AHEAD, _AHEAD * int(ray.cluster_resources().get("CPU", 1)))
    while waiting or running:
        while waiting and len(running) < ahead:
            job = waiting.pop()
            running[task.remote(job, seen)] = job
        try:
            ready, _ = ray.wait(list(running), num_returns=1)
        except Exception as problem:
            raise _lost(problem) from problem
        for reference in ready:
            job = running.pop(reference)
            yield _result(ray, reference, job)


def _lost(problem: Exception) -> InputError:
    """The connection itself broke: nothing more can come of it."""
    return InputError(
        Fault(code="cluster_lost", message="the Ray cluster was lost on the way", where="--engine",
              got=type(problem).__name__, hint="Start again with the same --cache: what was done is kept there.")
    )  # fmt: skip


def _result(ray: Any, reference: Any, job: Job) -> Done:
    try:
        done: Done = ray.get(reference)
    except ray.exceptions.RayError as problem:
        said = str(problem).splitlines()[0][:200] if str(problem) else type(problem).__name__
        return failed(job, "worker_died", f"the task was lost {RETRIES + 1} times", said)
    return done
