"""Summaries of ranks: Parquet files that `suanli summarise` writes, back as columns.

What is said beside the columns stands under one key of the file's metadata, as JSON.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import msgspec
import numpy as np

from suanli.errors import Fault, MissingExtraError, UnreadableFileError
from suanli.nouns.summary import COLUMNS, SCHEMA, WORD, RankAbout, RankSummary
from suanli.readers import gate

MAGIC = b"PAR1"
KEY = b"suanli"
SUFFIX = ".parquet"


class _Schema(msgspec.Struct):
    """What is looked at first: the rest means something only where it fits."""

    schema: int


def parquet() -> ModuleType:
    """pyarrow's Parquet. Raises MissingExtraError where it is not installed."""
    try:
        import pyarrow.parquet as found  # noqa: PLC0415  a quarter of a second, and only fleets need it
    except ImportError as problem:
        raise MissingExtraError(
            Fault(
                code="missing_extra",
                message="summaries of ranks need pyarrow, which is not installed",
                hint="pip install 'suanli[traces]'",
            )
        ) from problem
    module: ModuleType = found
    return module


def is_summary(path: str | os.PathLike[str]) -> bool:
    """Whether a file is Parquet, by its first bytes. False for what cannot be read."""
    gate.check_path(path)
    try:
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_about(path: str | os.PathLike[str]) -> RankAbout:
    """What a summary says beside its columns. Raises UnreadableFileError as `read_summary` does."""
    return _about(path, _opened(path).metadata.metadata)


def read_summary(path: str | os.PathLike[str], columns: Collection[str] = tuple(COLUMNS)) -> RankSummary:
    """The summary in a file, with the columns named.

    Raises UnreadableFileError for what is no Parquet, no summary, of another schema, or lacks columns;
    MissingExtraError without pyarrow.
    """
    file = _opened(path)
    about = _about(path, file.metadata.metadata)
    missing = [name for name in COLUMNS if name not in file.schema_arrow.names]
    if missing:
        _refuse(path, "bad_summary", "the summary lacks columns", got=", ".join(missing))
    try:
        table = file.read(columns=list(columns), use_threads=False)
    except Exception as problem:  # noqa: BLE001  pyarrow has errors of several kinds for broken pages
        _refuse(path, "broken_summary", "the summary is broken", got=_short(problem))
    found: dict[str, Any] = {}
    words: dict[str, tuple[str, ...]] = {}
    for name in columns:
        if COLUMNS[name][0] == WORD:
            words[name], found[name] = _words(path, name, table[name])
        else:
            found[name] = _numbers(path, name, table[name])
    _check(path, found)
    return RankSummary(about=about, columns=found, words=words)


def _opened(path: str | os.PathLike[str]) -> Any:
    try:
        return parquet().ParquetFile(path)
    except OSError as problem:
        _refuse(
            path,
            "unreadable",
            "the summary cannot be read",
            got=os.strerror(problem.errno) if problem.errno else _short(problem),
        )
    except ValueError as problem:  # pyarrow.ArrowInvalid is one
        _refuse(path, "no_summary", "not a Parquet file", got=_short(problem))


def _about(path: str | os.PathLike[str], metadata: Mapping[bytes, bytes] | None) -> RankAbout:
    text = (metadata or {}).get(KEY)
    if text is None:
        _refuse(path, "no_summary", "a Parquet file, but no summary of a rank", expected="one of `suanli summarise`")
    try:
        schema = msgspec.json.decode(text, type=_Schema).schema
        if schema == SCHEMA:
            return msgspec.json.decode(text, type=RankAbout)
    except msgspec.MsgspecError as problem:
        _refuse(path, "bad_summary", "what the summary says of itself cannot be read", got=str(problem))
    raise _refused(
        path, "other_schema", "a summary of another version", got=f"schema {schema}", expected=f"schema {SCHEMA}",
        hint="Make it again from the trace: suanli summarise TRACE -o FILE.parquet.",
    )  # fmt: skip


def _words(path: str | os.PathLike[str], name: str, column: Any) -> tuple[tuple[str, ...], Any]:
    """Distinct texts, and the place of each row; -1 for none."""
    whole = column.combine_chunks()
    if hasattr(whole, "num_chunks"):  # a table without rows has no chunk
        whole = whole.chunk(0) if whole.num_chunks else None
    if whole is None:
        return (), np.zeros(0, dtype=np.int32)
    whole = whole if hasattr(whole, "dictionary") else whole.dictionary_encode()
    places = whole.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    if len(places) and not -1 <= places.min() <= places.max() < len(whole.dictionary):
        _refuse(path, "broken_summary", f"column {name} points beyond its texts")
    try:
        return tuple(str(each) for each in whole.dictionary.to_pylist()), places
    except UnicodeDecodeError as problem:
        _refuse(path, "broken_summary", f"column {name} holds what is no text", got=_short(problem))


def _numbers(path: str | os.PathLike[str], name: str, column: Any) -> Any:
    kind = COLUMNS[name][0]
    nothing = float("nan") if kind == "float64" else -1
    try:
        return column.fill_null(nothing).to_numpy().astype(kind)
    except (ValueError, TypeError, NotImplementedError) as problem:
        _refuse(path, "bad_summary", f"column {name} is not {kind}", got=_short(problem))


def _check(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    """A file that somebody else wrote may hold anything: no duration is negative."""
    if "duration_ns" in columns and (columns["duration_ns"] < 0).any():
        _refuse(path, "bad_summary", "the summary has negative durations")


def _short(problem: BaseException) -> str:
    return str(problem).splitlines()[0][:200] if str(problem) else type(problem).__name__


def _refuse(path: str | os.PathLike[str], code: str, message: str, **parts: Any) -> NoReturn:
    raise _refused(path, code, message, **parts)


def _refused(path: str | os.PathLike[str], code: str, message: str, **parts: Any) -> UnreadableFileError:
    return UnreadableFileError(Fault(code=code, message=message, where=str(path), **parts))
