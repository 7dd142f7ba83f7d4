"""`suanli.count(…, like=TOOL)`: the number another counter would give, and why it is not the right one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suanli.api.compared import FULL, MEMORY_LIMIT, TIME_LIMIT, Subject, cannot_run, subject_of, training
from suanli.api.parts import as_asked, assumed_line
from suanli.api.request import Request
from suanli.compare.closed import closed, right_step
from suanli.compare.explain import explain
from suanli.compare.like import predict
from suanli.compare.peers import FORMULAS, MACS, META, Peer, find_peer
from suanli.compare.rules import DEVICES, TABLES
from suanli.compare.session import AUTO, Session
from suanli.compare.verdict import FORWARD, TRAIN, sentence
from suanli.errors import InputError, shown, unknown_name
from suanli.nouns.comparison import Cause, Likeness
from suanli.nouns.result import Result
from suanli.units import FLOPS_PER_MAC

NAMES = (*TABLES, *FORMULAS)
TAKEN = ("seq", "batch", "phase")
RULES = "the tool's rules, as data in Suanli, applied to the model's own calls"


def count_like(model: Any, like: str, *, input_: Any, typed: Mapping[str, Any]) -> Result:
    """The number `like` would give. Raises InputError for a counter nobody knows, and for options it does not take."""
    request = Request()
    found = request.attempt(lambda: _named(like))
    request.given["like"] = like
    for name, value in typed.items():
        if value is not None and name not in TAKEN:
            request.fault("not_with_like", "--like counts by the other counter's rules", name, got=shown(value))
    if found is not None:
        _check_phase(request, found[0], typed["phase"])
    with subject_of(request, model, input_, typed["seq"], typed["batch"]) as subject:
        request.check()
        assert found is not None and subject is not None
        peer, device = found
        answer = _formula(peer, subject) if peer.name in FORMULAS else _tool(peer, device, subject)
    return Result(
        kind="count",
        inputs={"model": as_asked(model), **request.given, "assumed": request.assumed},
        convention=FULL.name,
        result=answer,
        sources=((peer.source,) if peer.source else (RULES,)),
        notes=assumed_line(request),
    )


def _named(like: str) -> tuple[Peer, str]:
    """Counter and device of `calflops` or `calflops@cpu`."""
    name, _, device = str(like).strip().partition("@")
    peer = find_peer(name, "--like", NAMES)
    device = device or META
    if device not in DEVICES or (peer.name in FORMULAS and "@" in str(like)):
        hint = "A formula has no device." if peer.name in FORMULAS else "Write it behind the name: calflops@cpu."
        raise unknown_name("device", device, DEVICES, where="--like", hint=hint)
    return peer, device


def _check_phase(request: Request, peer: Peer, phase: str | None) -> None:
    own = TRAIN if peer.training else FORWARD
    if phase is not None and phase != own:
        request.fault("phase_impossible", f"{peer.title} counts another phase", "phase", got=phase, expected=own)


# --- a tool -------------------------------------------------------------------------------------------------------


def _tool(peer: Peer, device: str, subject: Subject) -> Likeness:
    if subject.description is None:
        raise InputError(*cannot_run(subject.why_not, subject).faults)
    session = Session(subject.description, AUTO, float(TIME_LIMIT), MEMORY_LIMIT)
    session.run(())
    record, right = session.record, session.right
    if right is None:
        raise InputError(*cannot_run(record["reason"], subject).faults)
    said = predict(peer.name, record["calls"], device, batch=record["batch"], positional=record["positional"])
    times = FLOPS_PER_MAC if peer.unit == MACS else 1
    entries = [(path, operator, times * amount) for path, operator, amount in said.entries]
    causes, rest = explain(session.places, entries, times * said.total, right, record["batch"])
    found = _likeness(peer, subject, FORWARD, right, times * said.total, causes, rest)
    return replace(found, device=device, reported=said.total)


def _likeness(
    peer: Peer, subject: Subject, phase: str, right: int, flops: int, causes: tuple[Cause, ...], rest: int | None
) -> Likeness:
    return Likeness(
        model=subject.name, title=subject.title, like=peer.title, phase=phase, device=None, reported=flops,
        unit=peer.unit, says=peer.says, flops=flops, right=right, ratio=flops / right if right else None,
        difference=flops - right, causes=causes, unexplained=rest,
        explanation=sentence(causes, rest, flops == right),
    )  # fmt: skip


# --- a formula ----------------------------------------------------------------------------------------------------


def _formula(peer: Peer, subject: Subject) -> Likeness:
    if subject.arch is None:
        raise InputError(*cannot_run("a formula needs a config, a preset or a layer expression", subject).faults)
    workload = training(subject.workload)
    found = closed(peer, subject.arch, workload, _main_input(peer, subject))
    if found.flops is None:
        raise InputError(*cannot_run(found.reason or "no number", subject).faults)
    right = right_step(subject.arch, workload).model_flops
    return _likeness(peer, subject, TRAIN, right, found.flops, found.causes, found.unexplained)


def _main_input(peer: Peer, subject: Subject) -> int | None:
    """Elements of the main input, where a formula takes for tokens what are none: told by building the model."""
    assert subject.arch is not None
    if peer.name != "hf-trainer" or subject.arch.unit == "token" or subject.description is None:
        return None
    session = Session(subject.description, AUTO, float(TIME_LIMIT), MEMORY_LIMIT)
    session.run(())
    return session.record.get("main_input")
