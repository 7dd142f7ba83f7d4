"""Tables of two accounts side by side: a step against its plan, a trace against another."""

from __future__ import annotations

from suanli.explain.short_names import short
from suanli.nouns.explained import Explained, TraceDifference
from suanli.report.document import Table
from suanli.units import MILLI, NANO, format_percent, format_seconds

KERNELS_SHOWN = 10
PICO = NANO * MILLI  # the finest clock of a trace


def difference_blocks(found: Explained) -> tuple[Table, ...]:
    """What was asked to be set beside the trace; nothing where nothing was."""
    blocks: list[Table] = []
    if found.against is not None:
        blocks.append(_entries(found.against, "Against the plan", "planned", "ran"))
    if found.compared is not None:
        blocks.append(_entries(found.compared, "Compared", "other", "this"))
        blocks.append(_kernels(found.compared))
    return tuple(blocks)


def signed(seconds: float) -> str:
    """A difference with its sign; what is smaller than a profiler can tell is rounding, and none."""
    if abs(seconds) < PICO:
        return format_seconds(0.0)
    return ("+" if seconds > 0 else "-" if seconds < 0 else "") + format_seconds(abs(seconds))


def _entries(found: TraceDifference, title: str, first: str, second: str) -> Table:
    rows = [(each.entry, format_seconds(each.first), format_seconds(each.second), signed(each.difference),
             format_percent(each.difference / found.first_s, 1) if found.first_s else "")
            for each in found.rows]  # fmt: skip
    total = (
        "total", format_seconds(found.first_s), format_seconds(found.second_s), signed(found.difference_s),
        format_percent(found.difference_s / found.first_s, 1) if found.first_s else "",
    )  # fmt: skip
    return Table(f"{title} ({found.basis})", ("entry", first, second, "difference", f"of {first}"), (*rows, total))


def _kernels(found: TraceDifference) -> Table:
    rows = tuple(
        (short(each.entry), format_seconds(each.first), format_seconds(each.second), signed(each.difference))
        for each in found.kernels[:KERNELS_SHOWN]
        if abs(each.difference) >= PICO
    )
    return Table("Kernels that differ most", ("kernel", "other", "this", "difference"), rows)
