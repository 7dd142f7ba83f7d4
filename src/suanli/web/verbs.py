"""What each verb takes over the web: the options of its command, with their help, and why some are not offered.

The command line is the one source of options and their help; a new verb is here as soon as it has a command.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from suanli import api

TEXT, FLAG, MANY, PAIR, FILE, FILES, MODEL, TEXT_OR_FILE = (
    "text", "flag", "many", "pair", "file", "files", "model", "text-or-file",
)  # fmt: skip
UPLOADED = (FILE, FILES, MODEL, TEXT_OR_FILE)

_SKIPPED = ("json", "output", "help")
_MODELS = ("model", "draft_model")
_RENAMED = {("verify", "all_"): "every"}
# Options that take text on the command line where that text may be the name of a file.
_MAY_NAME = {
    ("layout", "stack"): TEXT_OR_FILE, ("scale", "stack"): TEXT_OR_FILE, ("calibrate", "stack"): TEXT_OR_FILE,
    ("train", "goodput"): TEXT_OR_FILE, ("why", "goodput"): TEXT_OR_FILE, ("infer", "calibrate"): FILE,
    ("verify", "data"): FILE,
}  # fmt: skip
_SERVERS = "it is the server's to say"
# Options of the command that are not taken over the web, and why.
REFUSED: Mapping[tuple[str, str], str] = {
    ("explain", "engine"): f"{_SERVERS} where traces are read",
    ("explain", "workers"): f"{_SERVERS} how many processes read traces",
    ("explain", "cache"): "nothing is written to a folder of the server's",
    ("explain", "kernels_csv"): "nothing is written to a file of the server's",
    ("rerun", "trust"): "nothing that a report names is run on the server",
    ("summarise", "engine"): f"{_SERVERS} where traces are read",
    ("summarise", "workers"): f"{_SERVERS} how many processes read traces",
    ("summarise", "output"): "nothing is written to a file of the server's",
    ("verify", "data"): "no folder of the server's is opened for a request",
    ("verify", "processes"): f"{_SERVERS} how many processes check",
    ("compare", "memory_limit"): f"{_SERVERS} how much memory a counter may use",
    ("compare", "time_limit"): f"{_SERVERS} how long a counter may run",
    ("count", "time_limit"): f"{_SERVERS} how long a model may run",
}
# Work of many seconds; a page asks for it as a job.
LONG = frozenset({"calibrate", "compare", "explain", "layout", "summarise", "verify"})
# Texts whose Python keyword also takes a list or an object.
_LISTS = frozenset({
    "gpus", "inputs", "targets", "weights", "project", "points", "tools", "types", "only", "why", "image",
})  # fmt: skip
_OBJECTS = frozenset({"pin", "points"})


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option of a verb: its keyword, its flag as typed in a terminal, and what it takes."""

    name: str
    flag: str
    help: str
    metavar: str
    kind: str
    required: bool
    word: bool  # the verb takes a text alone, no number
    complete: Callable[[str], list[str]] | None

    @property
    def lists(self) -> bool:
        """Whether a list of values is taken."""
        return self.kind in (MANY, PAIR, FILES) or self.name in _LISTS

    @property
    def objects(self) -> bool:
        """Whether an object of values is taken."""
        return self.kind == MODEL or self.name in _OBJECTS

    def choices(self) -> list[str]:
        """Names the command line would complete to; empty where there are none."""
        return self.complete("") if self.complete is not None else []


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb, what it says of itself, and its options."""

    name: str
    doc: str
    options: tuple[Option, ...]
    refused: Mapping[str, str]

    @property
    def by_name(self) -> dict[str, Option]:
        """Options by their keyword."""
        return {each.name: each for each in self.options}


@cache
def verbs() -> dict[str, Verb]:
    """Every verb that has a function and a command, in the order of the command's help."""
    from suanli.cli.main import app  # noqa: PLC0415  the commands are loaded with the first question

    commands = {each.name: each.callback for each in app.registered_commands if each.name in api.__all__}
    return {name: _verb(name, call) for name, call in commands.items() if name is not None and call is not None}


def _verb(name: str, command: Callable[..., Any]) -> Verb:
    hints = typing.get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters
    refused = {option: why for (verb, option), why in REFUSED.items() if verb == name}
    options = []
    for each in parameters.values():
        keyword = _RENAMED.get((name, each.name), each.name)
        if each.name not in _SKIPPED and keyword not in refused:
            options.append(_option(name, keyword, hints[each.name], each.default is inspect.Parameter.empty))
    return Verb(name=name, doc=inspect.getdoc(command) or "", options=tuple(options), refused=refused)


def _option(verb: str, keyword: str, hint: Any, required: bool) -> Option:
    taken, info = typing.get_args(hint)[0], hint.__metadata__[0]
    typed = [info.default, *(getattr(info, "param_decls", None) or ())]  # typer takes the first flag for a default
    flags = [each for each in typed if isinstance(each, str) and each.startswith("--")]
    flag = max(flags, key=len) if flags else (info.metavar or keyword.upper()).strip("[]…")
    kind = _MAY_NAME.get((verb, keyword)) or _kind(keyword, taken)
    return Option(
        name=keyword, flag=flag, help=info.help or "", metavar=info.metavar or "", kind=kind, required=required,
        word=_is_word(verb, keyword), complete=info.autocompletion,
    )  # fmt: skip


def _kind(keyword: str, taken: Any) -> str:
    inside = [each for each in typing.get_args(taken) if each is not type(None)]
    plain = inside[0] if inside and typing.get_origin(taken) not in (list, tuple) else taken
    shape = typing.get_origin(plain)
    if plain is bool:
        return FLAG
    if shape is list:
        return FILES if typing.get_args(plain)[0] is Path else MANY
    if shape is tuple:
        return PAIR
    if plain is Path:
        return FILE
    return MODEL if keyword in _MODELS else TEXT


def _is_word(verb: str, keyword: str) -> bool:
    """Whether the verb's own signature asks for a text. Options of `why` are those of other verbs."""
    for name in (verb, "count", "mfu", "train") if verb == "why" else (verb,):
        found = inspect.signature(getattr(api, name)).parameters.get(keyword)
        if found is not None:
            return str(found.annotation).startswith("str")
    return False
