"""Many model types checked at once, each within a bound: processes of their own take a type, and give what was found.

A process that passes the bound is ended and another takes its place; the type is then said not to have run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import msgspec

from suanli.nouns.coverage import NOT_RUN, Covered
from suanli.readers.hf_types.mappings import TypeOfTask

SECONDS = 240.0  # for one type
MOST_PROCESSES = 8
Progress = Callable[[int, int, str], None]  # done, of how many, which


def missing_packages() -> tuple[str, ...]:
    """What formula against trace needs and is not installed."""
    return tuple(name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None)


def check_types(
    tasks: Sequence[TypeOfTask], configs: Sequence[str], *, processes: int | None = None, seconds: float = SECONDS,
    progress: Progress | None = None,
) -> tuple[Covered, ...]:  # fmt: skip
    """Every type's configs by formula and by trace, in the order given."""
    waiting: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    found: queue.SimpleQueue[tuple[int, Covered]] = queue.SimpleQueue()
    count = min(processes or os.cpu_count() or 1, MOST_PROCESSES, max(len(tasks), 1))
    for index in (*range(len(tasks)), *(None for _ in range(count))):
        waiting.put(index)
    workers = [_Worker(tasks, tuple(configs), seconds, waiting, found) for _ in range(count)]
    for worker in workers:
        worker.start()
    try:
        return _collected(tasks, found, progress)
    finally:
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join()


def _collected(
    tasks: Sequence[TypeOfTask], found: queue.SimpleQueue[tuple[int, Covered]], progress: Progress | None
) -> tuple[Covered, ...]:  # fmt: skip
    done: dict[int, Covered] = {}
    while len(done) < len(tasks):
        index, covered = found.get()
        done[index] = covered
        if progress is not None:
            progress(len(done), len(tasks), covered.model_type)
    return tuple(done[index] for index in range(len(tasks)))


class _Worker(threading.Thread):
    """Feeds one process at a time, and replaces it where it dies or takes too long."""

    def __init__(
        self, tasks: Sequence[TypeOfTask], configs: tuple[str, ...], seconds: float,
        waiting: queue.SimpleQueue[int | None], found: queue.SimpleQueue[tuple[int, Covered]],
    ) -> None:  # fmt: skip
        super().__init__(daemon=True)
        self.tasks, self.configs, self.seconds = tasks, configs, seconds
        self.waiting, self.found = waiting, found
        self.process: subprocess.Popen[str] | None = None
        self.stopped = False

    def run(self) -> None:
        """Until nothing waits."""
        while not self.stopped and (index := self.waiting.get()) is not None:
            self.found.put((index, self._checked(self.tasks[index])))
        self.stop()

    def stop(self) -> None:
        """End the process, and close what led to it."""
        self.stopped = True
        self._let_go()

    def _let_go(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            with suppress(BrokenPipeError):
                process.communicate()

    def _checked(self, task: TypeOfTask) -> Covered:
        if self.process is None or self.process.poll() is not None:
            self._let_go()
            self.process = started()
        process = self.process
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self.seconds, end)
        timer.daemon = True
        timer.start()
        try:
            line = self._asked(process, task)
        finally:
            timer.cancel()
        if line:
            return msgspec.json.decode(line, type=Covered)
        self._let_go()
        why = f"took more than {self.seconds:g} s" if late.is_set() else "the process that checked it ended"
        return not_run(task, why)

    def _asked(self, process: subprocess.Popen[str], task: TypeOfTask) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        asked = {
            "mapping": task.mapping, "model_type": task.model_type, "class_name": task.class_name,
            "configs": self.configs,
        }  # fmt: skip
        try:
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            return process.stdout.readline()
        except (BrokenPipeError, ValueError):
            return ""


def not_run(task: TypeOfTask, why: str) -> Covered:
    """A type of which nothing was found out."""
    return Covered(
        mapping=task.mapping, model_type=task.model_type, class_name=task.class_name, checks=(), status=NOT_RUN, why=why
    )


def started() -> subprocess.Popen[str]:
    """A process that checks the types it reads, a line each."""
    own = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "suanli.coverage_worker"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, **own, "PYTHONPATH": os.pathsep.join(filter(None, _paths()))},
    )  # fmt: skip


def _paths() -> Iterator[str]:
    yield from sys.path
