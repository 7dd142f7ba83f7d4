"""Options of a verb and the keys of its JSON, from the command and the records themselves."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any

import typer.main

from making_docs.markdown import Rows, code, table
from suanli.api.catalogues import Devices, Models
from suanli.cli.main import app
from suanli.nouns.calibrated import Calibrated
from suanli.nouns.claim import Verification
from suanli.nouns.comparison import Comparison
from suanli.nouns.counts import Count
from suanli.nouns.explained import Explained
from suanli.nouns.goodput import Goodput
from suanli.nouns.infer import Inference
from suanli.nouns.lesson import Lesson
from suanli.nouns.measures import Mfu, TrainPlan
from suanli.nouns.reason import Why
from suanli.nouns.repeated import Changes
from suanli.nouns.scaling import Scaling
from suanli.nouns.summarised import Summarised
from suanli.plan.layout import LayoutPlan

RESULTS: dict[str, type] = {
    "count": Count, "compare": Comparison, "mfu": Mfu, "train": TrainPlan, "layout": LayoutPlan, "goodput": Goodput,
    "scale": Scaling, "calibrate": Calibrated, "gpus": Devices, "models": Models, "why": Why, "verify": Verification,
    "infer": Inference, "explain": Explained, "summarise": Summarised, "learn": Lesson,
    "rerun": Changes, "diff": Changes,
}  # fmt: skip


def commands() -> Mapping[str, Any]:
    """The verbs of the command line by name."""
    group: Any = typer.main.get_command(app)
    found: Mapping[str, Any] = group.commands
    return found


def options(verb: str) -> str:
    """Arguments and options of a verb with their help."""
    rows: Rows = []
    for param in commands()[verb].params:
        named = ", ".join(code(name) for name in (*param.opts, *param.secondary_opts))
        flag = getattr(param, "is_flag", False)
        takes = "" if flag else param.metavar or ("FILE" if param.name == "output" else "")
        if param.param_type_name == "argument":
            named, takes = code((param.metavar or param.name).strip("[]").upper()), "required" if param.required else ""
        rows.append((named, takes if takes == "required" else code(takes), _help(param)))
    return table(("option", "takes", "meaning"), rows)


def _help(param: Any) -> str:
    required = " Required." if param.required and param.param_type_name == "option" else ""
    return (param.help or "") + required


def summary(verb: str) -> str:
    """What the verb does, as its help says."""
    return " ".join(commands()[verb].help.split("Example:")[0].split())


def json_keys(verb: str) -> str:
    """Keys under `result` of the JSON, from the fields that make it."""
    rows: Rows = list(_keys(RESULTS[verb], ""))
    return table(("key under `result`", "type", "unit", "meaning"), rows)


def _keys(record: type, prefix: str) -> Iterator[tuple[str, ...]]:
    hints = typing.get_type_hints(record)
    for each in fields(record):
        if each.metadata.get("hidden"):
            continue
        name, hint = prefix + each.name.rstrip("_"), hints[each.name]
        inner, suffix = _inner(hint)
        if inner is not None:
            yield from _keys(inner, f"{name}{suffix}.")
        else:
            yield code(name), _json_type(hint), *_meaning(each)


def _inner(hint: Any) -> tuple[type | None, str]:
    """The record a field holds, and how its place is written: itself, `[]` for a list, `.NAME` for a mapping."""
    candidates = [(hint, "")]
    for option in _alternatives(hint):
        arguments = typing.get_args(option)
        suffix = ".NAME" if len(arguments) == 2 and arguments[0] is str else "[]"
        candidates += [(option, ""), *((argument, suffix) for argument in arguments)]
    return next(((each, suffix) for each, suffix in candidates if isinstance(each, type) and is_dataclass(each)),
                (None, ""))  # fmt: skip


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """What a hint allows, None left out."""
    arguments = typing.get_args(hint)
    union = type(None) in arguments or "Union" in type(hint).__name__
    return tuple(each for each in arguments if each is not type(None)) if union else (hint,)


_JSON = {int: "number", float: "number", str: "text", bool: "true or false"}


def _json_type(hint: Any) -> str:
    names = []
    for each in _alternatives(hint):
        origin = typing.get_origin(each)
        is_list = origin in (tuple, list)
        names.append("list" if is_list else "object" if origin is not None else _JSON.get(each, "any"))
    may_be_null = ["null"] if type(None) in typing.get_args(hint) else []
    return " or ".join(dict.fromkeys([*names, *may_be_null]))


def _meaning(each: Field[Any]) -> tuple[str, str]:
    return each.metadata.get("unit", ""), each.metadata.get("doc", "")
