"""`suanli.verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from suanli.api.keeping import keeps_request
from suanli.errors import Fault, InputError, shown, unknown_name
from suanli.nouns.claim import Verification
from suanli.nouns.coverage import DEFAULT, SMALL, summarise_coverage
from suanli.nouns.result import Result
from suanli.readers.hf_types.mappings import TypeOfTask
from suanli.readers.outside import MEASURED_SERVING, outside_data
from suanli.verify import verify as check
from suanli.verify import verify_samples, verify_served

MODELS, SERVING, TRACES = "models", "serving", "traces"
NO_POINTS = (
    f"no measured points were found ({MEASURED_SERVING}): the errors are those recorded when the presets were fitted; "
    "give --data DIR to compute them again"
)
LATER_TRACES = "figures of public traces, where their files are: suanli verify --only traces --data FOLDER"
FOLDER = Path("traces", "files")
LATER = "formula against trace for each model type of transformers: suanli verify --only models (minutes)"
SMALL_ONLY = "a small odd config of each type; --all tries the default configs too (a quarter of an hour)"


@keeps_request
def verify(
    only: str | Sequence[str] | None = None, *, every: bool = False, types: str | Sequence[str] | None = None,
    data: str | Path | None = None, processes: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Result:  # fmt: skip
    """Reproduce published numbers. `ok` is False when a claim that should hold does not.

    `only` names sections, in one text with commas or as a list; `every` asks reports for all claims. With `models`
    named, every model type of transformers (or those of `types`) is counted by formula and by trace: small configs,
    and with `every` the default ones too; `progress` is told of each (done, of how many, which). With `serving` named,
    measured points are read from the folder `data`, with `traces` the samples in it are explained: from `data`, else
    from where `readers.outside` finds one.
    Raises UnknownNameError for a section nobody knows, InputError for what are no names, for types where models are
    not asked for, and for traces without their files.
    """
    names, wanted = _listed(only, "--only"), _listed(types, "--types")
    if wanted is not None and MODELS not in (names or ()):
        raise InputError(
            Fault(code="no_such_option", message="types are checked with the models", where="--types",
                  got=", ".join(wanted), hint="Add --only models.")
        )  # fmt: skip
    asked = set(names or ())
    if data is not None and not {SERVING, TRACES} & asked:
        raise InputError(
            Fault(code="no_such_option", message="outside data are of a section that needs them", where="--data",
                  got=shown(str(data)), hint="Add --only serving or --only traces.")
        )  # fmt: skip
    found = check([name for name in names if name != SERVING] if SERVING in asked and names is not None else names)
    notes: tuple[str, ...] = (LATER, LATER_TRACES) if names is None else ()
    if SERVING in asked:
        served, said = _served(data)
        found, notes = _together(found, served), (*notes, said)
    if TRACES in asked:
        folder = _samples(data)
        found, notes = _together(found, verify_samples(folder, progress)), (*notes, f"traces: {folder}")
    if names is not None and MODELS in names:
        found, more = _with_coverage(found, every, wanted, processes, progress)
        notes = (*notes, *more)
    return Result(
        kind="verify",
        inputs={"only": names, "all": every, **({} if wanted is None else {"types": wanted})},
        result=found,
        ok=found.holds,
        sources=tuple(dict.fromkeys(row.source for row in found.summary)),
        notes=notes,
    )


def _served(data: str | Path | None) -> tuple[Verification, str]:
    """The section `serving` with the points that are found, and a line that says where; aloud where there are none."""
    folder = outside_data(data)
    path = None if folder is None else folder / MEASURED_SERVING
    if path is None or not path.is_file():
        if data is not None:
            raise InputError(
                Fault(code="no_points", message="the folder holds no measured points", where="--data",
                      got=shown(str(data)), expected=f"a file {MEASURED_SERVING}")
            )  # fmt: skip
        return verify_served(None), NO_POINTS
    from suanli.readers.serving_points import read_serving_points  # noqa: PLC0415  loaded where it is needed

    return verify_served(read_serving_points(path)), f"measured points: {path}"


def _samples(data: str | Path | None) -> Path:
    """The folder that has `traces` in it. Raises InputError where there is none."""
    folder = outside_data(data)
    for place in () if folder is None else (folder, folder.parent):  # traces may lie beside the other data
        if (place / FOLDER).is_dir():
            return place
    raise InputError(
        Fault(code="no_data", message="the traces to check are not part of the project", where="--only traces",
              got=None if folder is None else f"{folder}, without them",
              expected="a folder with traces/INDEX.csv and the files it lists in traces/files",
              hint="Name it with --data, or in the variable SUANLI_DATA.")
    )  # fmt: skip


def _together(first: Verification, second: Verification) -> Verification:
    return replace(first, claims=(*first.claims, *second.claims), summary=(*first.summary, *second.summary))


def _listed(value: Any, where: str) -> list[str] | None:
    """A text with commas as a list. Raises InputError for what is neither that nor a list of texts."""
    if value is None:
        return None
    parts = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [value]
    if all(isinstance(part, str) for part in parts):
        return [part.strip() for part in parts]
    raise InputError(
        Fault(code="bad_names", message="these are no names", where=where, got=shown(value),
              expected="names with commas between them, or a list of names")
    )  # fmt: skip


def _with_coverage(
    found: Verification,
    every: bool,
    types: list[str] | None,
    processes: int | None,
    progress: Callable[[int, int, str], None] | None,
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
    covered = pool.check_types(chosen(types_of_tasks(), types), configs, processes=processes, progress=progress)
    whole = replace(found, coverage=covered, coverage_summary=summarise_coverage(covered))
    return whole, () if every else (SMALL_ONLY,)


def chosen(tasks: Sequence[TypeOfTask], types: Sequence[str] | None) -> list[TypeOfTask]:
    """The tasks of these types; all where none is named. Raises UnknownNameError for a type transformers lacks."""
    known = dict.fromkeys(task.model_type for task in tasks)
    for name in types or ():
        if name not in known:
            raise unknown_name(
                "model type", name, known, where="--types", hint="Types are those of transformers' mappings by task."
            )
    return [task for task in tasks if types is None or task.model_type in types]
