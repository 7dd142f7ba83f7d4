"""What `suanli.rerun` and `suanli.diff` do: a report is read, made again, and set beside itself or another."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from suanli.api.changes import changes_of
from suanli.api.keeping import LIVE
from suanli.api.request import Request
from suanli.errors import Fault, InputError, shown
from suanli.nouns.result import Result
from suanli.nouns.workload import option
from suanli.readers.gate import check_path
from suanli.readers.reports import Report, read_report
from suanli.version import VERSION

# Verbs whose reports are not repeated: they compare reports, or write files of their own.
LEFT_ALONE = ("diff", "rerun", "summarise", "explain_folder")
RENAMED = {"verify": {"all": "every"}}
NOT_REPEATED = ("assumed", "engine", "workers", "cache")  # where work is done, not what is answered
FILES = ("trace", "traces", "against", "compare", "file", "events", "data", "calibrate", "rows")
CODE = ("torch:", "jax:", "keras:")
MODEL_FILES = (".json", ".onnx", ".safetensors", ".gguf", ".keras", ".toml")


def rerun(file: str | os.PathLike[str], *, trust: bool = False) -> Result:
    """Repeat a report, `.html` or `.json`, under this version: which numbers are others, and by how much.

    The new result is `asked["again"]`. Models that are code (`torch:package.module:factory`) are run only with `trust`.
    Not ok where a number moved. Raises InputError for what is no report, and where the request cannot be repeated,
    naming the file that no longer lies there.
    """
    report = read_report(Path(file).expanduser())
    again = _repeated(report, trust=trust)
    now = replace(
        report, file=Path(), version=VERSION, convention=again.convention, result=again.to_dict()["result"],
        inputs=again.to_dict()["inputs"],
    )  # fmt: skip
    found = changes_of(report, now)
    return Result(
        kind="rerun",
        inputs={"file": str(file), **({"trust": True} if trust else {})},
        convention=again.convention,
        result=found,
        ok=not (found.numbers or found.texts or found.gone),
        sources=again.sources,
        asked={"again": again},
    )


def diff(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> Result:
    """Two reports of one verb beside each other: inputs and numbers that differ.

    Raises InputError for what is no report, and for reports of different verbs.
    """
    request = Request()
    one = request.attempt(lambda: read_report(Path(first).expanduser(), "A"))
    other = request.attempt(lambda: read_report(Path(second).expanduser(), "B"))
    request.check()
    assert one is not None and other is not None
    if one.kind != other.kind:
        raise InputError(
            Fault(code="other_kind", message="reports of different verbs have no numbers in common", where="A, B",
                  got=f"{one.kind} and {other.kind}", expected="two reports of one verb")
        )  # fmt: skip
    return Result(
        kind="diff", inputs={"first": str(first), "second": str(second)}, convention=one.convention,
        result=changes_of(one, other),
    )  # fmt: skip


# --- a request from what a report holds ---------------------------------------------------------------------------


def _repeated(report: Report, *, trust: bool) -> Result:
    verb = _verb(report)
    names = RENAMED.get(report.kind, {})
    given = {
        names.get(name, name): value
        for name, value in report.inputs.items()
        if name not in NOT_REPEATED and value is not None
    }
    _check_live(report, given)
    _check_code(report, given, trust)
    given = _lying_there(report, given)
    traces = _listed(given.pop("traces", None)) or _listed(given.pop("trace", None))
    known = inspect.signature(verb).parameters
    if not any(rule.kind is inspect.Parameter.VAR_KEYWORD for rule in known.values()):
        _check_known(report, given, known)
    return verb(*traces, **given)


def repeated_verbs() -> list[str]:
    """Verbs whose reports can be repeated: all but those left alone."""
    from suanli import api  # noqa: PLC0415  it imports this module

    return sorted(set(api.__all__) - set(LEFT_ALONE))


def _verb(report: Report) -> Callable[..., Result]:
    from suanli import api  # noqa: PLC0415  it imports this module

    known = repeated_verbs()
    if report.kind not in known:
        raise InputError(
            Fault(code="not_repeated", message="a report of this verb is not repeated", where=str(report.file),
                  got=shown(report.kind), expected="a report of " + ", ".join(known))
        )  # fmt: skip
    found: Callable[..., Result] = getattr(api, report.kind)
    return found


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list) else [value]


def _check_known(report: Report, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    strange = [name for name in given if name not in known]
    if strange:
        raise InputError(*(
            Fault(code="no_such_option", message="this version does not take an option of the report",
                  where=str(report.file), got=option(name))
            for name in strange
        ))  # fmt: skip


def _check_live(report: Report, given: dict[str, Any]) -> None:
    """Objects of a program that has ended cannot be had again."""
    live = given.pop(LIVE, None)
    if live:
        raise InputError(
            Fault(code="not_in_the_report", message="the report was made of an object of a running program",
                  where=str(report.file), got=", ".join(map(str, live)),
                  hint="Call the verb again with that object, and compare with `suanli diff`.")
        )  # fmt: skip


def _check_code(report: Report, given: Mapping[str, Any], trust: bool) -> None:
    """A report may come from anyone: code that it names runs only where that is wanted."""
    named = [value for value in given.values() if isinstance(value, str) and value.strip().startswith(CODE)]
    if named and not trust:
        raise InputError(
            Fault(code="runs_code", message="repeating the report would run code that it names", where=str(report.file),
                  got=shown(named[0]), hint="--trust runs it.")
        )  # fmt: skip


def _lying_there(report: Report, given: Mapping[str, Any]) -> dict[str, Any]:
    """Files where they were, or beside the report. Raises InputError naming every one that is at neither place."""
    lost: list[Fault] = []

    def place(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [place(name, each) for each in value]
        check_path(str(value), option(name))
        path = Path(str(value)).expanduser()
        beside = report.file.parent / path
        found = next((each for each in (path, beside, report.file.parent / path.name) if each.exists()), None)
        if found is None:
            lost.append(
                Fault(code="no_longer_there", message="a file of the request no longer lies there", where=option(name),
                      got=shown(str(value)), hint="Put it back, or beside the report.")
            )  # fmt: skip
        return str(found or value)

    made = {name: place(name, value) if _is_file(name, value) else value for name, value in given.items()}
    if lost:
        raise InputError(*lost)
    return made


def _is_file(name: str, value: Any) -> bool:
    if name in ("model", "draft_model"):
        return isinstance(value, str) and not value.startswith(CODE) and value.lower().endswith(MODEL_FILES)
    if name in ("stack",):
        return isinstance(value, str) and value.endswith(".toml")
    return name in FILES and isinstance(value, str | list)
