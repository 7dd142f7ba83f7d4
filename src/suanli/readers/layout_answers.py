"""What `suanli layout --json` printed, read again: the account of the first layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from suanli.errors import Fault, UnreadableFileError, shown
from suanli.nouns.step import Entry
from suanli.readers.files import read_json_config

AXES = ("tp", "pp", "vpp", "cp", "ep", "dp")
_EXPECTED = "what `suanli layout MODEL … --json` prints"


@dataclass(frozen=True)
class PredictedStep:
    """The step of the best layout of an answer."""

    name: str
    account: tuple[Entry, ...]


def read_layout_answer(path: Path) -> PredictedStep:
    """The predicted step in a file. Raises UnreadableFileError for what is not an answer of `layout`."""
    answer = read_json_config(path)
    if answer.get("kind") != "layout" or not isinstance(answer.get("result"), dict):
        _refuse(path, "not_a_layout", "the file is no answer of layout", got=shown(answer.get("kind")))
    layouts = answer["result"].get("layouts")
    if not isinstance(layouts, list) or not layouts or not isinstance(layouts[0], dict):
        _refuse(path, "no_layout", "the answer holds no layout")
    rows = layouts[0].get("account")
    entries = [_entry(row) for row in rows] if isinstance(rows, list) else []
    if not entries or None in entries:
        _refuse(path, "no_account", "the first layout has no account of entries and seconds")
    axes = [f"{axis}{layouts[0][axis]}" for axis in AXES if isinstance(layouts[0].get(axis), int)]
    return PredictedStep(" ".join(axes), tuple(each for each in entries if each is not None))


def _entry(row: Any) -> Entry | None:
    if not isinstance(row, dict) or not isinstance(row.get("entry"), str):
        return None
    seconds = row.get("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
        return None
    return Entry(row["entry"], float(seconds))


def _refuse(path: Path, code: str, message: str, got: str | None = None) -> NoReturn:
    raise UnreadableFileError(Fault(code=code, message=message, where=str(path), got=got, expected=_EXPECTED))
