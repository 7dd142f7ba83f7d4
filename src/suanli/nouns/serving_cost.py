"""What tokens of a served model cost, in money and in energy. Every figure belongs to a concurrency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def _field(unit: str, doc: str, **options: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **options)


@dataclass(frozen=True, kw_only=True)
class TokenCost:
    """Dollars of a million tokens at one load. None where what it needs was not given; `reasons` says what."""

    concurrency: int = _field("sequences", "at which the rate was reached")
    gpus: int = _field("GPUs", "paid for")
    price: float = _field("$/h", "of one GPU")
    price_said: str = _field("", "kind, date and source of the price")
    utilisation: float = _field("fraction", "of the paid time in which tokens come at the rate")
    output_tokens_per_s: float = _field("tokens/s", "of all users together")
    usd_per_hour: float = _field("$/h", "of the replica")
    usd_per_million_output_only: float = _field("$", "all money put on output tokens")
    usd_per_million_blended: float | None = _field("$", "input and output tokens alike")
    usd_per_million_input: float | None = _field("$", "input tokens carry the time of prefill")
    usd_per_million_output: float | None = _field("$", "output tokens carry the time of decode")
    idle_usd_per_hour: float = _field("$/h", "paid while no tokens come")
    margin: float | None = _field("fraction", "of a selling price of output tokens that is not cost")
    reasons: Mapping[str, str] = _field("", "why a figure is missing", default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class TokenEnergy:
    """Energy and carbon of tokens at one load. None where no power was read; `reasons` says so."""

    concurrency: int = _field("sequences", "at which the rate was reached")
    joules_per_output_token: float | None = _field("J", "drawn from the grid, PUE included")
    kwh_per_day: float | None = _field("kWh", "of the replica, day and night at this power")
    co2_kg_per_day: float | None = _field("kg", "of that energy")
    co2_g_per_million_tokens: float | None = _field("g", "of a million output tokens")
    pue: float = _field("", "facility over IT power")
    reasons: Mapping[str, str] = _field("", "why a figure is missing", default_factory=dict, hash=False)
