"""In which unit an axis is drawn. Rows hold SI numbers as the result has them; the specification divides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from suanli.units import (
    DAY,
    EXA,
    GIGA,
    HOUR,
    KILO,
    MEGA,
    MICRO,
    MILLI,
    MINUTE,
    NANO,
    PETA,
    TERA,
    YOTTA,
    ZETTA,
    byte_steps,
)

Steps = tuple[tuple[str, float], ...]

_SECONDS: Steps = (("ns", NANO), ("µs", MICRO), ("ms", MILLI), ("s", 1), ("min", MINUTE), ("h", HOUR), ("days", DAY))
_PLAIN: Steps = (("", 1), ("K", KILO), ("M", MEGA), ("G", GIGA), ("T", TERA), ("P", PETA), ("E", EXA),
                 ("Z", ZETTA), ("Y", YOTTA))  # fmt: skip
_LONG = ("min", "h", "days")  # of these two are needed before one is used


@dataclass(frozen=True)
class Unit:
    """A unit of an axis: its name and how many base units it has."""

    name: str
    factor: float

    def of(self, label: str) -> str:
        """`step [s]`: the title of an axis; the label alone where there is no unit."""
        return f"{label} [{self.name}]" if self.name else label

    def shown(self, field: str, as_: str) -> dict[str, str]:
        """The transform that puts a field into this unit."""
        return {"calculate": f"datum.{field} / {self.factor!r}", "as": as_}


def _fitting(values: Iterable[float | None], steps: Steps) -> tuple[str, float]:
    """The largest step that the largest value is one of, or the first."""
    most = max((abs(value) for value in values if value is not None), default=0.0)
    found = [step for step in steps if most >= step[1] * (2 if step[0] in _LONG else 1)]
    return found[-1] if found else steps[0]


def seconds(values: Iterable[float | None]) -> Unit:
    """Of times, by the longest."""
    return Unit(*_fitting(values, _SECONDS))


def sizes(values: Iterable[float | None]) -> Unit:
    """Of bytes, by the most; binary or decimal as `suanli.units.units_as` has it."""
    return Unit(*_fitting(values, byte_steps()))


def rates(values: Iterable[float | None]) -> Unit:
    """Of FLOP/s, by the highest."""
    prefix, factor = _fitting(values, _PLAIN)
    return Unit(f"{prefix}FLOP/s", factor)


def operations(values: Iterable[float | None]) -> Unit:
    """Of FLOPs, by the most."""
    prefix, factor = _fitting(values, _PLAIN)
    return Unit(f"{prefix}FLOPs", factor)


def counts(values: Iterable[float | None]) -> Unit:
    """Of parameters, tokens and GPUs: `B` is a billion."""
    prefix, factor = _fitting(values, _PLAIN)
    return Unit({"G": "B"}.get(prefix, prefix), factor)


NANOSECOND = NANO
PERCENT = Unit("%", 0.01)
GIGABYTES_PER_S = Unit("GB/s", GIGA)
