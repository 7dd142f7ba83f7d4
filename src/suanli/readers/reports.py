"""Reports that Suanli wrote: the JSON envelope of a `.json`, or the one that lies in an `.html`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from suanli.errors import Fault, InputError, UnreadableFileError, shown
from suanli.nouns.result import SCHEMA
from suanli.readers.gate import check_path
from suanli.units import MEBI

LARGEST = 256 * MEBI  # bytes; a report of thousands of layouts has 30 MB
_INSIDE = re.compile(r'<script type="application/json" id="suanli-result">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True)
class Report:
    """A result as it was written down."""

    file: Path
    kind: str
    version: str
    convention: str | None
    inputs: dict[str, Any]
    result: Any


def read_report(path: Path, where: str = "") -> Report:
    """The report in a file. Raises UnreadableFileError or InputError for what is none, or an error that was written."""
    text = _text(path, where)
    inside = _INSIDE.search(text)
    if inside is None and not text.lstrip().startswith("{"):
        _refuse(path, "no_report", "no report of Suanli",
                hint="A report is an .html or .json written by -o, or what --json printed.")  # fmt: skip
    try:
        found = json.loads(inside.group(1) if inside else text, parse_constant=_no_number)
    except RecursionError:
        _refuse(path, "bad_json", "the JSON of the report is nested too deeply")
    except ValueError as problem:
        _refuse(path, "bad_json", "the JSON of the report cannot be read", got=str(problem))
    return _report(path, found)


def _text(path: Path, where: str) -> str:
    check_path(path, where or "FILE")
    try:
        size = path.stat().st_size
        if not path.is_file() or size > LARGEST:
            _refuse(path, "no_report", "no report of Suanli",
                    got=f"{size:,} bytes" if path.is_file() else "no regular file",
                    expected=f"a file of at most {LARGEST:,} bytes")  # fmt: skip
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        fault = Fault(code="unreadable_file", message=f"the report {where} cannot be read".replace("  ", " "),
                      where=str(path), got=problem.strerror or type(problem).__name__)  # fmt: skip
        raise UnreadableFileError(fault) from problem
    except UnicodeDecodeError:
        _refuse(path, "no_report", "no report of Suanli", got="bytes that are no text")


def _report(path: Path, found: Any) -> Report:
    """The envelope, checked as far as it is used."""
    parts = (found.get("kind"), found.get("inputs"), found.get("result")) if isinstance(found, dict) else ()
    if isinstance(found, dict) and isinstance(found.get("error"), dict) and not found.get("ok"):
        _refuse(path, "an_error", "the file holds an error, no result", got=shown(found["error"].get("message")))
    if not parts or not isinstance(parts[0], str) or not isinstance(parts[1], dict) or not isinstance(parts[2], dict):
        _refuse(path, "no_report", "no report of Suanli", expected="JSON with kind, inputs and result")
    if found.get("schema") != SCHEMA:
        _refuse(path, "other_schema", "the report has another form than this version reads",
                got=shown(found.get("schema")), expected=f"schema {SCHEMA}")  # fmt: skip
    convention = found.get("convention")
    return Report(
        file=path, kind=parts[0], version=str(found.get("version", "")),
        convention=convention if isinstance(convention, str) else None, inputs=parts[1], result=parts[2],
    )  # fmt: skip


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _refuse(path: Path, code: str, message: str, **parts: Any) -> NoReturn:
    raise InputError(Fault(code=code, message=message, where=str(path), **parts))
