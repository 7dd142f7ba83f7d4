"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from suanli.errors import Fault, UnreadableFileError


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file under a temporary name beside its place, then rename it.

    Raises UnreadableFileError where that cannot be done; nothing is left behind then.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).chmod(0o666 & ~_umask())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise UnreadableFileError(
            Fault(code="cannot_write", message="the file cannot be written", where=str(path),
                  got=problem.strerror or type(problem).__name__)
        ) from problem  # fmt: skip


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
