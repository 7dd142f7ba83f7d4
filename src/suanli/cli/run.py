"""Runs a verb for the command line: result or error to screen, JSON or file; exit code 0, 1 or 2."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from suanli.errors import Fault, InputError, SuanliError, shown
from suanli.nouns.result import Result

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_WITHOUT_TERMINAL = 120


def run(
    verb: Callable[[], Result], *, as_json: bool, output: Path | None, failed: Callable[[Result], bool], kind: str = ""
) -> None:
    """Call the verb, show what it gives. `failed` says whether a result means exit code 1; `kind` is the verb where it
    writes files of its own kind.
    """
    try:
        if output is not None:
            from suanli.report.files import check_suffix  # noqa: PLC0415  loaded only where a file is asked for

            check_suffix(output, kind)
        result = verb()
        show(result, as_json=as_json, output=output)
    except SuanliError as problem:
        show_error(problem, as_json=as_json)
        raise typer.Exit(problem.exit_code) from problem
    sys.stdout.flush()  # a disk that is full is told here, not at exit
    if failed(result):
        raise typer.Exit(1)


def never(_: Result) -> bool:
    """A verb whose result cannot fail."""
    return False


def show(result: Result, *, as_json: bool, output: Path | None) -> None:
    """The result on stdout, as a file, or both."""
    if output is not None:
        from suanli.report.files import write_result  # noqa: PLC0415

        _check_no_input(result, output)
        write_result(result, output)
    if as_json:
        sys.stdout.write(result.to_json() + "\n")
    elif output is not None:
        sys.stderr.write(f"wrote {output}\n")
    else:
        from suanli.report import document_of  # noqa: PLC0415
        from suanli.report.text import document_text, print_document  # noqa: PLC0415
        from suanli.report.translated import translated  # noqa: PLC0415
        from suanli.report.words import language  # noqa: PLC0415

        document = translated(document_of(result), language())
        if sys.stdout.isatty():
            print_document(document, terminal())
        else:
            sys.stdout.write(document_text(document, WIDTH_WITHOUT_TERMINAL))


def _check_no_input(result: Result, output: Path) -> None:
    """Raise InputError rather than write over a file that the result was made from: a trace is not made twice."""
    named = [value if isinstance(value, list | tuple) else [value] for value in result.inputs.values()]
    if any(isinstance(each, str | Path) and _is_same(each, output) for values in named for each in values):
        raise InputError(Fault(code="own_input", message="the file to write is one that was read", where="--output",
                               got=shown(output.name), hint="Name another file."))  # fmt: skip


def _is_same(read: str | Path, written: Path) -> bool:
    try:
        return written.samefile(read)
    except (OSError, ValueError):  # not there, or no path at all
        return False


def terminal() -> Console:
    """The terminal, at its width and with its colours."""
    from rich.console import Console  # noqa: PLC0415  not for --json

    return Console(highlight=False)


def show_error(problem: SuanliError, *, as_json: bool) -> None:
    """Every fault, a line each, on stderr; or the JSON error on stdout."""
    if as_json:
        sys.stdout.write(json.dumps(problem.to_dict(), ensure_ascii=False, indent=2) + "\n")
        return
    for fault in problem.faults:
        sys.stderr.write(f"error: {fault.sentence()}\n")
