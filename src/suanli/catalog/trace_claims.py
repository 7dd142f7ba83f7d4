"""What is right of public traces: figures by file, and which files are read or refused."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, kw_only=True)
class TraceClaim:
    """One figure of one file. `within` is the largest distance that still agrees; `at_least` lets more agree too."""

    file: str
    figure: str
    expected: float
    within: float
    source: str
    unit: str
    at_least: bool = False
    orientation: str = ""  # why it is shown and not judged; empty: it is judged
    others: str = ""  # what other tools print


@dataclass(frozen=True)
class Samples:
    """Files of the collection: those read, and those refused with a part of the reason."""

    read: tuple[str, ...]
    refused: Mapping[str, str]


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("suanli.catalog.claims").joinpath("traces.toml").read_text(encoding="utf-8"))


@cache
def trace_claims() -> tuple[TraceClaim, ...]:
    """Every figure, in the order of the table."""
    return tuple(
        TraceClaim(**{key: value for key, value in group.items() if key != "claims"}, **claim)
        for group in _table()["group"]
        for claim in group["claims"]
    )


@cache
def samples() -> Samples:
    """The files of the collection."""
    table = _table()["samples"]
    return Samples(tuple(table["read"]), table["refused"])
