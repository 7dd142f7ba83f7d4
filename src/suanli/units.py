"""Scale factors, parsing and printing of quantities: the only place that knows 10**12 or 2**30.

Suffixes are decimal (`4K` = 4,000, `80GB` = 8e10 bytes); `4Ki` and `80GiB` are binary. In counts `B` is a
billion (`175B` parameters), in sizes it is a byte (`80GB`). Numbers stay exact: `300B` is an int.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import partial

from suanli.errors import Fault, QuantityError, nearest_names, shown, unknown_name

KILO, MEGA, GIGA, TERA, PETA, EXA = (10**power for power in (3, 6, 9, 12, 15, 18))
ZETTA, YOTTA = 10**21, 10**24
KIBI, MEBI, GIBI, TEBI, PEBI = (2**power for power in (10, 20, 30, 40, 50))
MILLI, MICRO, NANO = 1e-3, 1e-6, 1e-9

MINUTE, HOUR, DAY, WEEK = 60, 3600, 86_400, 604_800
BITS_PER_BYTE = 8
FLOPS_PER_MAC = 2  # one multiply and one add

_DECIMAL = {"": 1, "k": KILO, "K": KILO, "M": MEGA, "G": GIGA, "T": TERA, "P": PETA, "E": EXA, "Z": ZETTA}
_BINARY = {"Ki": KIBI, "Mi": MEBI, "Gi": GIBI, "Ti": TEBI, "Pi": PEBI}
_PREFIXES = _DECIMAL | _BINARY


def _units(*names: str, prefixes: dict[str, int] = _PREFIXES, scale: int = 1) -> dict[str, int]:
    """Every prefix joined to every name: `GB`, `GiB`, `B` …"""
    return {prefix + name: factor * scale for name in names for prefix, factor in prefixes.items()}


def _durations() -> dict[str, int | float]:
    seconds = {"": 1, "s": 1, "sec": 1, "ms": MILLI, "us": MICRO, "µs": MICRO, "ns": NANO}
    longer = {"min": MINUTE, "m": MINUTE, "h": HOUR, "hr": HOUR, "d": DAY, "day": DAY, "days": DAY, "w": WEEK}
    return seconds | longer


@dataclass(frozen=True)
class Kind:
    """A kind of quantity: its base unit, the suffixes it takes with their factors, and an example."""

    name: str
    base: str
    suffixes: Mapping[str, int | float]
    example: str
    bare: bool = True  # whether a number without a suffix is understood (in the base unit)


_COUNT_SUFFIXES = _PREFIXES | {"B": GIGA, "b": GIGA, "m": MEGA, "t": TERA, "g": GIGA}
_FLOP = ("FLOPS", "FLOP/s", "FLOPs/s", "FLOPs", "FLOP", "flops", "Flops", "flop/s", "")
_USD = {"": 1, "$": 1, "USD": 1, "usd": 1} | {k + "$": v for k, v in _DECIMAL.items()}
_INSTRUCTIONS = {"MIPS": MEGA, "DMIPS": MEGA, "GIPS": GIGA}
_RATES = _units(*_FLOP, prefixes=_DECIMAL) | _units("flops", "flop/s", prefixes={"g": GIGA, "t": TERA, "p": PETA})
_OPS = _units("OPS", "OP/s", "OPs", "op/s", prefixes=_DECIMAL)

KINDS = {
    kind.name: kind
    for kind in (
        Kind("count", "", _COUNT_SUFFIXES, "300B"),
        Kind("length", "", _COUNT_SUFFIXES, "8192"),
        Kind("factor", "", {"": 1}, "1.2"),
        Kind("flop_per_s", "FLOP/s", _RATES, "989TFLOPS", bare=False),
        Kind("tflop_per_s", "FLOP/s", _RATES | {"": TERA}, "140TFLOPS"),
        Kind("bytes", "B", _units("B", "") | {"b": 1}, "80GB"),
        Kind("memory", "B", _units("B"), "71.2GB", bare=False),
        Kind("bytes_per_s", "B/s", _units("B/s", prefixes=_PREFIXES), "3350GB/s", bare=False),
        Kind("duration", "s", _durations(), "6.72s"),
        Kind("span", "s", _durations(), "54d", bare=False),
        Kind("latency", "s", _durations(), "50ms", bare=False),
        Kind("watts", "W", _units("W", "", prefixes=_DECIMAL), "700"),
        Kind("power", "W", _units("W", prefixes=_DECIMAL), "700W", bare=False),
        Kind("usd", "$", _USD, "2.5"),
        Kind("fraction", "", {"": 1, "%": 0.01}, "46%"),
        Kind("carbon", "kg/kWh", {"kg/kWh": 1, "g/kWh": MILLI}, "0.4kg/kWh", bare=False),
        Kind("operations", "op", _units("OP", "OPs", "op", "ops", "Op", prefixes=_DECIMAL), "22.6GOPs"),
        Kind("op_per_s", "op/s", _OPS, "5.6TOPS", bare=False),
        Kind("op_per_s_per_w", "op/s/W", {k + "/W": v for k, v in _OPS.items()}, "9.3TOPS/W", bare=False),
        Kind("macs", "MAC", _units("MAC", "MACs", "macs", prefixes=_DECIMAL), "4.09GMACs"),
        Kind("instructions_per_s", "instruction/s", _INSTRUCTIONS, "90MIPS", bare=False),
    )
}

# A comma only separates thousands: `0,5` is refused, for it may mean a half.
_WHOLE = r"(?:\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)"
_NUMBER = re.compile(rf"\s*(\$?)([+-]?(?:{_WHOLE}\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*((?:[^\s\d.,_]\S*)?)\s*", re.ASCII)
_MAX_DIGITS = 60  # longer numbers are not quantities, and Decimal would work on them for ever
_MAX_POWER = 90  # beyond 10^90 nothing is a quantity, and products of a few still fit a float


def parse(text: str | float, kind: str, where: str = "value", *, signed: bool = False) -> int | float:
    """`text` in the base unit of `kind`; an int where it is exact.

    Raises QuantityError for what is no finite number with a suffix of that kind, or negative unless `signed`.
    """
    rule = KINDS[kind]
    value = _scaled(text, rule, where) if isinstance(text, str) else _plain(text, rule, where)
    if value < 0 and not signed:
        raise _fault(rule, "negative_quantity", "a quantity below zero", where, text)
    return value


def _plain(value: float, rule: Kind, where: str) -> int | float:
    """A number given as a number is already in the base unit."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not math.isfinite(value)):
        raise _fault(rule, "bad_quantity", "not a finite number", where, value)
    if value and not 10.0**-_MAX_POWER <= abs(value) <= 10**_MAX_POWER:
        raise _fault(rule, "bad_quantity", "a number too large or too small", where, value)
    return value


def _scaled(text: str, rule: Kind, where: str) -> int | float:
    match = _NUMBER.fullmatch(text) if len(text) <= _MAX_DIGITS else None
    if match is None:
        raise _fault(rule, "bad_quantity", "not a number with a unit", where, text)
    dollar, digits, suffix = match.groups()
    if dollar and rule.name != "usd":
        raise _fault(rule, "bad_quantity", "not a number with a unit", where, text)
    if not suffix and not rule.bare:
        raise _fault(rule, "missing_unit", "a number without its unit", where, text)
    if suffix not in rule.suffixes:
        raise _unknown_suffix(rule, suffix, where, text)
    number = Decimal(digits.replace(",", "").replace("_", ""))
    return _exact(number, rule.suffixes[suffix], rule, where, text)


def _exact(number: Decimal, factor: float, rule: Kind, where: str, text: str) -> int | float:
    """`number × factor`, as an int where it is whole; refuses what no float can hold."""
    with localcontext(prec=4 * _MAX_DIGITS):  # no digit of a text that short is rounded away
        scaled = number * Decimal(str(factor))
    if number and abs(scaled.adjusted()) > _MAX_POWER:
        raise _fault(rule, "bad_quantity", "a number too large or too small", where, text)
    return int(scaled) if scaled == scaled.to_integral_value() else float(scaled)


def _unknown_suffix(rule: Kind, suffix: str, where: str, text: str) -> QuantityError:
    known = [name for name in rule.suffixes if name]
    return QuantityError(
        Fault(
            code="unknown_unit",
            message=f"unknown unit {shown(suffix)}",
            where=where,
            got=shown(text),
            expected=f"a number like {rule.example}",
            nearest=nearest_names(suffix, known),
            hint="Suffixes are decimal (K M G T P); Ki Mi Gi are binary.",
        )
    )


def _fault(rule: Kind, code: str, message: str, where: str, got: object) -> QuantityError:
    return QuantityError(
        Fault(code=code, message=message, where=where, got=shown(got), expected=f"a number like {rule.example}")
    )


def macs_to_flops(macs: int) -> int:
    """FLOPs of `macs` multiply-accumulates."""
    return macs * FLOPS_PER_MAC


# --- printing -----------------------------------------------------------------------------------------

_STEPS = (
    ("", 1),
    ("K", KILO),
    ("M", MEGA),
    ("G", GIGA),
    ("T", TERA),
    ("P", PETA),
    ("E", EXA),
    ("Z", ZETTA),
    ("Y", YOTTA),
)
_DECIMAL_BYTE_STEPS = (("B", 1), ("kB", KILO), ("MB", MEGA), ("GB", GIGA), ("TB", TERA), ("PB", PETA))
_BYTE_STEPS = (("B", 1), ("KiB", KIBI), ("MiB", MEBI), ("GiB", GIBI), ("TiB", TEBI), ("PiB", PEBI))


_PLURAL = re.compile(r"\{([^{}|]+)\|([^{}|]+)\}")  # {events|event}
SYSTEMS = {"iec": "sizes in GiB", "si": "sizes in GB", "exact": "every digit, no prefix"}
_SYSTEM: ContextVar[str] = ContextVar("system of units", default="iec")


@contextmanager
def units_as(system: str | None) -> Iterator[None]:
    """Print quantities inside as a system of `SYSTEMS` has them: sizes in GiB or GB, or all in base units to the last
    digit; None leaves them as they are. Raises UnknownNameError for another name.
    """
    if system is not None and system not in SYSTEMS:
        hint = "Systems: " + ", ".join(SYSTEMS) + "."
        raise unknown_name("system of units", system, SYSTEMS, where="--units", hint=hint)
    token = _SYSTEM.set(system or _SYSTEM.get())
    try:
        yield
    finally:
        _SYSTEM.reset(token)


def byte_steps() -> tuple[tuple[str, int], ...]:
    """Names and bytes of the units that sizes are told in here: KiB, MiB, … or kB, MB, …"""
    return _DECIMAL_BYTE_STEPS if _SYSTEM.get() == "si" else _BYTE_STEPS


def _exactly() -> bool:
    return _SYSTEM.get() == "exact"


def _step(value: float, steps: tuple[tuple[str, int], ...], digits: int) -> tuple[str, str]:
    """The largest step that leaves `value` at or above one after rounding, and the number in it."""
    name, factor = steps[0]
    for next_name, next_factor in steps[1:]:
        if float(f"{abs(value) / next_factor:.{digits}g}") < 1:
            break
        name, factor = next_name, next_factor
    return _significant(value / factor, digits), name


def _significant(value: float, digits: int) -> str:
    """`value` with `digits` significant digits, never in exponent form, no rounding of whole digits away."""
    if value == 0:
        return "0"
    rounded = float(f"{abs(value):.{digits}g}")  # 0.99996 has the decimals of 1.000
    decimals = max(0, digits - 1 - math.floor(math.log10(rounded)))
    return f"{value:,.{min(decimals, 12)}f}"


def format_exact(value: float) -> str:
    """Whole numbers with thousands separators; others with six significant digits."""
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.6g}"


def format_count(value: float, digits: int = 4) -> str:
    """A number of parameters or tokens: `405.9 B`."""
    if _exactly():
        return format_exact(value)
    number, prefix = _step(value, _STEPS, digits)
    return f"{number} {'B' if prefix == 'G' else prefix}".rstrip()


def counted(count: int, sentence: str) -> str:
    """`{count} {events|event}` as `1,234 events` or `1 event`: of `{plural|singular}` the one that fits the count."""
    chosen = _PLURAL.sub(lambda words: words[2 if count == 1 else 1], sentence)
    return chosen.replace("{count}", f"{count:,}")


def format_flops(value: float, digits: int = 4) -> str:
    """A count of operations: `734.9 TFLOPs`."""
    if _exactly():
        return f"{format_exact(value)} FLOPs"
    number, prefix = _step(value, _STEPS, digits)
    return f"{number} {prefix}FLOPs"


def format_flop_per_s(value: float, digits: int = 4) -> str:
    """A rate: `989.4 TFLOP/s`."""
    if _exactly():
        return f"{format_exact(value)} FLOP/s"
    number, prefix = _step(value, _STEPS, digits)
    return f"{number} {prefix}FLOP/s"


def format_bytes(value: float, digits: int = 4) -> str:
    """A size in binary units, or in those of `units_as`: `15.0 GiB`, `16.1 GB`."""
    if _exactly():
        return f"{format_exact(value)} B"
    steps = _DECIMAL_BYTE_STEPS if _SYSTEM.get() == "si" else _BYTE_STEPS
    number, unit = _step(value, steps, digits)
    return f"{number} {unit}"


def format_bytes_per_s(value: float, digits: int = 4) -> str:
    """A rate in decimal units, as data sheets have it: `3,350 GB/s`."""
    return f"{_significant(value / GIGA, digits)} GB/s"


def format_percent(fraction: float, digits: int = 2) -> str:
    """A fraction 0..1 as percent: `41.62 %`."""
    return f"{fraction * 100:.{digits}f} %"


def format_seconds(value: float, digits: int = 4) -> str:
    """A time in the unit a person would use: `13.75 s`, `25.3 days`."""
    if value == 0:
        return "0 s"
    for unit, factor in (("days", DAY), ("h", HOUR), ("min", MINUTE)):
        if abs(value) >= 2 * factor:
            return f"{_significant(value / factor, digits)} {unit}"
    for unit, scale in (("s", 1.0), ("ms", MILLI), ("µs", MICRO)):
        if abs(value) >= scale:
            return f"{_significant(value / scale, digits)} {unit}"
    return f"{_significant(value / NANO, digits)} ns"


def format_usd(value: float) -> str:
    """Money: `$1,234,567`, `$2.50`, or four significant digits of what is less than a cent."""
    sign, size = ("-" if value < 0 else ""), abs(value)
    if size >= KILO:
        return f"{sign}${size:,.0f}"
    whole, _, cents = _significant(size, 4).partition(".")
    return f"{sign}${whole}.{cents.rstrip('0').ljust(2, '0')}"


def format_power(value: float, digits: int = 4) -> str:
    """Power: `11.47 MW`."""
    number, prefix = _step(value, _STEPS, digits)
    return f"{number} {prefix}W"


def format_change(fraction: float, digits: int = 2) -> str:
    """A change, a part of what it was, in percent with its sign: `-2.67 %`; one that rounds to nothing is `0.00 %`."""
    text = f"{fraction * 100:+.{digits}f}"
    return f"{text if float(text) else text[1:]} %"


FORMATS: Mapping[str, Callable[[float], str]] = {
    "bytes": format_bytes,
    "bytes_per_s": format_bytes_per_s,
    "count": format_count,
    "exact": format_exact,
    "flop_per_s": format_flop_per_s,
    "flops": format_flops,
    "percent": format_percent,
    **{f"percent{digits}": partial(format_percent, digits=digits) for digits in (0, 1, 3)},
    "change": format_change,
    "seconds": format_seconds,
    "usd": format_usd,
}


def format_as(value: float | str | None, spec: str) -> str:
    """A value as a name of `FORMATS` prints it, else by Python's own format; a text as it is, None as nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return FORMATS[spec](value) if spec in FORMATS else format(value, spec)
