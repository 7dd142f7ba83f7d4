"""Keeps in a result every option it was asked with, so that a report can be repeated from what it holds."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec

from suanli.errors import shown
from suanli.nouns.result import Result

OURS = ("progress", "processes")  # what no answer depends on
CALLED = {"every": "all"}  # options that inputs have under the name of the command line
LIVE = "live"  # inputs that were objects of a running program: no file holds them

Options = ParamSpec("Options")


def keeps_request(verb: Callable[Options, Result]) -> Callable[Options, Result]:
    """The verb; `inputs` of its result have every option that was given, beside what the verb itself puts there."""
    names = inspect.signature(verb)

    @wraps(verb)
    def kept(*args: Options.args, **kwargs: Options.kwargs) -> Result:
        found = verb(*args, **kwargs)
        given = _given(names, names.bind(*args, **kwargs).arguments)
        missing = {name: value for name, value in given.items() if found.inputs.get(CALLED.get(name, name)) is None}
        live = sorted(name for name, value in given.items() if not is_plain(value))
        if not missing and not live:
            return found
        inputs = {name: value for name, value in found.inputs.items() if name != "assumed"}
        more = {name: written(value) for name, value in missing.items() if name not in live}
        assumed = {"assumed": found.inputs["assumed"]} if "assumed" in found.inputs else {}
        return replace(found, inputs={**inputs, **more, **({LIVE: live} if live else {}), **assumed})

    return kept


def _given(signature: inspect.Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Options that are not what they are without being given; values of `**options` by their own names."""
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        rule = signature.parameters[name]
        if rule.kind is inspect.Parameter.VAR_KEYWORD:
            found |= {key: each for key, each in value.items() if each is not None}
        elif rule.kind is not inspect.Parameter.VAR_POSITIONAL and not _is_default(value, rule.default):
            found[name] = value
    return {name: value for name, value in found.items() if name not in OURS}


def _is_default(value: Any, default: Any) -> bool:
    """Whether it need not be given; objects are not compared, for arrays answer with arrays."""
    return value is None or (isinstance(value, str | int | float | bool) and value == default)


def is_plain(value: Any) -> bool:
    """Whether JSON can hold it, so that it can be given again."""
    if isinstance(value, Mapping):
        return all(is_plain(each) for each in value.values())
    if isinstance(value, list | tuple | set | range):
        return all(map(is_plain, value))
    return value is None or isinstance(value, str | int | float | bool | os.PathLike)


def written(value: Any) -> Any:
    """A value as JSON has it; an object of a program as a few words of it."""
    if not is_plain(value):
        return shown(value, 200)
    if isinstance(value, Mapping):
        return {str(name): written(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | range):
        return [written(each) for each in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value
