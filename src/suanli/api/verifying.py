"""`suanli.verify`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from suanli.nouns.claim import Verification
from suanli.nouns.coverage import DEFAULT, SMALL, summarise_coverage
from suanli.nouns.result import Result
from suanli.verify import verify as check

MODELS = "models"
LATER = "formula against trace for each model type of transformers: suanli verify --only models (minutes)"
SMALL_ONLY = "a small odd config of each type; --all tries the default configs too (a quarter of an hour)"


def verify(
    only: str | Sequence[str] | None = None, *, every: bool = False, processes: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Result:  # fmt: skip
    """Reproduce published numbers. `ok` is False when a claim that should hold does not.

    `only` names sections, in one text with commas or as a list; `every` asks reports for all claims. With `models`
    named, every model type of transformers is counted by formula and by trace: small configs, and with `every` the
    default ones too; `progress` is told of each (done, of how many, which). Raises UnknownNameError for a section
    nobody knows.
    """
    names = [part.strip() for part in only.split(",")] if isinstance(only, str) else only
    found = check(names)
    notes: tuple[str, ...] = (LATER,) if names is None else ()
    if names is not None and MODELS in names:
        found, notes = _with_coverage(found, every, processes, progress)
    return Result(
        kind="verify",
        inputs={"only": names, "all": every},
        result=found,
        ok=found.holds,
        sources=tuple(dict.fromkeys(row.source for row in found.summary)),
        notes=notes,
    )


def _with_coverage(
    found: Verification, every: bool, processes: int | None, progress: Callable[[int, int, str], None] | None
) -> tuple[Verification, tuple[str, ...]]:
    """Formula against trace, where the frameworks are there."""
    from suanli import coverage_pool as pool  # noqa: PLC0415  nothing of it where it is not asked for
    from suanli.readers.hf_types.mappings import types_of_tasks  # noqa: PLC0415

    missing = pool.missing_packages()
    if missing:
        lacking = " and ".join(missing)
        said = f"formula against trace was skipped: {lacking} not installed (pip install 'suanli[torch]')"
        return found, (said,)
    configs = (SMALL, DEFAULT) if every else (SMALL,)
    covered = pool.check_types(types_of_tasks(), configs, processes=processes, progress=progress)
    whole = replace(found, coverage=covered, coverage_summary=summarise_coverage(covered))
    return whole, () if every else (SMALL_ONLY,)
