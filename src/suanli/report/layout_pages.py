"""The report of `layout`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from suanli.nouns.plans import Difference, DifferenceRow, PlannedLayout
from suanli.nouns.result import Result
from suanli.report.common import NOT_GIVEN, closing, exact, share
from suanli.report.document import Document, Facts, Lines, Table
from suanli.report.run_pages import percent
from suanli.units import format_bytes, format_change, format_seconds, format_usd

SMALLEST_SHOWN = 5e-4  # of the step: smaller entries are added up as `others`
ROUNDING = 1e-9  # of the step: what sums of floating-point numbers leave, no entry
LEVERS = 8


def layout_document(result: Result) -> Document:
    """The ranking, the first layout's account and memory, the front, advice."""
    plan = result.result
    best: PlannedLayout = plan.layouts[0]
    low, high = best.step_time_interval_s
    unit = "GPU" if best.gpus == 1 else "GPUs"
    headline = (
        f"{plan.model} on {best.gpus:,} {unit}: {best.short}, {format_seconds(best.step_time_s)} a step "
        f"({format_seconds(low)} to {format_seconds(high)}), MFU {percent(best.mfu, 1)}"
    )
    blocks = (
        _ranking(plan.layouts),
        _account(best),
        _memory(best, plan.memory_limit_bytes),
        *(() if plan.why is None else _why(plan.why)),
        *(() if plan.emit is None else (Lines(f"{plan.emit.version}", (*plan.emit.text.splitlines(),)),
                                        Lines("To do beside it", plan.emit.notes))),
        _front(plan),
        _advice(plan),
        _search(plan),
        *closing(result),
    )  # fmt: skip
    return Document(headline, blocks)


def _ranking(layouts: tuple[PlannedLayout, ...]) -> Table:
    rows = tuple(
        (
            str(place), row.short, format_seconds(row.step_time_s),
            format_seconds(row.closed_form_step_time_s),
            percent(row.mfu, 1), f"{row.tokens_per_second_per_gpu:,.1f}", format_bytes(row.memory_bytes["total"]),
            row.largest_term,
        )
        for place, row in enumerate(layouts, 1)
    )  # fmt: skip
    columns = ("", "layout", "step", "closed form", "MFU", "tokens/s a GPU", "memory", "most of it")
    return Table("Layouts", columns, rows, (True, False, True, True, True, True, True, False))


def _account(best: PlannedLayout) -> Facts:
    shown = [each for each in best.account if each.seconds >= SMALLEST_SHOWN * best.step_time_s]
    rest = best.step_time_s - sum(each.seconds for each in shown)
    rows = [(each.entry, format_seconds(each.seconds), share(each.seconds, best.step_time_s)) for each in shown]
    if len(shown) < len(best.account) and rest > ROUNDING * best.step_time_s:
        rows.append(("others", format_seconds(max(0.0, rest)), share(max(0.0, rest), best.step_time_s)))
    return Facts("Step of the first", (*rows, ("step", format_seconds(best.step_time_s), "100.0 %")))


def _memory(best: PlannedLayout, limit: int) -> Facts:
    total = best.memory_bytes["total"]
    rows = [(name, format_bytes(size), share(size, total)) for name, size in best.memory_bytes.items()
            if size and name != "total"]  # fmt: skip
    margin = f"of {format_bytes(limit)}: {format_bytes(best.margin_bytes)} left"
    return Facts(f"Memory of the first, on stage {best.fullest_stage}", (*rows, ("total", format_bytes(total), margin)))


def _why(found: Difference) -> tuple[Table, Table]:
    first, second = found.first.short, found.second.short
    seconds = (*found.step, _sum("step", found.first.step_time_s, found.second.step_time_s))
    sizes = (*found.memory, _sum("total", found.first.memory_bytes["total"], found.second.memory_bytes["total"]))
    columns = ("", "first", "second", "second less first")
    title = f"Why: first {first}; second {second}"
    return (
        Table(title, columns, tuple(_row(row, format_seconds) for row in seconds)),
        Table("Memory of both", columns, tuple(_row(row, format_bytes) for row in sizes)),
    )


def _sum(name: str, first: float, second: float) -> DifferenceRow:
    return DifferenceRow(entry=name, first=first, second=second, difference=second - first)


def _row(row: DifferenceRow, written: Callable[[float], str]) -> tuple[str, ...]:
    sign = "-" if row.difference < 0 else "+"
    return row.entry, written(row.first), written(row.second), f"{sign}{written(abs(row.difference))}"


def _front(plan: Any) -> Table:
    rows = tuple(
        (
            each.layout, exact(each.gpus), format_seconds(each.step_time_s), format_bytes(each.memory_bytes),
            NOT_GIVEN if each.usd_per_step is None else format_usd(each.usd_per_step),
        )
        for each in plan.front[: len(plan.layouts)]
    )  # fmt: skip
    columns = ("layout", "GPUs", "step", "memory", "a step costs")
    more = f": the fastest {len(rows)} of {len(plan.front)}, all in --json" if len(rows) < len(plan.front) else ""
    return Table(f"No other is as fast, as small, on as few GPUs{more}", columns, rows)


def _advice(plan: Any) -> Table:
    rows = tuple(
        (
            each.lever, each.change, format_change(each.gain_fraction, 1), format_seconds(each.step_time_s),
            format_bytes(each.memory_bytes), "" if each.fits else "does not fit",
        )
        for each in plan.advice[:LEVERS]
    )  # fmt: skip
    columns = ("one change to the first", "", "saves", "step", "memory", "")
    return Table("Levers", columns, rows, (False, False, True, True, True, False))


def _search(plan: Any) -> Facts:
    counts = plan.counts
    rows = (
        ("combinations", exact(counts.enumerated), "of possible values of every axis"),
        ("legal", exact(counts.legal), "and their states alone may fit"),
        ("fit", exact(counts.fit), "of those whose memory was worked out"),
        ("timed", exact(counts.timed), "the rest cannot be among the best"),
    )
    return Facts("Search", rows)
