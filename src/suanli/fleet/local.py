"""Jobs on the cores of this machine, one process each. A worker that dies takes nothing with it but its own trace."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection

from suanli.fleet.job import Done, Job, failed, summarise_job
from suanli.fleet.unguarded import UnguardedContext
from suanli.readers.cores import cores

Work = Callable[[Job, frozenset[str]], Done]


def run_local(
    jobs: Sequence[Job], known: frozenset[str] = frozenset(), workers: int | None = None, work: Work = summarise_job
) -> Iterator[Done]:
    """What comes of each job, as it comes. No more than `workers` traces are in memory at a time.

    Where a process dies (out of memory, killed), every trace that was being read is read again, alone; one that kills
    its process then too is given up and told.
    """
    count = min(workers or cores(), len(jobs))
    if count <= 1 or multiprocessing.current_process().daemon:  # a worker of a Pool may start none
        yield from (work(job, known) for job in jobs)
        return
    waiting, lost = list(reversed(jobs)), list[Job]()
    while waiting:
        yield from _pool(waiting, lost, known, count, work)
    for job in lost:
        yield _alone(job, known, work)


@contextmanager
def _executor(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with the block, and with this process however it ends: nobody waits for what they read."""
    context = UnguardedContext()
    reader, writer = context.Pipe(duplex=False)
    with reader, writer:
        executor = ProcessPoolExecutor(count, mp_context=context, initializer=_watch, initargs=(reader,))
        try:
            yield executor
        except BrokenProcessPool:
            raise
        except BaseException:
            writer.close()
            raise
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


def _watch(reader: Connection) -> None:
    threading.Thread(target=_end_with, args=(reader,), daemon=True).start()


def _end_with(reader: Connection) -> None:
    """End this process when the other end of a pipe is closed: by its owner, or by the system after that one died."""
    try:
        reader.recv_bytes()  # nothing is ever sent
    except (EOFError, OSError):
        os._exit(1)


def _pool(waiting: list[Job], lost: list[Job], known: frozenset[str], count: int, work: Work) -> Iterator[Done]:
    """Takes jobs off `waiting` until none is left or a process dies; then those under way are `lost`."""
    running: dict[Future[Done], Job] = {}
    try:
        with _executor(count) as executor:
            while waiting or running:
                while waiting and len(running) < count:
                    job = waiting.pop()
                    try:
                        running[executor.submit(work, job, known)] = job
                    except BrokenProcessPool:
                        waiting.append(job)
                        raise
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    done = future.result()  # raises where the process died
                    running.pop(future)
                    yield done
    except BrokenProcessPool:
        for future, job in running.items():
            if future.done() and future.exception() is None:
                yield future.result()
            else:
                lost.append(job)


def _alone(job: Job, known: frozenset[str], work: Work) -> Done:
    with _executor(1) as executor:
        try:
            return executor.submit(work, job, known).result()
        except BrokenProcessPool:
            return failed(
                job, "worker_died", "reading the trace killed its process twice", "no answer, as where memory runs out"
            )
