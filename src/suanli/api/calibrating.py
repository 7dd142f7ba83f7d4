"""What `suanli.calibrate` does: a file of own runs becomes a stack; or the profiles that ship are fitted again."""

from __future__ import annotations

import datetime
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from suanli.api.calibrating_kernels import calibrate_to_kernels, holds_kernels
from suanli.api.layouts import DEFAULT_STACK
from suanli.api.links import read_fabric
from suanli.api.parts import read_stack
from suanli.api.request import Request
from suanli.catalog.devices import find_device
from suanli.errors import AmbiguousNameError, Fault, InputError, SuanliError, shown, unknown_name
from suanli.nouns.arch import Arch
from suanli.nouns.calibrated import Origin
from suanli.nouns.hardware import Device
from suanli.nouns.measured import OwnRun, OwnRuns
from suanli.nouns.result import Result
from suanli.plan.observed import Observation, observe_own, own_decoder
from suanli.plan.own_runs import FEWEST
from suanli.plan.own_runs import calibrate as fit_own
from suanli.plan.shipped import STACKS, fit_shipped
from suanli.readers.model import read_model
from suanli.readers.stack_file import is_stack_file
from suanli.readers.step_rows import read_step_rows

ALL = "all"
PRIORS = "priors: what is believed of a stack's numbers, and how surely: suanli.nouns.profile, catalog/stack_time.toml"
LONGEST_NAME = 60


def calibrate_stack(
    file: Any, *, stack: Any = None, gpu: str | None = None, fabric: str | None = None, name: str | None = None,
    shipped: str | None = None, rows: Any = None,
) -> Result:  # fmt: skip
    """The calibration as a Result. Raises InputError listing every fault."""
    request = Request()
    if shipped is not None:
        return _shipped(request, shipped, rows, {"FILE.csv": file, "--stack": stack, "--name": name}, gpu, fabric)
    if rows is not None:
        _fault(request, "contradiction", "rows are added to those that ship", "--rows", expected="--shipped STACK too")
    if not isinstance(file, str | Path):
        _fault(request, "no_file", "own runs stand in a file", "FILE.csv", got=None if file is None else shown(file),
               expected="the path of a CSV file, or --shipped STACK")  # fmt: skip
    profile = read_stack(request, stack, DEFAULT_STACK)
    label = _name(request, name)
    if isinstance(file, str | Path) and profile is not None and holds_kernels(_path(file)):
        request.check()
        return calibrate_to_kernels(request, _path(file), profile, {"gpu": gpu, "fabric": fabric}, label)
    found = None if not isinstance(file, str | Path) else request.attempt(lambda: read_step_rows(_path(file)))
    runs = () if found is None or profile is None else observed(request, found, _path(file).name, gpu, fabric,
                                                                profile.shipped)  # fmt: skip
    if found is not None and len(found.runs) < FEWEST:
        _fault(request, "too_few_runs", "too few step times to fit to and to judge by", _path(file).name,
               got=str(len(found.runs)), expected=f"{FEWEST} or more, best of several layouts")  # fmt: skip
    request.check()
    assert found is not None and profile is not None
    books = fit_own(runs, profile, label)
    origin = _origin("calibrate", _path(file), found, stack=request.given.get("stack"), gpu=gpu, fabric=fabric)
    source = f"{len(runs)} own runs of {origin.data}, {origin.date}"
    own = replace(books.profile, sources=(*profile.sources, source), command=origin.command, date=origin.date)
    return Result(
        kind="calibrate",
        inputs={"file": str(file), **request.given, **_typed(gpu=gpu, fabric=fabric), "assumed": request.assumed},
        result=replace(books, profile=own),
        sources=(f"runs: {origin.data}, sha256 {origin.data_sha256}", *(f"stack: {each}" for each in profile.sources),
                 PRIORS),
        notes=_notes(request, found, runs),
        asked={"origin": origin},
    )  # fmt: skip


def _shipped(
    request: Request, shipped: str, rows: Any, others: dict[str, Any], gpu: str | None, fabric: str | None
) -> Result:
    """The shipped profiles fitted again, with rows of a file beside those of the package."""
    for option, value in others.items():
        if value is not None:
            _fault(request, "contradiction", "the profiles that ship are fitted to the package's runs", option,
                   got=shown(str(value)), expected="--shipped alone, or with --rows FILE.csv")  # fmt: skip
    word = request.word("shipped", shipped, ALL)
    if word not in (ALL, *STACKS):
        hint = f"Stacks with runs of their own: {', '.join(STACKS)}; or {ALL}."
        request.errors.append(unknown_name("stack", word, (ALL, *STACKS), where="--shipped", hint=hint))
    if rows is not None and word == ALL:
        _fault(request, "contradiction", "rows are of one stack", "--rows", got="--shipped all",
               expected="--shipped STACK")  # fmt: skip
    found = None if rows is None else request.attempt(lambda: read_step_rows(_path(rows)))
    own: tuple[Observation, ...] = ()
    if found is not None and word in STACKS:
        own = observed(request, found, _path(rows).name, gpu, fabric, word)
    request.check()
    books = fit_shipped(STACKS if word == ALL else (word,), own)
    origin = _origin("calibrate --shipped " + word, None if rows is None else _path(rows), found)
    return Result(
        kind="calibrate",
        inputs={**request.given, **_typed(rows=None if rows is None else str(rows), gpu=gpu, fabric=fabric)},
        result=books,
        sources=(*(f"{each.stack}: {', '.join(each.sources)}" for each in books.stacks), PRIORS),
        notes=(
            "fitted to every run of the stack; intervals from each fold left out (suanli verify --only predictions)",
            *(() if found is None else _notes(request, found, own)),
        ),
        asked={"origin": origin},
    )


def _fault(request: Request, code: str, message: str, where: str, **parts: Any) -> None:
    request.errors.append(InputError(Fault(code=code, message=message, where=where, **parts)))


def _path(file: Any) -> Path:
    return Path(file).expanduser()


def _typed(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _name(request: Request, name: str | None) -> str:
    """The name of the calibrated stack; empty where none is given."""
    if name is None:
        return ""
    word = request.word("name", name, "", fold=False)
    if not word or len(word) > LONGEST_NAME or not word.isprintable():
        _fault(request, "bad_name", "not a name", "--name", got=shown(name), expected=f"1 to {LONGEST_NAME} characters")
    return word


def _origin(verb: str, path: Path | None, found: OwnRuns | None, **options: Any) -> Origin:
    """Where the numbers come from: the command without folders of this machine."""
    parts = ["suanli", *verb.split()]
    if path is not None:
        parts += [path.name] if verb == "calibrate" else ["--rows", path.name]
    for name, value in options.items():
        words = Path(str(value)).name if is_stack_file(value) else str(value)
        parts += [f"--{name}", words] if value is not None else []
    data = "" if path is None else path.name if path.name.isprintable() else ascii(path.name)
    return Origin(
        command=shlex.join(parts), date=datetime.date.today().isoformat(), data=data,
        data_sha256="" if found is None else found.sha256,
    )  # fmt: skip


def _notes(request: Request, found: OwnRuns, runs: tuple[Observation, ...]) -> tuple[str, ...]:
    assumed = {**request.assumed, **found.assumed}
    parts = ", ".join(f"{name} {int(value) if isinstance(value, bool) else value}" for name, value in assumed.items())
    devices = {run.gpu: seen.device for run, seen in zip(found.runs, runs, strict=True) if run.gpu}
    return (
        *((f"assumed: {parts}",) if parts else ()),
        *(f"{text} is taken to be {device}" for text, device in devices.items() if text.lower() != device),
        "links: " + ", ".join(dict.fromkeys(run.fabric.name for run in runs)),
    ) if runs else ((f"assumed: {parts}",) if parts else ())  # fmt: skip


# --- rows to observations -----------------------------------------------------------------------------------------


def observed(
    request: Request, found: OwnRuns, where: str, gpu: str | None, fabric: str | None, stack: str
) -> tuple[Observation, ...]:
    """The runs of a file as what a prediction needs; every fault is kept with its line."""
    known: dict[Any, Any] = {}

    def once(key: Any, read: Any) -> Any:
        """What `read` gives, and the same object again for the same words."""
        if key not in known:
            known[key] = read()
        return known[key]

    runs = []
    for run in found.runs:
        try:
            arch = once(("model", *_model_key(run)), lambda run=run: _arch(run))
            device = once(("gpu", run.gpu), lambda run=run: _device(run.gpu, gpu))
            text = run.fabric or fabric
            links = once(("fabric", text, device.id), lambda text=text, device=device: read_fabric(text, device))
            runs.append(observe_own(run, arch, device.short_id, links, stack))
        except SuanliError as problem:
            at = f"{where}, line {run.line}"
            request.errors.append(InputError(*(replace(each, where=_place(at, each.where)) for each in problem.faults)))
    return tuple(runs)


def _place(line: str, where: str | None) -> str:
    """The line of a fault, and the column where an option of that name is told."""
    column = (where or "").removeprefix("--").replace("-", "_")
    return f"{line}, {column}" if where else line


def _model_key(run: OwnRun) -> tuple[Any, ...]:
    return (run.model,) if run.shape is None else (*run.shape.values(), run.seq)


def _arch(run: OwnRun) -> Arch:
    arch = read_model(run.model) if run.shape is None else own_decoder(run.shape, run.seq)
    if arch.unit != "token" or not any(placed.block for placed in arch.leaves()):
        what = f"{arch.name} is no stack of blocks over tokens"
        raise InputError(Fault(code="no_blocks", message="the model cannot be laid out", where="model", got=what,
                               expected="a transformer"))  # fmt: skip
    return arch


def _device(text: str | None, option: str | None) -> Device:
    """The device of a row, or of the option where the row has none. Raises InputError where there is neither, or both
    and they differ.
    """
    named = [_board(each) for each in (text, option) if each is not None]
    if not named:
        raise InputError(Fault(code="missing_value", message="no device", where="gpu",
                               expected="a column gpu, or --gpu h100-sxm"))  # fmt: skip
    if len({device.id for device in named}) > 1:
        raise InputError(Fault(code="contradiction", message="two devices", where="gpu",
                               got=f"{text} and --gpu {option}", expected="one of them"))  # fmt: skip
    return named[0]


def _board(name: str) -> Device:
    """The device of a name; of one that leaves the board open, the SXM one, which the notes say."""
    try:
        return find_device(name, where="gpu")
    except AmbiguousNameError:
        return find_device(f"{name}-SXM", where="gpu")
