"""Tables of an SQLite file that a stranger made: real tables alone, columns by what exists, nothing of it executed.

The file is opened read-only and immutable, so that nothing is written beside it, neither a journal nor a lock. Views,
virtual tables, generated columns and indexes are code or copies of the file's own making: none is asked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suanli.readers.traces.opened import checked_size, refuse
from suanli.units import MEBI

Array = npt.NDArray[Any]
NONE = -(2**63)  # stands for NULL, and for whatever is no whole number
HEADER = b"SQLite format 3\0"
_ROWS = 65_536  # of one fetch
_LONGEST = 256 * MEBI  # of one text or blob
_PRAGMAS = ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON", "mmap_size = 0", "temp_store = MEMORY")


class Tables:
    """The tables of one open file."""

    def __init__(self, path: Path, connection: sqlite3.Connection, size_bytes: int) -> None:
        self.path, self._connection, self.size_bytes = path, connection, size_bytes
        self._columns = {name: self._columns_of(name) for name in self._real()}

    def __contains__(self, table: str) -> bool:
        return table in self._columns

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tables and views."""
        return tuple(self._columns)

    def has(self, table: str, column: str) -> bool:
        """Whether a real table has the column."""
        return column in self._columns.get(table, ())

    def whole(self, table: str, wanted: Sequence[str]) -> dict[str, Array]:
        """Columns as int64, NONE for NULL, for a column that is not there, and for what is no whole number."""
        there = [name for name in wanted if self.has(table, name)]
        chosen = ", ".join(f"CASE typeof({_q(name)}) WHEN 'integer' THEN {_q(name)} ELSE {NONE} END" for name in there)
        pieces = [np.array(rows, dtype=np.int64) for rows in self._fetched(table, chosen)] if there else []
        table_of = np.concatenate(pieces) if pieces else np.empty((0, len(there)), dtype=np.int64)
        columns = {name: table_of[:, place] for place, name in enumerate(there)}
        absent: Array = np.full(len(table_of), NONE, dtype=np.int64)
        return {name: columns.get(name, absent) for name in wanted}

    def values(self, table: str, wanted: Sequence[str]) -> list[tuple[Any, ...]]:
        """Rows with each column as SQLite gives it; None for a column that is not there."""
        there = [name for name in wanted if self.has(table, name)]
        if not there:
            return []
        chosen = ", ".join(_q(name) if name in there else "NULL" for name in wanted)
        return [row for rows in self._fetched(table, chosen) for row in rows]

    def count(self, table: str) -> int:
        """Rows of a table; 0 where it is not there."""
        if table not in self:
            return 0
        return int(self._connection.execute(f"SELECT count(*) FROM {_q(table)} NOT INDEXED").fetchone()[0])

    def _fetched(self, table: str, chosen: str) -> Iterator[list[tuple[Any, ...]]]:
        """Rows by pieces. A file of so many bytes cannot hold more rows: its pages go in circles."""
        cursor = self._connection.execute(f"SELECT {chosen} FROM {_q(table)} NOT INDEXED")
        count = 0
        while rows := cursor.fetchmany(_ROWS):
            count += len(rows)
            if count > self.size_bytes:
                raise sqlite3.DatabaseError(f"{table} gives more rows than the file has bytes")
            yield rows

    def _real(self) -> list[str]:
        found = self._connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        return [name for name, sql in found.fetchall() if str(sql).upper().startswith("CREATE TABLE")]

    def _columns_of(self, table: str) -> frozenset[str]:
        # table_info leaves generated and hidden columns out
        return frozenset(row[1] for row in self._connection.execute(f"PRAGMA table_info({_q(table)})"))


def _q(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def open_tables(path: Path) -> Iterator[Tables]:
    """The tables of an SQLite file; whatever SQLite finds wrong inside becomes an UnreadableFileError."""
    size = checked_size(path)
    with path.open("rb") as stream:
        if stream.read(len(HEADER)) != HEADER:
            refuse(path, "not_sqlite", "the file is no SQLite database", expected="nsys export --type sqlite REPORT")
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            _guarded(connection)
            yield Tables(path, connection, size)
        finally:
            connection.close()
    # UnicodeDecodeError: SQLite's own message quotes a damaged name, and Python cannot decode the message.
    except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, MemoryError, OverflowError) as problem:
        hint = "Export the report again: nsys export --type sqlite --force-overwrite true REPORT.nsys-rep."
        refuse(path, "broken_sqlite", "the SQLite database is broken", got=str(problem)[:200], hint=hint)


def _guarded(connection: sqlite3.Connection) -> None:
    """Settings under which nothing that the file defines can run."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
