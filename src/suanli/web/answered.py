"""What a worker does for the page: the verb, then its answer as HTML, as a file, or as where a number comes from."""

from __future__ import annotations

import json
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from suanli.nouns.result import Result
from suanli.web.call import call, without_folders

Tell = Callable[[int, int, str], None]
Files = Mapping[str, Sequence[Path]]
EXAMPLE = "example"  # stands for a trace of our own, made by examples/step.json's maker
KEPT = 3  # answers a worker remembers, so that a question about a number does not work them out again


@dataclass(frozen=True)
class Shown:
    """An answer as the page shows it."""

    headline: str
    html: str


_answers: OrderedDict[str, Result] = OrderedDict()


def answer(verb: str, given: Mapping[str, Any], files: Files, tell: Tell | None = None) -> Result:
    """The verb's result, remembered for the next question about it. Raises SuanliError."""
    key = json.dumps([verb, given, {name: list(map(str, paths)) for name, paths in files.items()}], sort_keys=True)
    if key not in _answers:
        _answers[key] = _called(verb, given, files, tell)
        while len(_answers) > KEPT:
            _answers.popitem(last=False)
    _answers.move_to_end(key)
    return _answers[key]


def _called(verb: str, given: Mapping[str, Any], files: Files, tell: Tell | None) -> Result:
    examples = {name: value for name, value in given.items() if value == [EXAMPLE]}
    if not examples:
        return call(verb, given, files, tell=tell)
    kept = {name: value for name, value in given.items() if name not in examples}
    with resources.as_file(resources.files("suanli.web") / "assets" / "example.pt.trace.json") as path:
        return call(verb, kept, {**files, **{name: [path] for name in examples}}, tell=tell)


def shown(
    verb: str, given: Mapping[str, Any], files: Files, lang: str, units: str, *, tell: Tell | None = None
) -> Shown:
    """The answer as HTML. Raises SuanliError."""
    from suanli.report import document_of  # noqa: PLC0415  with the first answer
    from suanli.report.html import fragment  # noqa: PLC0415
    from suanli.report.words import translate  # noqa: PLC0415
    from suanli.units import units_as  # noqa: PLC0415

    result = answer(verb, given, files, tell)
    with units_as(units):
        headline = translate(document_of(result).headline, lang)
    return Shown(headline, without_folders(fragment(result, lang=lang, units=units), files))


def why_note(
    verb: str, given: Mapping[str, Any], files: Files, lang: str, key: tuple[str, str, str], *, tell: Tell | None = None
) -> str:
    """Where a number comes from, as what stands in a dialog; empty where nothing more is known. Raises SuanliError."""
    from suanli.report.html_notes import note_html  # noqa: PLC0415
    from suanli.report.whys import reason_of  # noqa: PLC0415

    note = reason_of(answer(verb, given, files, tell), *key)
    return "" if note is None else without_folders(note_html(note, lang), files)


def as_file(
    verb: str, given: Mapping[str, Any], files: Files, lang: str, units: str, suffix: str, *, tell: Tell | None = None
) -> bytes:
    """The answer as the file `-o x.SUFFIX` writes. Raises SuanliError where its kind writes no such file."""
    from suanli.report.files import write_result  # noqa: PLC0415
    from suanli.report.words import spoken_in  # noqa: PLC0415
    from suanli.units import units_as  # noqa: PLC0415

    result = answer(verb, given, files, tell)
    with tempfile.TemporaryDirectory(prefix="suanli-") as folder, spoken_in(lang), units_as(units):
        path = Path(folder) / f"report.{suffix}"
        write_result(result, path)
        found = path.read_bytes()
    return found if suffix == "png" else without_folders(found.decode(), files).encode()
