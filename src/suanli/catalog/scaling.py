"""Published scaling series (`scaling.csv`) as they are compared, and what is usual among them."""

from __future__ import annotations

import csv
import functools
import tomllib
from dataclasses import dataclass
from importlib import resources
from math import log, log2
from statistics import median

from suanli.units import parse

FILE, USUAL = "scaling.csv", "scaling_usual.toml"
FEWEST = 4  # sizes a series needs to be projected and checked
TIME_TO_TRAIN = "1/(minutes*GPUs)"


@dataclass(frozen=True)
class PublishedSeries:
    """One series: GPUs, and the rate of one GPU over that at the smallest size."""

    name: str
    kind: str
    metric: str
    source: str
    points: tuple[tuple[int, float], ...]


@functools.cache
def published_series() -> tuple[PublishedSeries, ...]:
    """Every series, in the file's order, sizes ascending."""
    text = (resources.files("suanli.catalog") / FILE).read_text(encoding="utf-8")
    return read_series(text)


def read_series(text: str) -> tuple[PublishedSeries, ...]:
    """Series of a table with the file's columns."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(text.splitlines()):
        found.setdefault(row["series"], []).append(row)
    return tuple(
        PublishedSeries(
            name=name, kind=rows[0]["kind"], metric=rows[0]["ratio_metric"], source=rows[0]["source"],
            points=tuple(sorted(_point(row) for row in rows if row["linear_ratio_pct"])),
        )
        for name, rows in found.items()
    )  # fmt: skip


def _point(row: dict[str, str]) -> tuple[int, float]:
    return int(row["gpus"]), float(parse(row["linear_ratio_pct"] + "%", "fraction"))


def projectable(series: tuple[PublishedSeries, ...]) -> tuple[PublishedSeries, ...]:
    """Those with enough sizes that are neither times to train nor of a model that grows."""
    return tuple(
        each for each in series
        if len(each.points) >= FEWEST and each.metric != TIME_TO_TRAIN and "model grows" not in each.kind
    )  # fmt: skip


@dataclass(frozen=True)
class Usual:
    """What is usual among the published series, found by `scripts/fit_scaling.py`."""

    slope_per_doubling: float
    interval_units: float
    series: int
    date: str


@functools.cache
def usual() -> Usual:
    """The values of `scaling_usual.toml`."""
    text = (resources.files("suanli.catalog") / USUAL).read_text(encoding="utf-8")
    return Usual(**tomllib.loads(text))


def slope_of(series: tuple[PublishedSeries, ...]) -> float:
    """Median change of log(rate of one GPU) per doubling: each series from its first to its last size."""
    return median(
        log(each.points[-1][1] / each.points[0][1]) / log2(each.points[-1][0] / each.points[0][0])
        for each in projectable(series)
    )
