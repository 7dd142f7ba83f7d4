"""Results in files, by suffix: `.json`, `.csv`, `.md`. Written beside the target, then renamed: never half a file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from suanli.errors import Fault, InputError, MissingExtraError, UnreadableFileError, nearest_names, shown
from suanli.nouns.result import Result
from suanli.report.about import about
from suanli.report.chart import Chart, plain
from suanli.report.csv_files import as_csv
from suanli.report.document import Block, Document, Facts, Lines, Picture, Prose
from suanli.report.pages import document_of
from suanli.report.stack_files import stack_toml
from suanli.report.translated import translated
from suanli.report.words import language

LATER = (".svg", ".png")
DRAWN = (".html",)  # what pictures are drawn into


def as_json(result: Result) -> str:
    """The JSON envelope."""
    return result.to_json() + "\n"


def as_html(result: Result) -> str:
    """The report as one HTML file, in the language of `spoken_in`."""
    from suanli.report.html_file import html_file  # noqa: PLC0415  pages of other kinds need none of it

    return html_file(result)


def as_markdown(result: Result) -> str:
    """The report in Markdown, with the request that it answers, in the language of `spoken_in`."""
    document: Document = translated(document_of(result), language())
    parts = [f"# {document.headline}"]
    for block in (*document.blocks, *translated(Document("", (about(result),)), language()).blocks):
        body = _markdown(block)
        if body:
            parts.append(f"## {block.title}\n\n{body}" if block.title else body)
    return "\n\n".join(parts) + "\n"


CHART_WIDTH = 80


def _markdown(block: Block) -> str:
    if isinstance(block, Chart):
        return "\n".join(("```text", *plain(block, CHART_WIDTH), "```")) if block.rows else ""
    if isinstance(block, Prose):
        return "\n\n".join(block.paragraphs)
    if isinstance(block, Picture):
        return "\n".join(("```text", *block.rows, "```")) if block.rows else ""
    if isinstance(block, Lines):
        return "\n".join(f"- {_cell(line)}" for line in block.lines)
    if isinstance(block, Facts):
        return _grid(("", "", ""), block.rows, (False, True, False))
    right = tuple(block.aligned_right(index) for index in range(len(block.columns)))
    return _grid(block.columns, block.rows, right)


def _grid(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...], right: tuple[bool, ...]) -> str:
    if not rows:
        return ""
    rule = ["---:" if flush else "---" for flush in right]
    lines = [columns, tuple(rule), *(tuple(_cell(cell) for cell in row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


WRITERS: dict[str, Callable[[Result], str]] = {
    ".json": as_json, ".csv": as_csv, ".md": as_markdown, ".html": as_html,
}  # fmt: skip
OWN_WRITERS: dict[str, dict[str, Callable[[Result], str]]] = {"calibrate": {".toml": stack_toml}}  # by kind of result


def writers_of(kind: str) -> dict[str, Callable[[Result], str]]:
    """Writers of a kind of result by suffix."""
    return WRITERS | OWN_WRITERS.get(kind, {})


def write_result(result: Result, path: Path) -> None:
    """Write the result in the format its suffix names. Raises InputError for others, UnreadableFileError on failure."""
    writer = writers_of(result.kind).get(path.suffix.lower())
    if writer is None:
        raise _unknown_suffix(path, result.kind)
    write_text(path, writer(result))


def check_suffix(path: Path, kind: str = "") -> None:
    """Refuse a file that could not be written before any work is done."""
    if path.suffix.lower() not in writers_of(kind):
        raise _unknown_suffix(path, kind)
    if path.suffix.lower() in DRAWN and find_spec("vl_convert") is None:
        raise drawing_missing()


def drawing_missing() -> MissingExtraError:
    """The error where what draws pictures is not installed."""
    return MissingExtraError(
        Fault(
            code="missing_extra",
            message="vl-convert is needed to draw pictures and is not installed",
            where="--output",
            hint="pip install 'suanli[report]'",
        )
    )


def _unknown_suffix(path: Path, kind: str = "") -> InputError:
    later = path.suffix.lower() in LATER
    return InputError(
        Fault(
            code="unknown_format",
            message="this version writes no such file" if later else "the suffix names no format",
            where="--output",
            got=shown(path.name),
            expected="a file ending in " + ", ".join(writers_of(kind)),
            nearest=() if later else nearest_names(path.suffix, writers_of(kind)),
        )
    )


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            Path(name).chmod(0o666 & ~_umask())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise UnreadableFileError(
            Fault(
                code="cannot_write",
                message="the file cannot be written",
                where=str(path),
                got=problem.strerror or type(problem).__name__,
            )
        ) from problem


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
