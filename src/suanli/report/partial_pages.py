"""The report of `count` for a program or a weight file."""

from __future__ import annotations

from suanli.nouns.partial import PartialCount
from suanli.nouns.result import Result
from suanli.report.common import NOT_GIVEN, closing, exact, share
from suanli.report.document import Document, Facts, Lines, Table
from suanli.units import format_bytes, format_count, format_flops


def partial_document(result: Result) -> Document:
    """Parameters, FLOPs, bytes by dtype, rows, and what has no formula."""
    books: PartialCount = result.result
    return Document(
        books.title,
        (_parameters(books), _flops(books), _dtypes(books), _rows(books), _missing(books), *closing(result)),
    )


def _parameters(books: PartialCount) -> Facts:
    rows = []
    for name in ("total", "active", "embedding", "buffers"):
        value = getattr(books.params, name)
        if value is not None:
            rows.append((name, exact(value), format_count(value)))
    if not rows:
        rows = [("total", NOT_GIVEN, books.reasons.get("params", ""))]
    return Facts("Parameters", tuple(rows))


def _flops(books: PartialCount) -> Facts:
    if books.flops.model is None:
        return Facts("FLOPs", (("model", NOT_GIVEN, books.reasons.get("flops", "")),))
    mark = "at least: see what has no formula" if books.lower_bound else ""
    rows = []
    for name in ("forward", "backward", "recompute", "model", "hardware"):
        value = getattr(books.flops, name)
        if value or name == "model":
            rows.append((name, exact(value), f"{format_flops(value)}  {mark}".rstrip()))
    return Facts("FLOPs", tuple(rows))


def _dtypes(books: PartialCount) -> Table:
    rows = tuple(
        (dtype, exact(stored.elements), exact(stored.bytes), format_bytes(stored.bytes))
        for dtype, stored in books.bytes.by_dtype.items()
    )
    if rows and books.bytes.weights is not None:
        total = sum(stored.elements for stored in books.bytes.by_dtype.values())
        rows += (("total", exact(total), exact(books.bytes.weights), format_bytes(books.bytes.weights)),)
    return Table("Weights as stored", ("dtype", "elements", "bytes", ""), rows)


def _rows(books: PartialCount) -> Table:
    if books.by == "tensor":
        cells = tuple(
            (row.name, row.kind, row.shape, exact(row.times), exact(row.params or 0), exact(row.stored_bytes or 0))
            for row in books.rows
        )
        columns = ("tensors", "dtype", "shape", "times", "elements", "bytes")
        return Table("By tensor", columns, cells, (False, False, True, True, True, True))
    total = books.flops.hardware or 0
    work = tuple(
        (row.name, row.kind, exact(row.hardware_flops or 0), share(row.hardware_flops or 0, total))
        for row in books.rows
        if row.hardware_flops
    )
    closing_row = ("total", "", exact(total), share(total, total))
    header = (books.by, "formula", "hardware FLOPs", "")
    return Table(f"By {books.by}", header, (*work, closing_row), (False, False, True, True))


def _missing(books: PartialCount) -> Lines:
    lines = tuple(f"{item.op} {item.shapes}, {item.calls:,}×: {item.why}" for item in books.without_formula)
    return Lines("Without a formula: the totals are a lower bound", lines)
