"""The published runs of `published_runs.csv` as nouns, and the rate each of them means."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from importlib.resources import files
from typing import Any

from suanli.formulas.running import tokens_per_s
from suanli.nouns.run import PublishedRun
from suanli.units import DAY, GIGA, HOUR

FILE = "published_runs.csv"

_READ: dict[str, Callable[[str], Any]] = {
    "int": lambda cell: int(float(cell)),
    "float": float,
    "bool": lambda cell: cell in ("1", "yes"),
    "str": str,
}


@cache
def published_runs() -> tuple[PublishedRun, ...]:
    """Every published run, in the file's order."""
    text = files("suanli.catalog").joinpath(FILE).read_text(encoding="utf-8")
    return tuple(_run(row) for row in csv.DictReader(text.splitlines()))


def _run(row: dict[str, str]) -> PublishedRun:
    values: dict[str, Any] = {}
    for field in fields(PublishedRun):
        kind, _, optional = str(field.type).partition(" | ")
        cell = row[field.name]
        assert cell or optional or kind == "str", f"{FILE}: {row['id']} has no {field.name}"
        values[field.name] = _READ[kind](cell) if cell or not optional else None
    return PublishedRun(**values)


def rate_per_gpu(run: PublishedRun) -> float | None:
    """Tokens a second of one accelerator from the most direct figure printed; None where nothing gives it."""
    return measured_rate_per_gpu(run) or _programme_rate(run)


def measured_rate_per_gpu(run: PublishedRun) -> float | None:
    """The same while running: no average over a programme with its restarts."""
    n, seq = run.gpu_count, run.seq_len
    if run.tokens_per_s_per_gpu:
        return run.tokens_per_s_per_gpu
    if n and run.tokens_per_s:
        return run.tokens_per_s / n
    if n and seq and run.gbs_seqs and run.step_time_s:
        return tokens_per_s(run.gbs_seqs, seq, run.step_time_s) / n
    if n and seq and run.samples_per_s:
        return run.samples_per_s * seq / n
    return None


def _programme_rate(run: PublishedRun) -> float | None:
    """The average over a whole programme, restarts in it."""
    if not run.tokens_trained_b:
        return None
    if run.gpu_hours:
        return run.tokens_trained_b * GIGA / (run.gpu_hours * HOUR)
    if run.days and run.gpu_count:
        return run.tokens_trained_b * GIGA / (run.days * DAY) / run.gpu_count
    return None
