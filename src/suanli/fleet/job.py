"""What one worker does with one trace: read it, account for it, give back its summary as the bytes of a file."""

from __future__ import annotations

import os
from dataclasses import dataclass

from suanli.catalog.devices import find_device
from suanli.errors import Fault, SuanliError, shown
from suanli.explain.summary import summary_of
from suanli.fleet.store import Source, digest_of, summary_bytes
from suanli.readers.traces.front import read_trace


@dataclass(frozen=True)
class Job:
    """One trace to be summarised."""

    source: Source
    gpu: str | None = None


@dataclass(frozen=True)
class Done:
    """What came of a job: a summary, or that it is known already, or the faults of the trace."""

    job: Job
    digest: str = ""
    content: bytes | None = None  # None with a digest: it was known
    faults: tuple[Fault, ...] = ()
    pid: int = 0


def summarise_job(job: Job, known: frozenset[str] = frozenset()) -> Done:
    """The summary of a trace, unless its digest is among `known`. Errors of the file are told, never raised."""
    path = job.source.path
    try:
        digest = digest_of(path)
        if digest in known:
            return Done(job, digest, pid=os.getpid())
        gpu = find_device(job.gpu, where="--gpu") if job.gpu else None
        summary = summary_of(
            read_trace(path), gpu, digest=digest, size_bytes=job.source.size_bytes, mtime_ns=job.source.mtime_ns
        )
        return Done(job, digest, summary_bytes(summary), pid=os.getpid())
    except SuanliError as problem:
        return Done(job, faults=problem.faults, pid=os.getpid())
    except (OSError, MemoryError) as problem:
        said = getattr(problem, "strerror", None) or type(problem).__name__
        return failed(job, "unreadable", "the trace cannot be read", said)
    except Exception as problem:  # noqa: BLE001  a mistake of ours in one rank must not lose the other thousands
        return failed(job, "internal", "the trace broke its reader: please report it", shown(problem, 200))


def failed(job: Job, code: str, message: str, got: str | None = None) -> Done:
    """A job that came to nothing."""
    return Done(job, faults=(Fault(code=code, message=message, where=job.source.path, got=got),), pid=os.getpid())
