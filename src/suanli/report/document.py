"""What a report is made of: titled blocks of facts, tables and lines. No styling, no arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from suanli.report.chart import Chart


@dataclass(frozen=True)
class Facts:
    """Label, value, remark; one a line. Values are set flush right where they are numbers (`right`)."""

    title: str
    rows: tuple[tuple[str, str, str], ...]
    right: bool = True


@dataclass(frozen=True)
class Table:
    """Columns with a header; `right` says which are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...] = ()

    def aligned_right(self, index: int) -> bool:
        """Whether a column is set flush right: as told, else every one but the first."""
        return self.right[index] if self.right else index > 0


@dataclass(frozen=True)
class Lines:
    """Sentences."""

    title: str
    lines: tuple[str, ...]


Block = Facts | Table | Lines | Chart


@dataclass(frozen=True)
class Document:
    """A headline and its blocks."""

    headline: str
    blocks: tuple[Block, ...]
