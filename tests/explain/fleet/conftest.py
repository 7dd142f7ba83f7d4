"""Summaries of jobs that never ran, through the reader of traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suanli.explain.summary import summary_of
from suanli.nouns.summary import COLUMNS, WORDS, RankSummary
from suanli.readers.traces.front import read_trace


@pytest.fixture(scope="session")
def summaries(made_fleet: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[RankSummary]]:
    """The summaries of `Job(**planted)`, by rank."""

    def make(**planted: Any) -> list[RankSummary]:
        paths = made_fleet.write_job(made_fleet.Job(**planted), tmp_path_factory.mktemp("job"))
        return [summary_of(read_trace(path), digest=str(path)) for path in paths]

    return make


def ahead(summary: RankSummary, ns: int) -> RankSummary:
    """The same rank with a clock that is so many ns ahead."""
    about = summary.about
    steps = tuple(replace(each, start_ns=each.start_ns + ns, end_ns=each.end_ns + ns) for each in about.steps)
    devices = tuple(replace(each, start_ns=each.start_ns + ns, end_ns=each.end_ns + ns) for each in about.devices)
    columns = {**summary.columns, "start_ns": summary.columns["start_ns"] + ns}
    return replace(summary, about=replace(about, steps=steps, devices=devices), columns=columns)


@pytest.fixture(scope="session")
def shift() -> Callable[[RankSummary, int], RankSummary]:
    return ahead


def row_summary(rank: int, rows: list[dict[str, Any]], template: RankSummary) -> RankSummary:
    """A summary whose rows are given: start_ns, duration_ns and what else is said; the rest is none."""
    words: dict[str, list[str]] = {name: [] for name in WORDS}
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for row in rows:
        given = {"device": 0, "stream": 20, "name": "nccl", "work_class": "communication", "flops": float("nan"),
                 "collective": "all-reduce", "nth": 0, **row}  # fmt: skip
        for name, values in columns.items():
            value = given.get(name, None if name in words else -1)
            if name in words and value is not None:
                words[name] += [] if value in words[name] else [value]
                value = words[name].index(value)
            values.append(-1 if value is None else value)
    device = replace(template.about.devices[0], device=0)
    about = replace(template.about, rank=rank, path=f"r{rank}", digest=f"r{rank}", devices=(device,), steps=(),
                    links={0: None})  # fmt: skip
    kinds = {name: "int32" if name in WORDS else kind for name, (kind, _) in COLUMNS.items()}
    made = {name: np.array(values, dtype=kinds[name]) for name, values in columns.items()}
    return RankSummary(about=about, columns=made, words={name: tuple(each) for name, each in words.items()})


@pytest.fixture(scope="session")
def rows_of(summaries: Callable[..., list[RankSummary]]) -> Callable[..., list[RankSummary]]:
    """Summaries of rows given rank by rank."""
    template = summaries(ranks=1, steps=1)[0]

    def make(*ranks: list[dict[str, Any]]) -> list[RankSummary]:
        return [row_summary(rank, rows, template) for rank, rows in enumerate(ranks)]

    return make


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).resolve().parents[3]
