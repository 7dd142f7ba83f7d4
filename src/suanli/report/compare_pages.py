"""The reports of `compare`, and of `count --like`."""

from __future__ import annotations

from collections.abc import Iterable

from suanli.differences import every_copy
from suanli.nouns.comparison import Cause, Comparison, Counter, Likeness, Right
from suanli.nouns.result import Result
from suanli.report.common import NOT_GIVEN, closing, exact, plural
from suanli.report.document import Document, Facts, Lines, Table
from suanli.units import format_bytes, format_flops, format_seconds

LISTED = 8  # causes of one counter on screen; the smaller ones are added up


def compare_document(result: Result) -> Document:
    """The right number, every counter beside it, why each differs, and which gave none."""
    found: Comparison = result.result
    units = found.unit if found.units == 1 else plural(found.unit)
    answered = [each for each in found.counters if each.flops is not None]
    return Document(
        f"{found.title} — {found.units:,} {units}: {found.explained} of {len(answered)} counters explained to the "
        f"last FLOP{''.join(_unequal(right) for right in found.right)}",
        (
            Facts("Right", tuple(row for right in found.right for row in _right(right))),
            _counters(answered),
            _causes(answered),
            Lines("No number", tuple(_no_number(each) for each in found.counters if each.flops is None)),
            *closing(result),
        ),
    )


def _unequal(right: Right) -> str:
    """What the headline adds where the right number is not one: counters are held against the trace then."""
    if right.equal is not False or right.formula is None or right.trace is None:
        return ""
    differ = f"formula and trace differ by {abs(right.trace - right.formula):,} FLOPs"
    return f" against the trace, but {differ}: {right.note or 'the cause is not known'}"


def _right(right: Right) -> list[tuple[str, str, str]]:
    if right.phase == "train":
        return [("training step", exact(right.flops or 0), f"by formula; {right.note}")]
    rows = []
    for label, value in (("by formula", right.formula), ("by trace", right.trace)):
        remark = format_flops(value) if value is not None else right.note
        rows.append((label, NOT_GIVEN if value is None else exact(value), remark))
    if right.equal is not None:
        rows.append(("equal", "yes" if right.equal else "NO", right.note))
    return rows


def _counters(counters: Iterable[Counter]) -> Table:
    columns = ("counter", "on", "parameters", "FLOPs", "× right", "unexplained", "time", "memory")
    rows = tuple(
        (
            f"{each.title} {each.version or ''}".rstrip(),
            each.device or each.phase,
            NOT_GIVEN if each.params is None else exact(each.params),
            exact(each.flops or 0),
            NOT_GIVEN if each.ratio is None else f"{each.ratio:.4f}",
            exact(each.unexplained or 0),
            "" if each.seconds is None else format_seconds(each.seconds, 3),
            "" if each.peak_bytes is None else format_bytes(each.peak_bytes, 3),
        )
        for each in counters
    )
    return Table("Counters", columns, rows)


def _causes(counters: Iterable[Counter]) -> Table:
    rows: list[tuple[str, ...]] = []
    for each in counters:
        words = _unit_words(each)
        listed = [*_cause_rows(each.causes, each.unexplained)]
        rows += [(each.title, "0", "", f"the same{words}", "")] if not listed else []
        rows += [(each.title if index == 0 else "", *row[:2], row[2] + (words if index == 0 else ""), row[3])
                 for index, row in enumerate(listed)]  # fmt: skip
    columns = ("counter", "FLOPs", "places", "why", "for example")
    return Table("Why each differs", columns, tuple(rows), (False, True, True, False, False))


def _unit_words(each: Counter) -> str:
    """What the counter calls its number, where FLOPs are twice that."""
    return f" [says {exact(each.reported or 0)} {each.says}: doubled]" if each.flops != each.reported else ""


def _cause_rows(causes: tuple[Cause, ...], unexplained: int | None) -> list[tuple[str, str, str, str]]:
    rows = [(f"{each.flops:+,}", str(each.places), each.cause, every_copy(each.example)) for each in causes[:LISTED]]
    rest = causes[LISTED:]
    if rest:
        rows.append((f"{sum(cause.flops for cause in rest):+,}", "", f"{len(rest)} smaller causes, in --json", ""))
    if unexplained:
        rows.append((f"{unexplained:+,}", "", "UNEXPLAINED", ""))
    return rows


def _no_number(each: Counter) -> str:
    params = f"; parameters {each.params:,}" if each.params is not None else ""
    return f"{each.title}: {each.reason}{params}"


def likeness_document(result: Result) -> Document:
    """The number a counter would give, and how it differs from the right one."""
    found: Likeness = result.result
    on = f" on {found.device}" if found.device else ""
    rows = [
        ("as it says", NOT_GIVEN if found.reported is None else exact(found.reported), found.says),
        ("in FLOPs", NOT_GIVEN if found.flops is None else exact(found.flops), "MACs doubled" if found.flops !=
         found.reported else ""),
        ("right", exact(found.right), f"convention {result.convention}, {found.phase}"),
        ("× right", NOT_GIVEN if found.ratio is None else f"{found.ratio:.6f}", ""),
        ("difference", NOT_GIVEN if found.difference is None else f"{found.difference:+,}", "FLOPs"),
    ]  # fmt: skip
    causes = _cause_rows(found.causes, found.unexplained)
    return Document(
        f"{found.title} — as {found.like} would count it{on}",
        (
            Facts("Count", tuple(rows)),
            Table("Why it differs", ("FLOPs", "places", "why", "for example"), tuple(causes),
                  (True, True, False, False)),
            *closing(result),
        ),
    )  # fmt: skip
