"""Parts that several reports share."""

from __future__ import annotations

from suanli.nouns.result import Result
from suanli.report.document import Lines
from suanli.units import format_exact

NOT_GIVEN = "n/a"
WHOLE_FROM = 1000


def closing(result: Result) -> tuple[Lines, ...]:
    """Notes and sources, as every report ends."""
    return (Lines("Notes", result.notes), Lines("Sources", result.sources))


def off_by(fraction: float | None) -> str:
    """How far a figure is off, as `-2.7 %`; nothing where there is no other to compare with."""
    return "" if fraction is None else f"{fraction * 100:+.2f} % off the count"


def exact(value: float, unit: str = "") -> str:
    """A whole number with separators and its unit."""
    return f"{format_exact(value)} {unit}".rstrip()


def whole(value: float) -> str:
    """A large figure without decimals, a small one with four digits: never a rounded nothing."""
    return f"{value:,.0f}" if abs(value) >= WHOLE_FROM else f"{value:,.4g}"


def plural(unit: str) -> str:
    """More than one of what is counted."""
    return {"patch": "patches"}.get(unit, f"{unit}s")


def share(part: float, whole: float) -> str:
    """A part of a whole in percent."""
    return f"{part / whole * 100:.1f} %" if whole else ""
