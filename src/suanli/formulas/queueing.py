"""Waiting times of a server that takes one request after another."""

from __future__ import annotations

from typing import Any

from suanli.formulas.registry import formula

Numbers = Any
_LEGEND = {
    "load": "ρ: part of the time the server is busy, below 1",
    "service_s": "s: time of one request [s]",
}


@formula(
    unit="s", expression="ρ·s/(2·(1 − ρ))", source="Pollaczek–Khinchine for constant service (M/D/1)", legend=_LEGEND
)
def mean_wait_md1_s(load: Numbers, service_s: Numbers) -> Numbers:
    """Mean wait before service where requests arrive by chance (Poisson) and each takes the same time."""
    return load * service_s / (2 * (1 - load))


@formula(
    unit="s",
    expression="C(c, ρ)·s/(c·(1 − ρ)); C the Erlang C formula",
    source="Erlang 1917 (M/M/c)",
    legend={**_LEGEND, "load": "ρ: part of the time a worker is busy, below 1", "workers": "c: workers side by side"},
)
def mean_wait_mmc_s(load: float, service_s: float, workers: int) -> float:
    """Mean wait for one of several workers: arrivals by chance (Poisson), times of service spread exponentially."""
    blocked = 1.0  # Erlang B, worker by worker: no factorial overflows
    for worker in range(1, workers + 1):
        blocked = load * workers * blocked / (worker + load * workers * blocked)
    waits = blocked / (1 - load * (1 - blocked))
    return waits * service_s / (workers * (1 - load))
