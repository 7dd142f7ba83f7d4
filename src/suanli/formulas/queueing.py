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
