"""The bytes of a trace file, unpacked where it is gzip, within bounds. Nothing is written."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from suanli.errors import Fault, UnreadableFileError
from suanli.nouns.trace import TraceFault
from suanli.readers.traces import sentences
from suanli.units import GIBI, MEBI

MAX_BYTES = 16 * GIBI  # of a trace, unpacked: far beyond what a profiler writes for one rank
GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"  # that a text is UTF-8, put there by editors
_PIECE, _LARGEST_PIECE = MEBI, 64 * MEBI


def read_unpacked(path: Path) -> tuple[bytes, tuple[TraceFault, ...]]:
    """The content of a regular file; of gzip what it packs, and a fault where its end is missing or broken. A mark of
    UTF-8 at its beginning is taken off.

    Raises UnreadableFileError for a file that is absent, a folder or device, empty, or larger than MAX_BYTES.
    """
    content = _content(path)
    if not content.startswith(GZIP):
        return content.removeprefix(_MARK), ()
    unpacked, whole = _unpacked(path, content)
    if not unpacked:
        refuse(path, "broken_gzip", "the gzip file holds nothing that can be read", hint="Copy it again.")
    unpacked = unpacked.removeprefix(_MARK)
    if whole:
        return unpacked, ()
    return unpacked, (TraceFault(code="broken-gzip", count=1, message=sentences.unpacked(len(unpacked))),)


def checked_size(path: Path) -> int:
    """Bytes of a regular file. Raises UnreadableFileError where it is none, or empty, or too large."""
    try:
        status = path.stat()
    except (OSError, ValueError) as problem:
        refuse(path, "no_file", f"the file cannot be opened: {reason(problem)}", hint="Check the path.")
    if not stat.S_ISREG(status.st_mode):
        refuse(path, "not_a_file", "not a regular file", expected="a trace of a profiler")
    if not status.st_size:
        refuse(path, "empty_file", "the file is empty", expected="a trace of a profiler")
    if status.st_size > MAX_BYTES:
        _too_large(path)
    return status.st_size


def reason(problem: Exception) -> str:
    """The system's own words, without the path again."""
    return problem.strerror or type(problem).__name__ if isinstance(problem, OSError) else str(problem)


def refuse(path: str | os.PathLike[str], code: str, message: str, **parts: Any) -> NoReturn:
    """Raise UnreadableFileError about this file."""
    text = str(path)
    where = (text if len(text) < 300 else f"{text[:299]}…").replace("\0", "\\0")
    raise UnreadableFileError(Fault(code=code, message=message, where=where, **parts)) from None


def _content(path: Path) -> bytes:
    checked_size(path)
    try:
        return path.read_bytes()
    except OSError as problem:
        refuse(path, "no_file", f"the file cannot be read: {reason(problem)}", hint="Check its permissions.")


def _unpacked(path: Path, content: bytes) -> tuple[bytes, bool]:
    """What could be unpacked, and whether that is all. Members of one file stand one after the other."""
    pieces: list[bytes] = []
    size, at, member = 0, 0, _member()
    while at < len(content):
        given, before = content[at : at + _PIECE], member.copy()
        try:
            piece = member.decompress(given, _LARGEST_PIECE)
        except zlib.error:
            return b"".join((*pieces, *_before_break(before, given))), False
        pieces.append(piece)
        size += len(piece)
        if size > MAX_BYTES:
            _too_large(path)
        at += len(given) - len(member.unconsumed_tail) - len(member.unused_data)
        if member.eof:
            if not content.startswith(GZIP, at):
                return b"".join(pieces), True  # what follows is padding
            member = _member()
    return b"".join(pieces), False


def _before_break(member: Any, piece: bytes) -> Iterator[bytes]:
    """What a piece that breaks holds before the break, by going through it byte by byte."""
    with suppress(zlib.error):
        for at in range(len(piece)):
            yield member.decompress(piece[at : at + 1])


def _member() -> Any:
    return zlib.decompressobj(wbits=31)  # 16 + 15: gzip, the largest window


def _too_large(path: Path) -> NoReturn:
    refuse(
        path,
        "too_large",
        "the trace is too large",
        expected=f"at most {MAX_BYTES // GIBI} GiB unpacked",
        hint="Record fewer steps.",
    )
