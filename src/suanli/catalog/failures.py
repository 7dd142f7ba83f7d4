"""Published failure tables (`failures.toml`) as nouns."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import Any

from suanli.errors import unknown_name
from suanli.nouns.goodput import Cause, FailureTable


def failure_tables() -> dict[str, FailureTable]:
    """Every table by name."""
    return dict(_tables())


def find_failures(name: str, where: str = "--failures") -> FailureTable:
    """The table of that name. Raises UnknownNameError."""
    found = _tables().get(name.strip().lower())
    if found is None:
        raise unknown_name(
            "failure table",
            name,
            _tables(),
            where=where,
            hint="`suanli goodput` takes the rate itself too: --mtbf, --mtbf-node or --mtti.",
        )
    return found


@functools.cache
def _tables() -> dict[str, FailureTable]:
    text = (resources.files("suanli.catalog") / "failures.toml").read_text(encoding="utf-8")
    return {name: _table(name, **row) for name, row in tomllib.loads(text).items()}


def _table(
    name: str, *, causes: tuple[tuple[str, int], ...] = (), notes: tuple[str, ...] = (), **row: Any
) -> FailureTable:
    known = sum(count for _, count in causes)
    found = tuple(Cause(cause=what, count=count, fraction=count / known) for what, count in causes)
    return FailureTable(name=name, causes=found, notes=tuple(notes), **row)
