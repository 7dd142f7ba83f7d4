"""Summaries on disk: written whole or not at all, and found again by the digest of their trace."""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from suanli.errors import Fault, UnreadableFileError
from suanli.nouns.summary import COLUMNS, WORDS, RankAbout, RankSummary
from suanli.readers.summaries import KEY, SUFFIX, parquet, read_about
from suanli.units import MEBI
from suanli.written import write_bytes

_DIGEST_BYTES = 16
_ZSTD_LEVEL = 9  # 2 to 5 % smaller than level 3 for the same time; 19 takes seven times as long for 1 to 6 % more
_DELTAS = ("start_ns", "duration_ns")  # sorted, or small numbers: an eighth to a quarter of the file less


def summary_bytes(summary: RankSummary) -> bytes:
    """A summary as a Parquet file: zstd, texts by dictionary, times by their differences."""
    pq = parquet()
    out = io.BytesIO()
    table = _table(summary)
    with pq.ParquetWriter(
        out,
        table.schema,
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        use_dictionary=[name for name in COLUMNS if name not in _DELTAS],
        column_encoding=dict.fromkeys(_DELTAS, "DELTA_BINARY_PACKED"),
    ) as writer:
        writer.write_table(table)
        # of the file alone: what is of the table's schema is written twice
        writer.add_key_value_metadata({KEY: msgspec.json.encode(summary.about)})
    return out.getvalue()


def _table(summary: RankSummary) -> Any:
    import pyarrow as pa  # noqa: PLC0415  with `parquet()`

    def column(name: str) -> Any:
        values = summary.columns[name]
        if name in WORDS:
            places = pa.array(values, type=pa.int32(), mask=values < 0)
            return pa.DictionaryArray.from_arrays(places, pa.array(summary.words[name], type=pa.string()))
        kind = pa.from_numpy_dtype(np.dtype(COLUMNS[name][0]))
        missing = np.isnan(values) if name == "flops" else values < 0
        return pa.array(values, type=kind, mask=None if name in (*_DELTAS, "device", "stream") else missing)

    return pa.table({name: column(name) for name in COLUMNS})


def digest_of(path: str | os.PathLike[str]) -> str:
    """BLAKE2b of the bytes of a file, 32 hexadecimal digits. Raises OSError."""
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    with Path(path).open("rb") as file:
        while block := file.read(MEBI):
            found.update(block)
    return found.hexdigest()


@dataclass(frozen=True)
class Source:
    """A trace file as it lies there."""

    path: str
    size_bytes: int
    mtime_ns: int


def source_of(path: str | os.PathLike[str]) -> Source:
    """Path, size and time of a file; sizes of 0 where it cannot be asked: its reader will say why."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return Source(str(path), 0, 0)
    return Source(str(path), status.st_size, status.st_mtime_ns)


@dataclass(eq=False)
class Store:
    """A folder of summaries, one file a trace, named by the trace's digest and the device that was named for it.

    A file of it that cannot be read, or is of another version, is as if it were not there: it is made again.
    """

    folder: Path
    gpu: str | None = None
    _known: dict[str, Path] = field(default_factory=dict)
    _places: dict[tuple[str, int, int], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise UnreadableFileError(
                Fault(code="cannot_write", message="the folder of summaries cannot be made", where=str(self.folder),
                      got=problem.strerror or type(problem).__name__)
            ) from problem  # fmt: skip
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            try:
                self._take(path, read_about(path))
            except UnreadableFileError:
                continue

    def _take(self, path: Path, about: RankAbout) -> None:
        if about.gpu == self.gpu and about.digest and path.name == self.path_of(about.digest).name:
            self._known[about.digest] = path
            self._places[_place(about.path, about.size_bytes, about.mtime_ns)] = about.digest

    def path_of(self, digest: str) -> Path:
        """Where the summary of a trace of that digest lies, or will."""
        return self.folder / f"{digest}{'.' + self.gpu if self.gpu else ''}{SUFFIX}"

    def digests(self) -> frozenset[str]:
        """Traces whose summaries are here."""
        return frozenset(self._known)

    def find(self, source: Source) -> Path | None:
        """The summary of a file that was not written since, by its place, size and time; else None."""
        digest = self._places.get(_place(source.path, source.size_bytes, source.mtime_ns))
        return self._known.get(digest) if digest is not None and source.size_bytes else None

    def keep(self, digest: str, content: bytes) -> Path:
        """Write a summary. Raises UnreadableFileError."""
        path = self.path_of(digest)
        write_bytes(path, content)
        self._known[digest] = path
        return path


def _place(path: str, size: int, mtime: int) -> tuple[str, int, int]:
    try:
        return str(Path(path).resolve()), size, mtime
    except (OSError, ValueError, RuntimeError):
        return path, size, mtime
