"""A file of a trace as blocks of its content: plain, gzip or zip, streamed, nothing unpacked to disk."""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from suanli.errors import Fault, UnreadableFileError, shown
from suanli.nouns.trace import TraceFault
from suanli.readers import gate
from suanli.units import GIBI, KIBI, MEBI

Progress = Callable[[int, int], None]  # bytes of the file read so far, bytes it has
BLOCK_BYTES = MEBI  # records of that much text fit the caches
READ_BYTES = 256 * KIBI  # of a packed file at a time: what it unpacks to is given on by blocks
_SMALL_BYTES = 4 * KIBI  # what zipfile unpacks at once at least
_ZIP_ERRORS = zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError
BOMB_RATIO, BOMB_BYTES = 400, GIBI  # traces pack 10 to 60 times
_STREAM = "It is read more than once: write it to a file first."
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"


def refuse(path: str | os.PathLike[str], code: str, message: str, **parts: Any) -> NoReturn:
    """Raise the error that says why a file is not read."""
    where = str(path) if len(str(path)) < 300 else f"{str(path)[:299]}…"
    raise UnreadableFileError(Fault(code=code, message=message, where=where.replace("\0", "\\0"), **parts))


class _BreakError(Exception):
    """What is packed cannot be unpacked from here on."""


class Source:
    """The content of one file. `blocks` can be asked for again; `faults` says what was wrong with the packing.

    Raises UnreadableFileError for what is no file, cannot be read, or is no archive of one file.
    """

    def __init__(self, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
        self.path, self.progress = str(path), progress
        self.faults: list[TraceFault] = []
        self.unpacked_bytes = 0
        gate.check_path(path)
        try:
            status = Path(path).stat()
        except (OSError, ValueError) as problem:
            self._unreadable(problem)
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a stream"
            refuse(path, "no_file", "a trace is a file", got=kind,
                   hint=None if kind == "a folder" else _STREAM)  # fmt: skip
        self.size = status.st_size

    def blocks(self, begin: int = 0) -> Iterator[bytes]:
        """The content, unpacked, in blocks of about a megabyte, from its byte `begin` on."""
        self.unpacked_bytes, self.faults = 0, []
        try:
            with Path(self.path).open("rb") as file:
                for block in self._content(file, begin):
                    self.unpacked_bytes += len(block)
                    self._check_ratio()
                    if self.unpacked_bytes > begin:
                        yield block[max(begin - self.unpacked_bytes, -len(block)) :]
        except UnreadableFileError:
            raise  # it is an OSError too, and says already what is wrong
        except OSError as problem:
            self._unreadable(problem)

    def head(self, size: int) -> bytes:
        """The first bytes of the content."""
        found = b""
        for block in self.blocks():
            found += block
            if len(found) >= size:
                break
        return found[:size]

    def content_bytes(self) -> int | None:
        """How long the content is by what the file says, or by its size; None where it does not say or cannot be right.

        A gzip says it of its last member, and only the last 32 bits: it is a hint.
        """
        try:
            with Path(self.path).open("rb") as file:
                magic = file.read(4)
                if magic == ZIP:
                    return None
                if magic[:2] != GZIP:
                    return self.size
                file.seek(-4, os.SEEK_END)
                said = int.from_bytes(file.read(4), "little")
        except OSError:
            return None  # whoever reads it is told
        return said if said > self.size else None

    def _content(self, file: BinaryIO, begin: int) -> Iterator[bytes]:
        """From the beginning where it is packed, from `begin` where it is not."""
        magic = file.read(4)
        file.seek(0)
        if magic[:2] == GZIP:
            return self._gzip(file)
        if magic == ZIP:
            return self._zip(file)
        self.unpacked_bytes = begin
        file.seek(begin)
        return self._plain(file, BLOCK_BYTES)

    def _plain(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        done = 0
        while block := file.read(size):
            done += len(block)
            if self.progress:
                self.progress(min(done, self.size), self.size)
            yield block

    def _gzip(self, file: BinaryIO) -> Iterator[bytes]:
        """Members one after another; what stands before a break is given, and the break is a fault."""
        try:
            yield from _grouped(_members(self._plain(file, READ_BYTES)))
        except EOFError:
            self._broken("truncated", "the gzip ends before its end: the file was cut")
        except _BreakError as problem:
            self._broken("broken-gzip", f"the gzip is broken ({problem}): what stands behind the break is not read")
            yield from _grouped(_before_break(file, self.unpacked_bytes))

    def _zip(self, file: BinaryIO) -> Iterator[bytes]:
        try:
            yield from self._unzipped(file, BLOCK_BYTES)
        except _ZIP_ERRORS as problem:
            given = self.unpacked_bytes
            rest = self._rest_of_zip(file, given)
            if not given and not rest:
                refuse(self.path, "broken_zip", "the zip cannot be unpacked", got=str(problem), hint="Copy it again.")
            self._broken("broken-zip", f"the zip is broken ({problem}): what stands behind the break is not read")
            yield rest

    def _unzipped(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        with zipfile.ZipFile(file) as archive, archive.open(self._member(archive)) as member:
            while block := member.read(size):
                if self.progress:
                    self.progress(min(file.tell(), self.size), self.size)
                yield block

    def _rest_of_zip(self, file: BinaryIO, given: int) -> bytes:
        """What stands before the break, behind the bytes that were given: of small blocks little is lost."""
        rest = b""
        done = 0
        with suppress(*_ZIP_ERRORS):
            for block in self._unzipped(file, _SMALL_BYTES):
                done += len(block)
                rest += block[max(given - done, -len(block)) :] if done > given else b""
        return rest

    def _member(self, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
        members = [
            each for each in archive.infolist()
            if not (each.is_dir() or each.filename.startswith("__MACOSX/") or Path(each.filename).name.startswith("."))
        ]  # fmt: skip
        if len(members) == 1:
            return members[0]
        names = ", ".join(shown(each.filename) for each in members[:3]) + (" …" if len(members) > 3 else "")
        refuse(
            self.path, "many_members", "the zip does not hold one file alone",
            got=f"{len(members)} files: {names}" if members else "no file",
            hint="Unpack it and give the trace that is meant.",
        )  # fmt: skip

    def _check_ratio(self) -> None:
        if self.unpacked_bytes > max(BOMB_BYTES, BOMB_RATIO * self.size):
            refuse(
                self.path, "too_large", f"the file unpacks to more than {BOMB_RATIO} times its size",
                got=f"{self.size:,} bytes packed", hint="No profiler writes that; unpack it by hand if it is meant.",
            )  # fmt: skip

    def _broken(self, code: str, message: str) -> None:
        self.faults.append(TraceFault(code=code, count=1, message=message))

    def _unreadable(self, problem: Exception) -> NoReturn:
        said = getattr(problem, "strerror", None) or str(problem)
        hint = _STREAM if self.path == "-" else "Check the path." if isinstance(problem, FileNotFoundError) else None
        refuse(self.path, "unreadable", "the trace cannot be read", got=said, hint=hint)


def _inflater() -> Any:
    """isal's where it is installed, half as long as zlib's."""
    try:
        from isal import isal_zlib  # noqa: PLC0415
    except ImportError:
        return zlib.decompressobj(wbits=31)
    return isal_zlib.decompressobj(wbits=31)


def _members(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The content of a gzip in pieces. Raises EOFError where its end is missing, and _BreakError."""
    unpack = _inflater()
    for piece in pieces:
        data = piece
        while data:
            try:
                block = unpack.decompress(data, BLOCK_BYTES)
            except Exception as problem:  # noqa: BLE001  zlib and isal have errors of their own
                raise _BreakError(problem) from None
            yield block
            data, unpack = _rest(unpack)
    if not unpack.eof:
        raise EOFError


def _grouped(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same in blocks of about a megabyte; all of them also where it ends with an error."""
    kept: list[bytes] = []
    size = 0
    try:
        for part in parts:
            kept.append(part)
            size += len(part)
            if size >= BLOCK_BYTES:
                yield b"".join(kept)
                kept, size = [], 0
    except (EOFError, _BreakError):
        yield b"".join(kept)
        raise
    yield b"".join(kept)


def _before_break(file: BinaryIO, given: int) -> Iterator[bytes]:
    """What a broken gzip holds behind the bytes that were given. Of a piece that breaks all content is lost: so it is
    unpacked once more, what was read last byte by byte.
    """
    sound = max(file.tell() - READ_BYTES, 0) // READ_BYTES * READ_BYTES
    file.seek(0)
    done = 0
    with suppress(_BreakError):
        for block in _members(iter(lambda: file.read(READ_BYTES if file.tell() < sound else 1), b"")):
            done += len(block)
            if done > given:
                yield block[max(given - done, -len(block)) :]


def _rest(unpack: Any) -> tuple[bytes, Any]:
    """What is still to be unpacked, and by whom: a gzip may have several members, and zeros after the last."""
    if not unpack.eof:
        return unpack.unconsumed_tail, unpack
    after = unpack.unused_data.lstrip(b"\0")
    return (after, _inflater()) if after else (b"", unpack)
