"""A heat map as rows of a table: ranks down, steps or entries across, one character a cell, at most 80 wide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from suanli.units import format_percent

SHADES = "░▒▓█"
NOTHING = "·"
WIDEST, MOST_ROWS = 52, 32  # cells of a row beside its label; rows
_MOST_SHOWN = 99.0  # above the median: what comes after is another thing altogether
_HALF_AGAIN = 0.5  # above the median: the darkest


def heat_rows(
    labels: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Header and rows. Each cell stands against the median of its column over all ranks; where there are more ranks
    or columns than fit, neighbours share a cell, which shows the largest of them: a straggler is never averaged away.

    `values` are [ranks][columns]; None where a rank has nothing there.
    """
    rows = []
    for name, cells in _shared(labels, columns, values, MOST_ROWS, WIDEST):
        rows.append((name, "".join(_shade(cell) for cell in cells), _worst(cells)))
    shown = columns[0] if len(columns) == 1 else f"{columns[0]} … {columns[-1]}" if columns else ""
    return ("rank", shown[:WIDEST], "most"), tuple(rows)


def heat_cells(
    labels: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]], rows: int, wide: int
) -> list[tuple[str, str, float | None]]:
    """The same as (rank, column, part above the median), at most `rows` by `wide` of them."""
    names = [_named(columns, first, last) for first, last in _buckets(len(columns), wide)]
    return [(rank, name, cell) for rank, cells in _shared(labels, columns, values, rows, wide)
            for name, cell in zip(names, cells, strict=True)]  # fmt: skip


def _shared(
    labels: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]], rows: int, wide: int
) -> Iterator[tuple[str, list[float | None]]]:
    """Label and cells of each row; where ranks or columns share one, the largest of them."""
    relative = _against_median(values, len(columns))
    across = _buckets(len(columns), wide)
    for first, last in _buckets(len(labels), rows):
        cells = [_largest(relative[row][column] for row in range(first, last) for column in range(begin, end))
                 for begin, end in across]  # fmt: skip
        yield _named(labels, first, last), cells


def _named(names: Sequence[str], first: int, last: int) -> str:
    return names[first] if last - first == 1 else f"{names[first]}–{names[last - 1]}"


def _against_median(values: Sequence[Sequence[float | None]], count: int) -> list[list[float | None]]:
    """Each value over the median of its column, less one; None where there is none."""
    medians = []
    for column in range(count):
        known = sorted(each for row in values if (each := row[column]) is not None)
        medians.append(known[(len(known) - 1) // 2] if known else 0.0)
    return [
        [None if each is None or not medians[column] else each / medians[column] - 1 for column, each in enumerate(row)]
        for row in values
    ]


def _buckets(count: int, most: int) -> list[tuple[int, int]]:
    """Ranges that cover 0 … count−1, at most so many, as equal as can be."""
    parts = min(count, most)
    return [(count * part // parts, count * (part + 1) // parts) for part in range(parts)]


def _largest(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return max(known) if known else None


def _shade(value: float | None) -> str:
    if value is None:
        return NOTHING
    place = int(min(max(value, 0.0), _HALF_AGAIN) / _HALF_AGAIN * (len(SHADES) - 1))
    return SHADES[place]


def _worst(cells: Sequence[float | None]) -> str:
    known = [each for each in cells if each is not None]
    if not known:
        return NOTHING
    most = max(known)
    if most > _MOST_SHOWN:
        return f"> +{format_percent(_MOST_SHOWN, 0)}"
    return f"{'+' if most >= 0 else '−'}{format_percent(abs(most))}"
