"""Processes that are started afresh and know nothing of the program that starts them.

`multiprocessing` runs the main module of a program again in each process it spawns, which a script without a guard
(`if __name__ == "__main__"`) does not survive, nor one that is read from the standard input. What the workers do here
stands in modules, so the main module is left out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import spawn
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

_MAIN = "init_main_from_name", "init_main_from_path"
_STARTING = threading.Lock()


class UnguardedProcess(SpawnProcess):
    """A spawned process without the main module of its parent."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802  multiprocessing's name
        with _STARTING, _without_main():
            return SpawnProcess._Popen(process_obj)


class UnguardedContext(SpawnContext):
    """`spawn`, of UnguardedProcess. What is run must not stand in the main module. A fork instead would copy the locks
    of threads that libraries started.
    """

    Process = UnguardedProcess


@contextmanager
def _without_main() -> Iterator[None]:
    """What `multiprocessing` tells a process that this thread starts names no main module meanwhile."""
    told: Callable[..., dict[str, Any]] = spawn.get_preparation_data
    mine = threading.get_ident()

    def mostly(name: str) -> dict[str, Any]:
        found = told(name)
        return {key: found[key] for key in found if key not in _MAIN} if threading.get_ident() == mine else found

    spawn.get_preparation_data = mostly
    try:
        yield
    finally:
        spawn.get_preparation_data = told
