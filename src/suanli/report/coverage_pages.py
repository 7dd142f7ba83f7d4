"""Formula against trace by model type: the summary by task, what differs, and with `every` a row a type."""

from __future__ import annotations

from suanli.nouns.claim import Verification
from suanli.nouns.coverage import (
    BY_TRACE,
    DECLARED,
    NOT_RUN,
    PARTLY,
    WRONG,
    ConfigCheck,
    Covered,
    LengthCheck,
    MappingSummary,
)
from suanli.report.document import Block, Lines, Table

TITLE = "Formula against trace: model types of transformers by task"
REASONS_SHOWN = 8
WORDS_OF_REASON = 110
_RIGHT = (False, True, True, True, True, True, True, True)


def coverage_blocks(found: Verification, every: bool) -> list[Block]:
    """Nothing where formula and trace were not compared."""
    if not found.coverage:
        return []
    blocks: list[Block] = [
        _summary(found.coverage_summary), _scans(found.coverage), _memory(found.coverage),
        *_reasons(found.coverage, every),
    ]  # fmt: skip
    return [*blocks, _types(found.coverage)] if every else blocks


def _summary(rows: tuple[MappingSummary, ...]) -> Table:
    columns = ("task", "types", "exact", "declared difference", "where it runs", "by trace only", "not run", "wrong")
    cells = tuple(
        (row.mapping, *(f"{number:,}" for number in (
            row.types, row.exact, row.declared, row.partly, row.by_trace, row.not_run, row.wrong
        )))
        for row in rows
    )  # fmt: skip
    return Table(TITLE, columns, cells, _RIGHT)


def _scans(covered: tuple[Covered, ...]) -> Table:
    """Scans are compared apart: the last length of the small config, in each way they are counted."""
    rows = []
    for each in covered:
        found = next((x for check in each.checks for x in reversed(check.lengths) if x.scans is not None), None)
        if found is not None and found.scans is not None and found.scans.recurrence:
            scans = found.scans
            counts = (scans.recurrence, scans.kernel, scans.fallback, scans.solved, scans.padding)
            rows.append((each.model_type, each.mapping, f"{found.seq}", *(f"{count:,}" for count in counts),
                         error_text(found.error)))  # fmt: skip
    columns = ("type", "task", "tokens", "recurrence", "kernel", "fallback", "solved", "padding", "trace − expected")
    title = "Scans, FLOPs: as recurrences (in our totals), as kernels, as transformers runs them here (in a trace)"
    return Table(title, columns, tuple(rows), (False, False, True, True, True, True, True, True, True))


def _memory(covered: tuple[Covered, ...]) -> Table:
    """Activations kept for backward: what the memory model says, and what transformers keeps without fused kernels."""
    rows = tuple(
        (each.model_type, each.mapping, f"{found.seq}", f"{found.by_formula:,}", f"{found.by_trace:,}",
         f"{found.ratio:.3f}")
        for each in covered
        if (found := each.memory) is not None
    )  # fmt: skip
    columns = ("type", "task", "tokens", "by formula", "by trace", "trace / formula")
    title = (
        "Bytes kept for backward, small configs (formula: norms and activations fused; transformers: in small steps)"
    )
    return Table(title, columns, rows, (False, False, True, True, True, True))


def _reasons(covered: tuple[Covered, ...], every: bool) -> list[Block]:
    """Why types are not simply exact; those that are wrong first, with the term that differs."""
    blocks: list[Block] = []
    for status, title in (
        (WRONG, "Wrong: formula and trace differ"), (DECLARED, "Declared differences"),
        (PARTLY, "Exact where it runs: why not everywhere"), (BY_TRACE, "By trace only"),
        (NOT_RUN, "Not run by transformers here"),
    ):  # fmt: skip
        found = [each for each in covered if each.status == status]
        whole = every or status in (WRONG, DECLARED)
        lines = [_reason(each) for each in (found if whole else found[:REASONS_SHOWN])]
        if len(lines) < len(found):
            lines.append(f"… and {len(found) - len(lines)} more (--all, or --json)")
        blocks.append(Lines(title, tuple(lines)))
    return blocks


def _reason(each: Covered) -> str:
    said = "; ".join(each.terms) if each.status == WRONG and each.terms else each.why
    return f"{each.model_type} ({each.mapping}): {said if each.status == WRONG else cut(said)}"


def cut(text: str) -> str:
    """A reason in one line."""
    line = " ".join(text.split())
    return line if len(line) <= WORDS_OF_REASON else f"{line[: WORDS_OF_REASON - 1]}…"


def _types(covered: tuple[Covered, ...]) -> Table:
    columns = ("type", "task", "config", "parameters", "error", "FLOPs by trace", "error", "status")
    rows = tuple(_row(each, check) for each in covered for check in each.checks)
    return Table("Every type", columns, rows, (False, False, False, True, True, True, True, False))


def _row(each: Covered, check: ConfigCheck) -> tuple[str, ...]:
    """Errors of the last length; the first is right where it is."""
    last: LengthCheck | None = check.lengths[-1] if check.lengths else None
    return (
        each.model_type, each.mapping, check.config,
        "" if check.params_torch is None else f"{check.params_torch:,}", error_text(check.params_error),
        "" if last is None or last.flops_trace is None else f"{last.flops_trace:,}",
        flops_error_text(check), each.status,
    )  # fmt: skip


def flops_error_text(check: ConfigCheck) -> str:
    """The largest error over a config's lengths; a dash where nothing could be compared."""
    errors = [length.error for length in check.lengths if length.error is not None]
    return error_text(max(errors, key=abs) if errors else None)


def error_text(error: int | None) -> str:
    """0, +1,234, or a dash where nothing could be compared."""
    return "–" if error is None else f"{error:+,}" if error else "0"
