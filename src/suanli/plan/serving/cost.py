"""Money and energy of tokens: per million, per day, at a utilisation, with what is left of a selling price.

The books are those of `train` (`formulas/running.py`): GPU-hours of the tokens, at a price, over the useful part of the
time. Nothing is said without a concurrency: batch size changes both six- to elevenfold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suanli.catalog.prices import find_price, price_sentence
from suanli.errors import FaultList, InputError, shown
from suanli.formulas import running, serving
from suanli.formulas.articles import gross_margin
from suanli.nouns.hardware import Device
from suanli.nouns.serving_cost import TokenCost, TokenEnergy
from suanli.units import DAY, HOUR, KILO, MEGA

_NO_ISL = "input and output lengths are not given (isl, osl)"
_NO_SHARE = "the part of the time that prefill takes is not given (prefill_fraction)"
_NO_PRICE = "no selling price (sell)"
_NO_POWER = "no reading of power: a data sheet's figure is no measurement, and no reading is not 0"
_NO_CARBON = "no carbon intensity (carbon, as 0.4 kg/kWh)"


@dataclass(frozen=True, kw_only=True)
class Load:
    """A replica at work: how many sequences at once, how fast, on how many GPUs, of what lengths."""

    concurrency: int
    output_tokens_per_s: float
    gpus: int = 1
    isl: int | None = None
    osl: int | None = None
    prefill_fraction: float | None = None
    utilisation: float = 1.0

    def check(self) -> None:
        """Raise one InputError with every value that cannot be."""
        faults = FaultList(InputError)
        for name in ("concurrency", "gpus"):
            _check(faults, name, getattr(self, name), whole=True)
        for name in ("isl", "osl"):
            if getattr(self, name) is not None:
                _check(faults, name, getattr(self, name), whole=True)
        _check(faults, "output_tokens_per_s", self.output_tokens_per_s)
        _check(faults, "utilisation", self.utilisation, high=1)
        if self.prefill_fraction is not None:
            _check(faults, "prefill_fraction", self.prefill_fraction, high=1)
        faults.raise_if_any()


_HINTS = {"concurrency": "Cost and energy change six- to elevenfold with it: neither is told without."}


def _check(faults: FaultList, name: str, value: object, *, whole: bool = False, high: float = math.inf) -> None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 < value <= high
    if good and (not whole or isinstance(value, int)):
        return
    kind = "a whole number above 0" if whole else "above 0" + (f", at most {high:g}" if math.isfinite(high) else "")
    faults.add(code=f"bad_{name}", message=f"{name} is missing or not possible", where=name, got=shown(value),
               expected=kind, hint=_HINTS.get(name))  # fmt: skip


def catalogue_price(device: Device, kind: str = "on-demand") -> tuple[float, str]:
    """Price of one GPU-hour of one torch device, and what it is: kind, date, source. Raises as `find_price` does."""
    found = find_price(device, kind)
    return found.usd_per_gpu_hour / device.torch_devices_per_package, price_sentence(found)


def token_cost(load: Load, price: float, said: str = "price as given", *, sell: float | None = None) -> TokenCost:
    """What a million tokens cost at `price` dollars a GPU-hour; `sell` is a price of a million output tokens [$].

    Raises InputError for values that cannot be, a missing concurrency among them.
    """
    load.check()
    faults = FaultList(InputError)
    for name, value in (("price", price), ("sell", sell)):
        if value is not None:
            _check(faults, name, value)
    faults.raise_if_any()
    reasons: dict[str, str] = {}
    output_only = _usd(load, price, load.output_tokens_per_s)
    blended = _blended(load, price, reasons)
    split = _split(load, price, reasons)
    if sell is None:
        reasons["margin"] = _NO_PRICE
    hourly = running.run_cost(load.gpus, price, 1)
    return TokenCost(
        concurrency=load.concurrency,
        gpus=load.gpus,
        price=price,
        price_said=said,
        utilisation=load.utilisation,
        output_tokens_per_s=load.output_tokens_per_s,
        usd_per_hour=hourly,
        usd_per_million_output_only=output_only,
        usd_per_million_blended=blended,
        usd_per_million_input=split[0],
        usd_per_million_output=split[1],
        idle_usd_per_hour=hourly * (1 - load.utilisation),
        margin=None if sell is None else gross_margin(output_only, sell),
        reasons=reasons,
    )


def _usd(load: Load, price: float, tokens_per_s: float) -> float:
    return serving.usd_per_million_tokens(price, load.gpus, tokens_per_s, load.utilisation)


def _input_rate(load: Load) -> float:
    """Input tokens a second that go with the output tokens."""
    assert load.isl is not None and load.osl is not None
    return load.output_tokens_per_s * load.isl / load.osl


def _blended(load: Load, price: float, reasons: dict[str, str]) -> float | None:
    if load.isl is None or load.osl is None:
        reasons["usd_per_million_blended"] = _NO_ISL
        return None
    return _usd(load, price, load.output_tokens_per_s + _input_rate(load))


def _split(load: Load, price: float, reasons: dict[str, str]) -> tuple[float | None, float | None]:
    """Input tokens carry prefill's part of the time, output tokens the rest; together they are the bill."""
    names = ("usd_per_million_input", "usd_per_million_output")
    if load.isl is None or load.osl is None:
        reasons.update(dict.fromkeys(names, _NO_ISL))
        return None, None
    share = load.prefill_fraction
    if share is None:
        reasons.update(dict.fromkeys(names, _NO_SHARE))
        return None, None
    return share * _usd(load, price, _input_rate(load)), (1 - share) * _usd(load, price, load.output_tokens_per_s)


def token_energy(load: Load, watts: float | None, *, pue: float = 1.0, carbon: float | None = None) -> TokenEnergy:
    """Energy at the power of one GPU with its share of the host, as read [W]; None where nothing was read.

    `carbon`: kg of CO₂ a kWh. Raises InputError for values that cannot be: 0 W is no reading.
    """
    load.check()
    faults = FaultList(InputError)
    for name, value in (("watts", watts), ("pue", pue), ("carbon", carbon)):
        if value is not None and not (name == "carbon" and value == 0):
            _check(faults, name, value)
    if isinstance(pue, int | float) and 0 < pue < 1:
        faults.add(code="bad_pue", message="pue is missing or not possible", where="pue", got=shown(pue),
                   expected="at least 1")  # fmt: skip
    faults.raise_if_any()
    if watts is None:
        return _no_energy(load, pue)
    daily = running.run_energy_kwh(load.gpus * DAY / HOUR, watts, pue, 1)
    joules = serving.joules_per_token(watts, load.gpus, load.output_tokens_per_s, pue)
    hours = serving.tokens_gpu_hours(MEGA, load.output_tokens_per_s, load.gpus)
    million = running.run_energy_kwh(hours, watts, pue, 1)
    return TokenEnergy(
        concurrency=load.concurrency,
        joules_per_output_token=joules,
        kwh_per_day=daily,
        co2_kg_per_day=None if carbon is None else running.run_co2_kg(daily, carbon),
        co2_g_per_million_tokens=None if carbon is None else KILO * running.run_co2_kg(million, carbon),
        pue=pue,
        reasons={} if carbon is not None else dict.fromkeys(("co2_kg_per_day", "co2_g_per_million_tokens"), _NO_CARBON),
    )


def _no_energy(load: Load, pue: float) -> TokenEnergy:
    names = ("joules_per_output_token", "kwh_per_day", "co2_kg_per_day", "co2_g_per_million_tokens")
    none: Mapping[str, None] = dict.fromkeys(names)
    return TokenEnergy(concurrency=load.concurrency, pue=pue, reasons=dict.fromkeys(names, _NO_POWER), **none)


def energy_read(readings: Sequence[tuple[float, float | None]]) -> float | None:
    """Joules between the first and last reading of (seconds, watts); None where fewer than two watts were read.

    A device without a counter is integrated over `power.draw`; one that answers nothing has no energy, not 0.
    """
    known = [(at, watts) for at, watts in readings if watts is not None]
    if len(known) < 2:
        return None
    times, watts = zip(*known, strict=True)
    return serving.energy_of_readings(watts, times)


def utilisation_for_cost(load: Load, price: float, usd_per_million: float, peak_tokens_per_s: float) -> float:
    """Part of a peak rate at which a million tokens cost that much: what a stated cost silently assumes."""
    return serving.tokens_per_s_for_cost(price, load.gpus, usd_per_million) / peak_tokens_per_s
