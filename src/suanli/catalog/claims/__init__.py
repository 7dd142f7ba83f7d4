"""Claims as data: numbers of articles and papers, groups of published runs that must come out, counted models."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from suanli.nouns.claim import VERDICTS, Claim
from suanli.nouns.run import PublishedRun


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__name__).joinpath(name).read_text(encoding="utf-8"))


@cache
def article_claims() -> tuple[Claim, ...]:
    """The numbers of the articles, in the order of their sections."""
    claims = tuple(Claim(section="articles", **row) for row in _table("articles.toml")["claim"])
    ids = [claim.id for claim in claims]
    assert len(set(ids)) == len(ids), f"claims told twice: {sorted({i for i in ids if ids.count(i) > 1})}"
    assert all(claim.verdict in VERDICTS for claim in claims), "a verdict nobody knows"
    return claims


@dataclass(frozen=True, kw_only=True)
class RunGroup:
    """Published runs that must come out under a rule, `low` to `high` points of the peak off."""

    name: str
    rule: str
    low: float
    high: float
    why: str
    where: Mapping[str, Any] = field(hash=False)
    starts: Mapping[str, str] = field(default_factory=dict, hash=False)
    leave_out: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def holds(self, run: PublishedRun) -> bool:
        """Whether a row belongs to the group."""
        equal = all(getattr(run, key) == value for key, value in self.where.items())
        begins = all(str(getattr(run, key) or "").startswith(text) for key, text in self.starts.items())
        out = any(getattr(run, key) in values for key, values in self.leave_out.items())
        return equal and begins and not out


@cache
def run_groups() -> tuple[RunGroup, ...]:
    """The groups of published runs that must come out."""
    rows = _table("runs.toml")["group"]
    return tuple(RunGroup(leave_out=row.pop("except", {}), **row) for row in rows)


def counted_names() -> dict[str, dict[str, str]]:
    """What the names of `expected_counts` mean where they are no preset's."""
    names: dict[str, dict[str, str]] = _table("models.toml")["names"]
    return names


def expected_counts() -> tuple[dict[str, str], ...]:
    """Right parameters and forward FLOPs of models at several sequence lengths, as printed."""
    text = files(__name__).joinpath("expected_counts.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


@dataclass(frozen=True, kw_only=True)
class ServingValue:
    """A figure of serving that is known to be right, and what gives ours."""

    id: str
    statement: str
    what: str
    inputs: Mapping[str, Any] = field(hash=False)
    expected: float
    tolerance: float
    unit: str
    why: str = ""


@cache
def serving_values() -> tuple[ServingValue, ...]:
    """Check values of caches, weights, experts and waits."""
    found = tuple(ServingValue(**row) for row in _table("serving.toml")["claim"])
    assert len({each.id for each in found}) == len(found), "check values told twice"
    return found
