"""How sure predicted steps are beyond the 80 % interval they have (`run_spread.toml`)."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources

FILE = "run_spread.toml"


@dataclass(frozen=True)
class RunSpread:
    """What `scripts/fit_run_spread.py` found."""

    ninety_over_eighty: float
    steps: int
    sets: int
    date: str


@functools.cache
def run_spread() -> RunSpread:
    """The values of the file."""
    text = (resources.files("suanli.catalog") / FILE).read_text(encoding="utf-8")
    return RunSpread(**tomllib.loads(text))
