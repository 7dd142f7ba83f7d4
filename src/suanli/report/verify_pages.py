"""The report of `verify`."""

from __future__ import annotations

from suanli.nouns.claim import (
    ARTICLE_WRONG,
    DIFFERS,
    FAILS,
    FLAGGED,
    HOLDS,
    REPRODUCED,
    ClaimResult,
    SourceSummary,
    Verification,
)
from suanli.nouns.result import Result
from suanli.report.common import NOT_GIVEN
from suanli.report.coverage_pages import coverage_blocks
from suanli.report.document import Block, Document, Lines, Table
from suanli.units import format_exact, format_percent

WORST_SHOWN = 12
FOLDS_SHOWN = 12
PREDICTIONS, SCALING = "predictions", "scaling"
_SILENT = (HOLDS, REPRODUCED)  # what needs no line of its own


def verify_document(result: Result) -> Document:
    """Agreement by source; then the claims that do not simply hold, articles in full; then what was not recomputed."""
    found: Verification = result.result
    every = bool(result.inputs.get("all"))
    counts = ", ".join(f"{number:,} {status}" for status, number in found.by_status().items())
    verdict = "all claims hold" if not found.failed else f"{len(found.failed)} claims FAIL"
    if found.coverage:
        wrong = len(found.wrong_types)
        verdict += f"; {wrong} model types WRONG" if wrong else "; no model type is wrong"
    blocks: list[Block] = [_summary(found), *_predictions(found), *_scaling(found)]
    for section in dict.fromkeys(row.section for row in found.summary):
        blocks += _section(section, [claim for claim in found.claims if claim.section == section], every)
    blocks.append(_not_recomputed(found))
    blocks += coverage_blocks(found, every)
    said = (Lines("", result.notes),) if result.notes else ()
    return Document(f"{verdict}: {counts}", (*blocks, *said))


def _summary(found: Verification) -> Table:
    rows = tuple(_summary_row(row) for row in found.summary if row.section not in (PREDICTIONS, SCALING))
    columns = ("source", "section", "n", "within", "failed", "median |error|", "worst", "its error")
    right = (False, False, True, True, True, True, False, True)
    return Table("Agreement by source (nothing is fitted; errors of runs in points of the peak)", columns, rows, right)


def _predictions(found: Verification) -> list[Block]:
    """The planner's own error: fitted and held out apart, beside the simplest rule."""
    rows = [row for row in found.summary if row.section == PREDICTIONS]
    if not rows:
        return []
    columns = (
        "set", "n", "fitted", "held out", "median", "constant", "bar", "in 80 %", "worst", "error",
    )  # fmt: skip
    right = (False, True, True, True, True, True, True, True, False, True)
    title = "Step times: mean |error| of predictions on rows fitted, on rows left out, and by a constant utilisation"
    folds = tuple(
        f"{row.source}, by {row.fold}: " + (", ".join(f"{name} {_part(error)}" for name, error in row.folds.items())
                                            if len(row.folds) <= FOLDS_SHOWN else f"{len(row.folds)} of them")
        for row in rows
    )  # fmt: skip
    regrets = tuple(
        f"{row.source}: {_part(row.regret)} on average, {_part(row.worst_regret)} at worst"
        for row in rows
        if row.regret is not None
    )
    table = Table(title, columns, tuple(_prediction_row(row) for row in rows), right)
    picked = Lines("Time of the layout that is picked over the best one measured, where runs differ in layout", regrets)
    return [table, Lines("Mean |error| of each fold left out", folds), picked]


def _scaling(found: Verification) -> list[Block]:
    """Projections' own error, held out, beside the simplest rule."""
    rows = tuple(
        (
            row.source, f"{row.n:,}", _part(row.median_held_out), _part(row.ninetieth_held_out),
            _part(row.median_constant), _part(row.coverage), row.worst or "", _part(row.worst_error),
        )
        for row in found.summary
        if row.section == SCALING
    )  # fmt: skip
    columns = ("series", "n", "median |error|", "90 % below", "last rate stays", "in 90 %", "worst", "error")
    if not rows:
        return []
    title = "Scaling: the largest size of each series, projected from its smaller ones (nothing of it is fitted)"
    return [Table(title, columns, rows, (False, True, True, True, True, True, False, True))]


def _prediction_row(row: SourceSummary) -> tuple[str, ...]:
    met = "" if (row.mape_held_out or 0) <= (row.bar or 0) else ", not met"
    return (
        row.source,
        f"{row.n:,}",
        _part(row.mape_fitted),
        _part(row.mape_held_out),
        _part(row.median_held_out),
        _part(row.mape_constant),
        "" if row.bar is None else f"{_part(row.bar)}{met}",
        _part(row.coverage),
        row.worst or "",
        _part(row.worst_error),
    )


def _part(value: float | None) -> str:
    return "" if value is None else format_percent(value, 1)


def _summary_row(row: SourceSummary) -> tuple[str, ...]:
    points = row.section == "runs"
    return (
        row.source,
        row.section,
        f"{row.n:,}",
        "" if row.within is None else f"{row.within:,}",
        f"{row.failed:,}" if row.failed else "",
        _error(row.median_error, points),
        row.worst or "" if row.worst_error else "",
        _error(row.worst_error, points) if row.worst_error else "",
    )


def _error(value: float | None, points: bool) -> str:
    if value is None:
        return ""
    return f"{value * 100:.3f}" if points else f"{value:.3g}"


def _section(section: str, claims: list[ClaimResult], every: bool) -> list[Block]:
    if section == "articles":
        return [_claims("Articles, number by number", claims), *_why(claims)]
    if section == SCALING:
        chosen = claims if every else sorted(claims, key=lambda claim: -_relative(claim))[:WORST_SHOWN]
        return [_claims("Projections" if every else "Projections furthest from what was measured", chosen)]
    if section == PREDICTIONS:
        chosen = claims if every else sorted(claims, key=lambda claim: -_relative(claim))[:WORST_SHOWN]
        return [_claims("Step times" if every else "Step times furthest from what was measured, held out", chosen)]
    failed = [claim for claim in claims if claim.status == FAILS]
    if section == "runs":
        odd = [claim for claim in claims if claim.status in (DIFFERS, FLAGGED) and claim.error is not None]
        shown = claims if every else sorted(odd, key=lambda claim: -abs(claim.error or 0))[:WORST_SHOWN]
        title = (
            "Published runs" if every else "Runs furthest from what was printed (flagged rows contradict themselves)"
        )
        return [_claims("Failed", failed), _claims(title, shown)]
    shown = claims if every else [claim for claim in claims if claim.status not in (*_SILENT, FAILS)]
    return [_claims("Failed", failed), _claims(section.capitalize(), shown)]


def _claims(title: str, claims: list[ClaimResult]) -> Table:
    rows = tuple(
        (
            claim.source,
            claim.statement,
            NOT_GIVEN if claim.article is None else shown(claim.article),
            NOT_GIVEN if claim.expected is None else shown(claim.expected),
            NOT_GIVEN if claim.got is None else shown(claim.got),
            claim.status,
        )
        for claim in claims
    )
    columns = ("source", "statement", "printed", "right", "ours", "status")
    return Table(title, columns, rows, (False, False, True, True, True, False))


def _relative(claim: ClaimResult) -> float:
    return abs(claim.error or 0) / claim.expected if claim.expected else 0.0


def shown(value: float) -> str:
    """A figure with all the digits a table has room for."""
    if abs(value) >= 1e15 or (value and abs(value) < 1e-4):
        return f"{value:.7g}"
    return format_exact(value) if float(value).is_integer() else f"{value:,.8g}"


def _why(claims: list[ClaimResult]) -> list[Block]:
    lines = tuple(
        f"{claim.source}: {claim.statement}: {claim.why}"
        for claim in claims
        if claim.why and claim.status == ARTICLE_WRONG
    )
    others = tuple(
        f"{claim.source}: {claim.statement} ({claim.status}): {claim.why}"
        for claim in claims
        if claim.why and claim.status not in (*_SILENT, ARTICLE_WRONG)
    )
    return [Lines("Where the articles are wrong, and why", lines), Lines("Without a number to check", others)]


def _not_recomputed(found: Verification) -> Lines:
    lines = tuple(
        f"{row.source}: " + "; ".join(f"{count} {why}" for why, count in row.not_recomputed.items())
        for row in found.summary
        if row.not_recomputed and row.source == "all"
    )
    return Lines("Rows with nothing to compare", lines)
