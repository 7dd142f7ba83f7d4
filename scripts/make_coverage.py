"""Makes docs/coverage.md: formula against trace for every model type of transformers, a row each.

    python scripts/make_coverage.py               runs it all (a quarter of an hour on two quiet cores)
    python scripts/make_coverage.py FILE.json     from what `suanli verify --only models --all --json` printed

The page carries the date and the versions it was made with: it is a record, and the command is the proof.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

import suanli
from suanli.nouns.coverage import (
    BY_TRACE,
    DEFAULT,
    NOT_RUN,
    SMALL,
    ConfigCheck,
    Covered,
    summarise_coverage,
)
from suanli.report.coverage_pages import cut, error_text, flops_error_text

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "coverage.md"
INTRODUCTION = """# Formula against trace

<!-- made by scripts/make_coverage.py: do not edit -->

Every model type of transformers' mappings for causal, masked and sequence-to-sequence language models, picture and
text, classifiers of pictures and sound, and speech: parameters by formula less those of the class on the meta device,
FLOPs of a forward pass by formula (convention `full`) less those its run shows, the largest difference over two lengths
({lengths} tokens, and two sizes of picture or sound where a class takes two). Each with a small odd config and with
the class's own defaults. A zero is exact to the last digit; a dash says that there was nothing to compare, and the last
column why. Scans are compared apart, as transformers runs them without kernels.

Made on {date} with {versions}. The command is `suanli verify --only models --all`.
"""


def main(arguments: Sequence[str]) -> int:
    """Write the page."""
    PAGE.write_text(page(covered_types(arguments), versions(), f"{datetime.now(UTC):%Y-%m-%d}"), encoding="utf-8")
    return 0


def covered_types(arguments: Sequence[str]) -> tuple[Covered, ...]:
    """From a file, or run now."""
    if arguments:
        found: dict[str, Any] = json.loads(Path(arguments[0]).read_text("utf-8"))
        return tuple(msgspec.convert(each, type=Covered) for each in found["result"]["coverage"])

    def told(done: int, total: int, which: str) -> None:
        sys.stderr.write(f"\r{done}/{total} {which:<40}")

    covered: tuple[Covered, ...] = suanli.verify(only="models", every=True, progress=told).coverage
    return covered


def versions() -> str:
    """What the page was made with."""
    names = ("torch", "transformers")
    return ", ".join(
        (f"suanli {suanli.__version__}", *(f"{each} {importlib.metadata.version(each)}" for each in names))
    )


def page(covered: tuple[Covered, ...], made_with: str, date: str) -> str:
    """The page's text."""
    from suanli.coverage import LENGTHS  # noqa: PLC0415  not with the report

    head = INTRODUCTION.format(lengths=" and ".join(map(str, LENGTHS)), date=date, versions=made_with)
    return "\n".join((head, *summary(covered), "", *rows(covered), ""))


def summary(covered: tuple[Covered, ...]) -> list[str]:
    """How many types of each task came out how."""
    lines = [
        "| task | types | exact | declared difference | exact where it runs | by trace only | not run | wrong |",
        "| --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for row in summarise_coverage(covered):
        cells = (row.mapping, row.types, row.exact, row.declared, row.partly, row.by_trace, row.not_run, row.wrong)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def rows(covered: tuple[Covered, ...]) -> list[str]:
    """A row a type and task: four differences, how it came out, and why."""
    lines = [
        "| type | task | parameters small | default | FLOPs small | default | status | why |",
        "| --- | --- | --: | --: | --: | --: | --- | --- |",
    ]
    return [*lines, *(_row(each) for each in sorted(covered, key=lambda each: (each.mapping, each.model_type)))]


def _row(each: Covered) -> str:
    checks = {check.config: check for check in each.checks}
    small, default = checks.get(SMALL), checks.get(DEFAULT)
    why = reason(each).replace("|", "\\|")
    cells = (
        f"`{each.model_type}`", each.mapping, _params(small), _params(default), _flops(small), _flops(default),
        each.status, why,
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def reason(each: Covered) -> str:
    """In a line; of types without a formula also whether the run counted them."""
    counted = each.status == BY_TRACE and any(check.lengths for check in each.checks)
    said = cut(each.why)
    return f"{said} (counted by trace)" if counted and each.status != NOT_RUN else said


def _params(check: ConfigCheck | None) -> str:
    return error_text(None if check is None else check.params_error)


def _flops(check: ConfigCheck | None) -> str:
    return "–" if check is None else flops_error_text(check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
