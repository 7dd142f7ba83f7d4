"""Time profiles of training stacks: facts from `stack_time.toml`, fitted numbers from `profiles.toml`."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import fields, replace
from importlib import resources
from typing import Any

from suanli.errors import ConfigError, FaultList, nearest_names, shown, unknown_name
from suanli.nouns.profile import DEVICE_SPREADS, LABELS, Profile, StackProfile, Traits
from suanli.nouns.stack import SCATTERS

FACTS, FITTED = "stack_time.toml", "profiles.toml"
_WIDER = 1.5  # interval of a stack without runs of its own, over that of the one it is like


def stack_names() -> tuple[str, ...]:
    """The stacks whose step times can be predicted."""
    return tuple(_profiles())


def find_profile(name: str, where: str = "--stack") -> StackProfile:
    """The profile of a stack. Raises UnknownNameError naming the nearest known one."""
    found = _profiles().get(name) if isinstance(name, str) else None
    if found is None:
        raise unknown_name("stack", str(name), stack_names(), where=where, hint="Stacks: " + ", ".join(stack_names()))
    return found


def prior_profile(name: str) -> StackProfile:
    """Facts and beliefs of a stack, nothing fitted: what fitting starts from."""
    return _facts()[name]


@functools.cache
def _facts() -> dict[str, StackProfile]:
    return read_facts(_text(FACTS), FACTS)


@functools.cache
def _profiles() -> dict[str, StackProfile]:
    return read_profiles(_text(FITTED), FITTED, _facts(), _likes(_text(FACTS)))


def _text(name: str) -> str:
    return (resources.files("suanli.catalog") / name).read_text(encoding="utf-8")


def _likes(text: str) -> dict[str, str]:
    return {name: entry["like"] for name, entry in tomllib.loads(text).items() if "like" in entry}


def read_facts(text: str, where: str) -> dict[str, StackProfile]:
    """Stacks by name. Raises ConfigError listing every key that is no trait or number."""
    faults, found = FaultList(ConfigError), {}
    for name, entry in tomllib.loads(text).items():
        traits = {key: value for key, value in entry.items() if key not in ("doc", "prior", "like", "spreads")}
        prior = entry.get("prior", {})
        _check(traits, Traits, f"{where}: {name}", faults)
        _check(prior, Profile, f"{where}: {name}.prior", faults)
        shifts = entry.get("spreads", {})
        _check_spreads(shifts, f"{where}: {name}.spreads", faults)
        if not faults.faults:
            numbers = Profile(**prior)
            found[name] = StackProfile(
                name=name, doc=entry["doc"], traits=Traits(**traits), numbers=numbers, prior=numbers,
                spreads=tuple(shifts.get(label, {}) for label in LABELS) if shifts else (DEVICE_SPREADS,),
            )  # fmt: skip
    faults.raise_if_any()
    return found


def _check_spreads(entry: dict[str, Any], where: str, faults: FaultList) -> None:
    """Kinds of labels, and the numbers they shift."""
    for label, values in entry.items():
        if label not in LABELS:
            faults.add(code="unknown_key", message=f"unknown key {shown(label)}", where=where,
                       nearest=nearest_names(label, LABELS))  # fmt: skip
        for names, width in values.items():
            _check(dict.fromkeys(names.split(), width), Profile, f"{where}.{label}", faults)


def _check(entry: dict[str, Any], kind: type, where: str, faults: FaultList) -> None:
    """Names of a dataclass's fields, values of their types, numbers above 0."""
    known = {each.name: each.default for each in fields(kind)}
    for key, value in entry.items():
        if key not in known:
            faults.add(code="unknown_key", message=f"unknown key {shown(key)}", where=where,
                       nearest=nearest_names(key, known))  # fmt: skip
        elif (expected := _expected(known[key], value)) is not None:
            faults.add(code="bad_value", message=f"{key} cannot be that", where=where, got=shown(value),
                       expected=expected)  # fmt: skip


def _expected(default: Any, value: Any) -> str | None:
    """What a value should be, by the default of its field; None where it is."""
    if isinstance(default, str):
        return None if value in SCATTERS else "one of " + ", ".join(SCATTERS)
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "true or false"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return None if number and value > 0 else "a number above 0"


def read_profiles(
    text: str, where: str, facts: dict[str, StackProfile], likes: dict[str, str]
) -> dict[str, StackProfile]:
    """The fitted stacks, and after them those that are taken to be like one. Raises ConfigError with every fault."""
    faults, found = FaultList(ConfigError), {}
    for name, entry in tomllib.loads(text).items():
        labels = entry.get("labels", {})
        if name not in facts:
            faults.add(code="unknown_stack", message=f"no facts of the stack {shown(name)}", where=where,
                       nearest=nearest_names(name, facts))  # fmt: skip
            continue
        for at, values in (("numbers", entry["numbers"]), *labels.items()):
            _check(values, Profile, f"{where}: {name}.{at}", faults)
        if not faults.faults:
            found[name] = replace(
                facts[name],
                numbers=Profile(**entry["numbers"]),
                labels=labels,
                devices=tuple(entry["devices"]),
                sources=tuple(entry["sources"]),
                **{
                    key: entry[key]
                    for key in ("half_width", "routed_half_width", "rows", "routed_rows", "command", "date")
                },
            )
    faults.raise_if_any()
    for name, other in likes.items():
        of = found[other]
        found[name] = replace(
            facts[name], numbers=of.numbers, labels=of.labels, half_width=of.half_width * _WIDER,
            routed_half_width=of.routed_half_width * _WIDER, devices=of.devices, rows=0,
            sources=(f"no runs of its own: the numbers of {other}",), command=of.command, date=of.date,
        )  # fmt: skip
    return found
