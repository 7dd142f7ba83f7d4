"""Bounded reads of the head of a regular file: weights stay unread, pipes and devices are refused unopened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn

from suanli.errors import Fault, FaultList, UnreadableFileError
from suanli.readers import gate
from suanli.units import MEGA

MAX_HEADER = 100 * MEGA  # the bound of the safetensors format; no GGUF header in use is near it
MAX_LISTED = 20  # faults of one file that are listed one by one


def place(path: Path) -> str:
    """A path as messages show it."""
    text = str(path).replace("\0", "\\0")
    return text if len(text) < 300 else f"{text[:299]}…"


def refuse(path: Path, code: str, message: str, **parts: str) -> NoReturn:
    """Raise UnreadableFileError about a file."""
    raise UnreadableFileError(Fault(code=code, message=message, where=place(path), **parts))  # type: ignore[arg-type]


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """A regular file and its size. Raises UnreadableFileError for anything else."""
    gate.check_path(path)
    try:
        _check_regular(path, path.stat())
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as problem:
        if isinstance(problem, UnreadableFileError):
            raise
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        refuse(path, "no_file", f"the file cannot be opened: {reason}", hint="Check the path.")
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(stream.fileno())
        _check_regular(path, status)
        yield stream, status.st_size


def _check_regular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        refuse(path, "not_a_file", "not a regular file", expected="a file of weights or a model")


class Faults:
    """Faults of one file, the first few listed and the rest counted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.list = FaultList(UnreadableFileError)
        self.more = 0

    def add(self, code: str, message: str, at: str, **parts: str) -> None:
        """Record one, at a tensor or key of the file."""
        if len(self.list.faults) < MAX_LISTED:
            self.list.add(code=code, message=message, where=f"{place(self.path)}: {at}", **parts)
        else:
            self.more += 1

    def raise_if_any(self) -> None:
        """Raise one error with all of them."""
        if self.more:
            self.list.add(code="more_faults", message=f"{self.more:,} further faults", where=place(self.path))
        self.list.raise_if_any()
