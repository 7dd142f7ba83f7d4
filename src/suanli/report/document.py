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


@dataclass(frozen=True)
class Prose:
    """Paragraphs, broken into lines where they are shown, never wider than is good to read."""

    title: str
    paragraphs: tuple[str, ...]

    @property
    def rows(self) -> tuple[str, ...]:
        """What makes it empty or not, as other blocks have it."""
        return self.paragraphs


@dataclass(frozen=True)
class Picture:
    """A picture in characters, shown as it is."""

    title: str
    rows: tuple[str, ...]


Block = Facts | Table | Lines | Chart | Prose | Picture


@dataclass(frozen=True)
class Document:
    """A headline and its blocks."""

    headline: str
    blocks: tuple[Block, ...]
