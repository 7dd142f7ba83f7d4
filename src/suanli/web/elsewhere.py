"""The same request elsewhere: as a command, in Python, and by curl. Nothing here is run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from suanli.web.forms import Entry
from suanli.web.verbs import verbs

FILES = {"cfg-": "config.json", "up-": "FILE"}  # what stands for a token of this server


def _outside(value: str) -> str:
    """A value as another machine would give it: tokens of this server become names of files."""
    return next((name for start, name in FILES.items() if value.startswith(start)), value)


def _values(value: Any) -> list[str]:
    return [_outside(str(each)) for each in (value if isinstance(value, list) else [value])]


def command(entry: Entry, given: Mapping[str, Any]) -> str:
    """The line for a terminal."""
    words: list[str] = []
    flags: list[str] = []
    options = verbs()[entry.verb].by_name
    for name, value in given.items():
        flag = options[name].flag
        if not flag.startswith("--"):
            words += map(shlex.quote, _values(value))
        elif value is True:
            flags.append(flag)
        elif not (name == "lang" and value == "en"):
            flags += [flag, *map(shlex.quote, _values(value))]
    return " ".join(["suanli", entry.verb, *words, *flags])


def python(entry: Entry, given: Mapping[str, Any]) -> str:
    """The call in a notebook."""
    parts: list[str] = []
    options = verbs()[entry.verb].by_name
    for name, value in given.items():
        kept = value if value is True else _values(value)
        shown = repr(kept if kept is True or len(kept) > 1 else kept[0])
        first = not parts and not options[name].flag.startswith("--")
        if not (name == "lang" and value == "en"):
            parts.append(shown if first else f"{name}={shown}")
    return f"import suanli\n\nsuanli.{entry.verb}({', '.join(parts)})"


def curl(entry: Entry, given: Mapping[str, Any], base: str) -> str:
    """The request to this server's API."""
    body = json.dumps(dict(given), ensure_ascii=False)
    head = "-H 'Content-Type: application/json'"
    return f"curl -s {base}/api/{entry.verb} {head} -d {shlex.quote(body)}"
