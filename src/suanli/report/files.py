"""Results in files, by suffix: `.json`, `.csv`, `.md`, `.html`, `.svg`, `.png`.

Written beside the target, then renamed: never half a file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from suanli.errors import Fault, InputError, nearest_names, shown
from suanli.nouns.result import Result
from suanli.report.about import about
from suanli.report.chart import Chart, plain
from suanli.report.csv_files import as_csv
from suanli.report.document import Block, Document, Facts, Lines, Picture, Prose
from suanli.report.pages import document_of
from suanli.report.stack_files import stack_toml
from suanli.report.translated import translated
from suanli.report.words import language
from suanli.written import write_bytes


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


def as_svg(result: Result) -> str:
    """The figures as one drawing."""
    from suanli.report import drawn  # noqa: PLC0415  vl-convert, and only where a picture is asked for

    return drawn.as_svg(result)


def as_png(result: Result) -> bytes:
    """The figures as one picture of dots."""
    from suanli.report import drawn  # noqa: PLC0415

    return drawn.as_png(result)


WRITERS: dict[str, Callable[[Result], str]] = {
    ".json": as_json, ".csv": as_csv, ".md": as_markdown, ".html": as_html,
}  # fmt: skip
OWN_WRITERS: dict[str, dict[str, Callable[[Result], str]]] = {"calibrate": {".toml": stack_toml}}  # by kind of result

PICTURES: dict[str, Callable[[Result], str | bytes]] = {".svg": as_svg, ".png": as_png}
DRAWN = (".html", *PICTURES)  # what pictures are drawn into


def writers_of(kind: str) -> dict[str, Callable[[Result], str | bytes]]:
    """Writers of a kind of result by suffix, pictures where it has any; without a kind, what most have."""
    from suanli.report.figures import FIGURES  # noqa: PLC0415  figures are made where a file is asked for

    return {**WRITERS, **OWN_WRITERS.get(kind, {}), **(PICTURES if not kind or kind in FIGURES else {})}


def write_result(result: Result, path: Path) -> None:
    """Write the result in the format its suffix names. Raises InputError for others, UnreadableFileError on failure."""
    writer = writers_of(result.kind).get(path.suffix.lower())
    if writer is None:
        raise _unknown_suffix(path, result.kind)
    written = writer(result)
    write_bytes(path, written if isinstance(written, bytes) else written.encode())


def check_suffix(path: Path, kind: str = "") -> None:
    """Refuse a file that could not be written before any work is done. Raises MissingExtraError for pictures where
    what draws them is not installed.
    """
    suffix = path.suffix.lower()
    if suffix not in writers_of(kind):
        raise _unknown_suffix(path, kind)
    if suffix in DRAWN:
        from suanli.report.drawn import converter  # noqa: PLC0415

        converter()


def _unknown_suffix(path: Path, kind: str = "") -> InputError:
    suffix = path.suffix.lower()
    if suffix in PICTURES:
        return no_picture(kind, shown(path.name))
    return InputError(
        Fault(
            code="unknown_format",
            message="the suffix names no format",
            where="--output",
            got=shown(path.name),
            expected="a file ending in " + ", ".join(writers_of(kind)),
            nearest=nearest_names(path.suffix, writers_of(kind)),
        )
    )


def no_picture(kind: str, got: str | None = None) -> InputError:
    """The error where a result has no figure to draw; names what it can be written as."""
    able = [suffix for suffix in writers_of(kind) if suffix not in PICTURES]
    return InputError(
        Fault(
            code="no_figure",
            message=f"{kind} has no picture to draw",
            where="--output",
            got=got,
            expected="a file ending in " + ", ".join(able),
        )
    )


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    write_bytes(path, text.encode())
