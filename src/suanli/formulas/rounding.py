"""Numbers of few bits: how far they reach, how fine they are, and what rounding to them does."""

from __future__ import annotations

import math

from suanli.formulas.registry import formula

_IEEE = "IEEE 754-2019 §3.3: sign, exponent, mantissa"
_OCP = "OCP 8-bit floating point specification 1.0"
_LEGEND = {
    "exponent_bits": "e: bits of the exponent",
    "mantissa_bits": "m: bits of the mantissa",
    "all_finite": "whether the top exponent holds numbers too, all but one (e4m3) instead of infinities",
    "value": "x: the number",
}


def _legend(*names: str) -> dict[str, str]:
    return {name: _LEGEND[name] for name in names}


@formula(unit="number", expression="2^−m", source=_IEEE, legend=_legend("mantissa_bits"))
def number_step(mantissa_bits: int) -> float:
    """Distance from 1 to the next larger number."""
    return 2.0**-mantissa_bits


@formula(unit="number", expression="(2 − 2^−m)·2^b, b = 2^(e−1) − 1; all finite: (2 − 2·2^−m)·2^(b+1)",
         source=f"{_IEEE}; {_OCP}", legend=_legend("exponent_bits", "mantissa_bits", "all_finite"))  # fmt: skip
def largest_number(exponent_bits: int, mantissa_bits: int, all_finite: bool) -> float:
    """The largest finite number."""
    top = 2 ** (exponent_bits - 1) - 1
    step = number_step(mantissa_bits)
    return math.ldexp(2 - 2 * step, top + 1) if all_finite else math.ldexp(2 - step, top)


@formula(unit="number", expression="2^(1 − b − m), b = 2^(e−1) − 1", source=f"{_IEEE}: the last subnormal",
         legend=_legend("exponent_bits", "mantissa_bits"))  # fmt: skip
def smallest_number(exponent_bits: int, mantissa_bits: int) -> float:
    """The smallest number above 0, a subnormal."""
    return math.ldexp(1.0, 2 - 2 ** (exponent_bits - 1) - mantissa_bits)


@formula(unit="number", expression="x to the nearest multiple of its step, halves to even; 0 below the smallest",
         source=f"{_IEEE} §4.3.1", legend=_legend("value", "exponent_bits", "mantissa_bits"))  # fmt: skip
def rounded_number(value: float, exponent_bits: int, mantissa_bits: int) -> float:
    """A number as the format keeps it; what is too large for it is not asked about here."""
    if value == 0:
        return 0.0
    exponent = max(math.frexp(value)[1] - 1, 2 - 2 ** (exponent_bits - 1))  # subnormals share the least exponent
    step = math.ldexp(1.0, exponent - mantissa_bits)
    return round(value / step) * step
