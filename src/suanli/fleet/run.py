"""Traces to summaries on an engine: what is kept already is not made again, what fails is told beside the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from suanli.errors import Fault, InputError, nearest_names, shown
from suanli.fleet.job import Done, Job
from suanli.fleet.local import run_local
from suanli.fleet.on_ray import run_on_ray
from suanli.fleet.store import Store, source_of
from suanli.readers import gate

Progress = Callable[[int, int, str], None]  # done, of how many, which
ENGINES = ("local", "ray", "ray://HOST:PORT")
_CLIENT = "ray://"


@dataclass(frozen=True)
class Made:
    """What came of one trace: where its summary lies, or why there is none."""

    path: str
    summary: Path | None = None
    reused: bool = False
    faults: tuple[Fault, ...] = ()


def check_engine(engine: str) -> str:
    """The engine as it was given. Raises InputError for one that nobody knows."""
    if engine != "local":
        gate.check_fetch(engine, "--engine")
    place = engine.removeprefix(_CLIENT)
    host, _, port = place.rpartition(":")
    if engine in ("local", "ray") or (engine.startswith(_CLIENT) and host and port.isdigit()):
        return engine
    raise InputError(
        Fault(code="unknown_engine", message=f"unknown engine {shown(engine)}", where="--engine",
              expected=", ".join(ENGINES), nearest=nearest_names(engine, ENGINES))
    )  # fmt: skip


def summarise_all(
    traces: Sequence[str],
    store: Store,
    engine: str = "local",
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[Made, ...]:
    """The summary of every trace, in the order of `traces`, in the store. A break loses nothing that was done.

    Raises InputError for an engine that is not known or does not answer, MissingExtraError without its library.
    """
    check_engine(engine)
    made: dict[str, Made] = {}
    jobs = []
    for path in traces:
        source = source_of(path)
        kept = store.find(source)
        if kept is not None:
            made[path] = Made(path, kept, reused=True)
        else:
            jobs.append(Job(source, store.gpu))
    for done in _run(jobs, store, engine, workers) if jobs else ():
        made[done.job.source.path] = _made(done, store)
        if progress:
            progress(len(made), len(traces), Path(done.job.source.path).name)
    return tuple(made[path] for path in traces)


def _run(jobs: Sequence[Job], store: Store, engine: str, workers: int | None) -> Iterator[Done]:
    known = store.digests()
    if engine == "local":
        return run_local(jobs, known, workers)
    return run_on_ray(jobs, known, engine if engine.startswith(_CLIENT) else None)


def _made(done: Done, store: Store) -> Made:
    path = done.job.source.path
    if done.faults:
        return Made(path, faults=done.faults)
    if done.content is None:
        return Made(path, store.path_of(done.digest), reused=True)
    return Made(path, store.keep(done.digest, done.content))
