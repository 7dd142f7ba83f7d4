"""One way a request becomes a result, for /api and for the page."""

from __future__ import annotations

import html
import inspect
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from suanli import api
from suanli.errors import SuanliError
from suanli.nouns.result import Result
from suanli.readers import gate
from suanli.web.given import find_verb, read_given

Tell = Callable[[int, int, str], None]  # done, of how many, which
PARTS = 1000  # verbs that tell a part of 1 are told in thousandths
Uploads = Mapping[str, Path | Sequence[Path]]


def call(verb: str, given: Mapping[str, Any], files: Uploads | None = None, *, tell: Tell | None = None) -> Result:
    """What `suanli.VERB` gives for options as typed, with uploads by the option they are for.

    Nothing but the uploads is opened, nothing named is imported or fetched. Raises SuanliError with every fault of the
    request. `tell` is told of progress by verbs that tell it.

    >>> call("count", {"model": "gpt2", "seq": "1024"}).params.total
    124439808
    """
    listed = {name: [each] if isinstance(each, Path) else list(each) for name, each in (files or {}).items()}
    found = find_verb(verb)
    with gate.only(path for paths in listed.values() for path in paths):
        keywords = read_given(found, given, listed)
        if tell is not None and "progress" in inspect.signature(getattr(api, verb)).parameters:
            keywords["progress"] = _progress(tell)
        return _called(verb, keywords)


def _called(verb: str, keywords: dict[str, Any]) -> Result:
    function: Callable[..., Result] = getattr(api, verb)
    if verb == "explain":
        traces = keywords.pop("traces")
        alone = {"workers": 1} if len(traces) > 1 else {}  # this process is one of few: it starts no others
        return function(*traces, **keywords, **alone)
    if verb == "scale":
        file = keywords.pop("file", None)
        return function(file[0] if file and len(file) == 1 else file, **keywords)
    if verb == "summarise":
        return _summarised(function, keywords)
    return function(**keywords)


def _summarised(function: Callable[..., Result], keywords: dict[str, Any]) -> Result:
    """Summaries are written, told of, and thrown away: over the web there is no folder to leave them in."""
    with tempfile.TemporaryDirectory(prefix="suanli-") as folder:
        place = Path(folder) / ("summary.parquet" if len(keywords["traces"]) == 1 else "summaries")
        with gate.only([folder, *keywords["traces"]]):
            found = function(keywords.pop("traces"), place, workers=1, **keywords)
    rows = (replace(each, output=each.output and Path(each.output).name) for each in found.result.files)
    return replace(found, result=replace(found.result, files=tuple(rows)), inputs=found.inputs | {"output": place.name})


def _progress(tell: Tell) -> Callable[..., None]:
    """Verbs tell a part of 1, or how many are done, of how many, and which; `compare` a title first."""

    def told(*parts: Any) -> None:
        numbers = [each for each in parts if isinstance(each, int | float)]
        what = next((str(each) for each in parts if isinstance(each, str)), "")
        if len(numbers) == 1:
            tell(round(PARTS * float(numbers[0])), PARTS, what)
        elif len(numbers) >= 2:
            tell(int(numbers[0]), int(numbers[1]), what)

    return told


def reply(verb: str, given: Mapping[str, Any], files: Uploads | None = None, *, tell: Tell | None = None) -> str:
    """The text that `--json` prints for the same request. Raises SuanliError; folders of uploads are named nowhere."""
    try:
        return without_folders(call(verb, given, files, tell=tell).to_json(), files)
    except SuanliError as problem:
        raise cleaned(problem, files) from None


def without_folders(text: str, files: Uploads | None) -> str:
    """The text with uploads called by their names alone: where the server keeps them is its own affair."""
    for paths in (files or {}).values():
        for each in [paths] if isinstance(paths, Path) else paths:
            for folder in {f"{each.parent}/", html.escape(f"{each.parent}/")}:
                text = text.replace(folder, "")
    return text


def cleaned(problem: SuanliError, files: Uploads | None) -> SuanliError:
    """The error with uploads called by their names alone."""
    from dataclasses import fields  # noqa: PLC0415  of errors alone

    def clean(fault: Any) -> Any:
        texts = {each.name: getattr(fault, each.name) for each in fields(fault)}
        return replace(
            fault, **{name: without_folders(text, files) for name, text in texts.items() if isinstance(text, str)}
        )

    return type(problem)(*map(clean, problem.faults))
