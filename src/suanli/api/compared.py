"""What `suanli.compare` does, loaded where it is asked for: the model described, counters run, the answer made."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suanli.api.parts import as_asked, assumed_line, read_model_of, read_workload
from suanli.api.request import Request
from suanli.api.tracing import config_of
from suanli.catalog.conventions import CONVENTIONS
from suanli.catalog.presets import find_preset
from suanli.compare.closed import Closed, closed, right_step
from suanli.compare.peers import PEERS, Peer, Progress, find_peers
from suanli.compare.places import as_ledger
from suanli.compare.session import AUTO, DEVICES, Session
from suanli.compare.verdict import formula_counter, right_of_pass, scan_sentence, tool_counter
from suanli.count import build_ledger
from suanli.differences import term_differences
from suanli.errors import ConfigError, Fault, InputError, SuanliError, UnknownNameError, shown, unknown_name
from suanli.nouns.arch import Arch
from suanli.nouns.comparison import Comparison, Counter, Right
from suanli.nouns.ledger import Ledger
from suanli.nouns.result import Result
from suanli.nouns.workload import Workload
from suanli.readers import gate
from suanli.readers.kinds import TORCH, is_module, is_source
from suanli.readers.layer_expr import looks_like_expression
from suanli.units import GIBI, PEBI

TIME_LIMIT, MEMORY_LIMIT = 120, 8 * GIBI
MOST_MEMORY = PEBI  # bytes; what systems can be told ends not far above
NAMED = "names with commas between them, or a list of names"
FULL = CONVENTIONS["full"]
SHOWN_TERMS = 3  # of those that formula and trace count differently
SOURCES = (
    "the right number: operators seen by torch's dispatcher in one run, and Suanli's formula; every pair of positions",
    "causes: each tool's own amounts by module and operator, held against that run",
)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is compared: how the other process builds it, its formula where there is one, the workload."""

    description: Mapping[str, Any] | None
    arch: Arch | None
    workload: Workload
    why_not: str = ""  # why it cannot be run

    @property
    def name(self) -> str:
        """Name of the model."""
        if self.arch is not None:
            return self.arch.name
        return str((self.description or {}).get("name", "module"))

    @property
    def title(self) -> str:
        """Name as people write it."""
        return (self.arch.title or self.arch.name) if self.arch is not None else self.name


def compare_model(
    model: Any, *, seq: Any, batch: Any, input_: Any, device: str | None, tools: Any, time_limit: Any,
    memory_limit: Any, progress: Progress | None,
) -> Result:  # fmt: skip
    """The answer of `suanli.compare`."""
    request = Request()
    wanted = _wanted(request, tools)
    where = _device(request, device)
    seconds, memory = request.time_limit(time_limit), _memory(request, memory_limit)
    request.assumed |= {
        name: value for name, value, given in (
            ("time_limit", f"{TIME_LIMIT} s", time_limit), ("memory_limit", "8 GiB", memory_limit)
        ) if given is None
    }  # fmt: skip
    with subject_of(request, model, input_, seq, batch) as subject:
        request.check()
        assert subject is not None and wanted is not None
        session = None
        if _needs_run(subject, wanted):
            assert subject.description is not None
            session = Session(subject.description, where, seconds or TIME_LIMIT, memory or MEMORY_LIMIT, progress)
            session.run([peer for peer in wanted if peer.package])
    if subject.arch is None and session is not None and "reason" in session.record:
        raise InputError(*cannot_run(session.record["reason"], subject).faults)
    return _result(request, model, subject, session, wanted)


def _limit_note(request: Request, session: Session | None) -> tuple[str, ...]:
    """What a time limit that was typed does not hold."""
    if session is None or "time_limit" not in request.given:
        return ()
    return ("--time-limit holds for each counter's own run: loading torch and the model is not counted in it",)


def _wanted(request: Request, tools: Any) -> tuple[Peer, ...] | None:
    """The counters asked for, all where none is named; None where a fault was recorded."""
    if tools is None:
        return tuple(PEERS.values())
    if not isinstance(tools, str | Iterable):
        request.fault("bad_names", "these are no names", "tools", got=shown(tools), expected=NAMED)
        return None
    request.given["tools"] = tools if isinstance(tools, str) else list(tools)
    parts = tools.split(",") if isinstance(tools, str) else request.given["tools"]
    names = [str(part) for part in parts if str(part).strip()]
    if not names:
        request.fault("no_counter", "no counter is named", "tools", got=shown(tools), expected=NAMED,
                      hint="Leave it out for all. Counters: " + ", ".join(PEERS) + ".")  # fmt: skip
        return None
    return request.attempt(lambda: find_peers(names, "--tools"))


def _memory(request: Request, given: Any) -> int | None:
    """The bound of a counter's memory in bytes; None where not given or where a fault was recorded."""
    found = request.quantity("memory_limit", given, "bytes")
    if found is None or 1 <= found <= MOST_MEMORY:
        return None if found is None else int(found)
    expected = "at least 1 B" if found < 1 else "at most 1 PiB"
    request.fault(
        "bad_memory_limit", "the memory limit is not possible", "memory_limit", got=shown(given), expected=expected
    )
    return None


def _device(request: Request, device: str | None) -> str:
    word = request.word("device", device, AUTO)
    if word not in DEVICES:
        hint = "Devices: " + ", ".join(DEVICES) + "."
        request.errors.append(unknown_name("device", word, DEVICES, where="--device", hint=hint))
    return word


def _no_module(code: str, message: str, got: str, expected: str) -> ConfigError:
    return ConfigError(Fault(code=code, message=message, where="MODEL", got=got, expected=expected))


def cannot_run(reason: str, subject: Subject) -> ConfigError:
    """The error of a model that gives no number."""
    return ConfigError(Fault(code="cannot_run", message=reason, where="MODEL", got=shown(subject.name)))


def _needs_run(subject: Subject, wanted: tuple[Peer, ...]) -> bool:
    """Whether the model has to be run: for tools, and to know a picture's elements; formulas of tokens ask for none."""
    if subject.description is None:
        return False
    pictures = subject.arch is not None and subject.arch.unit != "token"
    return subject.arch is None or any(peer.package or (pictures and peer.name == "hf-trainer") for peer in wanted)


# --- the model ----------------------------------------------------------------------------------------------------


@contextmanager
def subject_of(request: Request, model: Any, input_: Any, seq: Any, batch: Any) -> Iterator[Subject | None]:
    """The model of a request, described for another process; None where a fault was recorded."""
    if input_ is not None:
        request.given["input"] = input_ if isinstance(input_, str) else shown(type(input_).__name__)
    if is_module(model):
        with _pickled(request, model, input_) as subject:
            yield subject
    elif isinstance(model, str) and model.strip().startswith(TORCH):
        gate.check_run(model)
        description = {"form": "factory", "name": model.strip(), "input": input_}
        yield Subject(description=description, arch=None, workload=Workload())
    elif is_source(model):
        request.errors.append(
            _no_module("not_run", "no torch module that other counters could run", shown(model),
                       "a preset, a config, a hub id, or torch:package.module:factory")
        )  # fmt: skip
        yield None
    else:
        yield _described(request, model, input_, seq, batch)


def _described(request: Request, model: Any, input_: Any, seq: Any, batch: Any) -> Subject | None:
    if input_ is not None:
        message = "a preset, a config or an expression says itself what it is run on"
        hint = "Leave it out; --seq and --batch size the run."
        request.fault("no_such_option", message, "input", got=shown(input_), hint=hint)
    arch = read_model_of(request, model)
    workload = read_workload(request, arch, {"seq": seq, "batch": batch}, {"phase": "forward"})
    if arch is None or workload is None:
        return None
    text = _expression(model)
    if text is not None:
        description = {
            "form": "expression",
            "text": text,
            "batch": workload.batch,
            "seq": workload.seq,
            "name": arch.name,
        }
        return Subject(description=description, arch=arch, workload=workload)
    try:
        config, head, where = config_of(model)
    except SuanliError as problem:
        return Subject(description=None, arch=arch, workload=workload, why_not=problem.faults[0].message)
    description = {
        "form": "config", "config": dict(config), "head": head, "where": where, "batch": workload.batch,
        "seq": workload.seq, "name": arch.name,
    }  # fmt: skip
    return Subject(description=description, arch=arch, workload=workload)


def _expression(model: Any) -> str | None:
    """The text of a layer expression, given as it is or as a preset."""
    if not isinstance(model, str):
        return None
    if looks_like_expression(model):
        return model
    try:
        preset = find_preset(model.strip(), "MODEL")
    except UnknownNameError:
        return None
    return str(preset.config["expression"]) if preset.format == "expression" else None


@contextmanager
def _pickled(request: Request, module: Any, input_: Any) -> Iterator[Subject | None]:
    """A live module, its weights left behind, in a file that the other process reads."""
    from suanli.readers.torch_module.load import copied, moved_inputs, read_inputs  # noqa: PLC0415

    inputs = request.attempt(lambda: read_inputs(input_, module))
    if inputs is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.pickle"
        try:
            path.write_bytes(pickle.dumps((copied(module, "meta"), moved_inputs(inputs, "meta"))))
        except (pickle.PicklingError, AttributeError, TypeError) as problem:
            request.errors.append(
                _no_module("cannot_pickle", "the module cannot be sent to another process", shown(str(problem)),
                           "torch:package.module:factory")
            )  # fmt: skip
            yield None
            return
        description = {"form": "pickle", "path": str(path), "name": type(module).__name__}
        yield Subject(description=description, arch=None, workload=Workload())


# --- the answer ---------------------------------------------------------------------------------------------------


def _result(
    request: Request, model: Any, subject: Subject, session: Session | None, wanted: tuple[Peer, ...]
) -> Result:
    right = _right(subject, session)
    step = None if subject.arch is None else _step(subject)
    counters = tuple(_counter(peer, subject, session, right, step) for peer in wanted)
    rights = (right,) if step is None else (right, Right(phase="train", flops=step.model_flops,
                                                         formula=step.model_flops, trace=None, equal=None,
                                                         note="what formulas of a step are held against"))  # fmt: skip
    arch, record = subject.arch, session.record if session is not None else {}
    tokens = arch is not None and arch.unit == "token"
    found = Comparison(
        model=subject.name,
        title=subject.title,
        unit=arch.unit if arch is not None else record.get("unit", "sample"),
        units=subject.workload.batch * (subject.workload.seq if tokens else 1) if arch else record.get("units", 1),
        params=arch.params_total if arch is not None else int(record.get("params", 0)),
        right=rights,
        counters=counters,
        explained=sum(each.unexplained == 0 for each in counters),
    )
    return Result(
        kind="compare",
        inputs={"model": as_asked(model), **request.given, "assumed": request.assumed},
        convention=FULL.name,
        result=found,
        sources=(*(arch.sources if arch is not None else ()), *SOURCES,
                 *(f"{each.title}: {each.source}" for each in wanted if each.source)),
        notes=(
            *assumed_line(request), *_limit_note(request, session),
            *((f"not run: {subject.why_not}",) if subject.why_not else ()),
        ),
    )  # fmt: skip


def _step(subject: Subject) -> Ledger:
    assert subject.arch is not None
    return right_step(subject.arch, training(subject.workload))


def training(workload: Workload) -> Workload:
    """The training step of the same lengths."""
    return Workload(phase="train", batch=workload.batch, seq=workload.seq)


def _right(subject: Subject, session: Session | None) -> Right:
    """The right number of a forward pass."""
    trace = session.right if session is not None else None
    if subject.arch is None:
        return right_of_pass(None, trace, "a module of your own has no formula")
    ledger = build_ledger(subject.arch, subject.workload, FULL)
    if session is None or trace is None:
        reason = subject.why_not or ("not run for formulas alone" if session is None else session.record["reason"])
        return right_of_pass(ledger.model_flops, None, str(reason))
    return right_of_pass(ledger.model_flops, trace, _why_unequal(subject.arch, subject.workload, ledger, session))


def _why_unequal(arch: Arch, workload: Workload, ledger: Ledger, session: Session) -> str:
    """Why formula and trace differ: the scans where they are all of it, else the largest terms; empty where equal."""
    more = (session.right or 0) - ledger.model_flops
    if not more:
        return ""
    from suanli.coverage import scans_of  # noqa: PLC0415  of use to the few models with scans

    for solves in (False, True):
        scans = scans_of(arch, workload, solves=solves)
        if scans is not None and scans.beside == more:
            return scan_sentence(scans)
    terms = term_differences(ledger, as_ledger(session.places))
    rest = f"; {len(terms) - SHOWN_TERMS} more terms" if len(terms) > SHOWN_TERMS else ""
    return "; ".join(term.sentence for term in terms[:SHOWN_TERMS]) + rest


def _counter(peer: Peer, subject: Subject, session: Session | None, right: Right, step: Ledger | None) -> Counter:
    if peer.package:
        answer = {"reason": subject.why_not or "not run"} if session is None else session.answers[peer.name]
        batch = int(session.record.get("batch", 1)) if session is not None else 1
        return tool_counter(peer, answer, session.places if session is not None else {}, right.flops, batch)
    if subject.arch is None or step is None:
        reason = "a formula needs a config, a preset or a layer expression"
        return formula_counter(peer, Closed(flops=None, reason=reason), 0)
    main_input = session.record.get("main_input") if session is not None else None
    return formula_counter(peer, closed(peer, subject.arch, training(subject.workload), main_input), step.model_flops)
