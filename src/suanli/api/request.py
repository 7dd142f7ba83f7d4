"""Reads what was typed: every value of a request is parsed, and all faults are reported together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from suanli.errors import Fault, FaultList, InputError, SuanliError, shown
from suanli.nouns.workload import option
from suanli.units import DAY, parse

Value = TypeVar("Value")

MAX_SIDE = 100_000
MOST_GPUS = 10**9  # no cluster has more; figures of more would be made of nothing
MAX_SECONDS = 30 * DAY  # of a run: far below what timers of systems and threads can hold


class Request:
    """Collects the faults of the values read through it; `check()` raises them as one error.

    `given` keeps what was typed, `assumed` what was not and what it is taken to be.
    """

    def __init__(self) -> None:
        self.errors: list[SuanliError] = []
        self.given: dict[str, Any] = {}
        self.assumed: dict[str, Any] = {}

    def attempt(self, read: Callable[[], Value]) -> Value | None:
        """What `read` returns, or None where it raised; the error is kept."""
        try:
            return read()
        except SuanliError as problem:
            self.errors.append(problem)
            return None

    def quantity(self, name: str, value: Any, kind: str, *, signed: bool = False) -> int | float | None:
        """A number with a unit of `kind`, None where not given; below zero only where `signed`."""
        if value is None:
            return None
        self.given[name] = value
        return self.attempt(lambda: parse(value, kind, option(name), signed=signed))

    def whole(
        self,
        name: str,
        value: Any,
        default: int | None = None,
        *,
        kind: str = "length",
        low: int = 0,
        high: int | None = None,
    ) -> int | None:
        """A whole number with a count's suffix, `low` to `high`; the default is remembered as assumed."""
        if value is None:
            if default is not None:
                self.assumed[name] = default
            return default
        found = self.quantity(name, value, kind)
        if found is not None and (found < low or (high is not None and found > high)):
            words = name.replace("_", " ")
            expected = f"at least {low:,}" if high is None else f"{low:,} to {high:,}"
            self.fault(f"bad_{name}", f"{words} is not possible", name, got=shown(value), expected=expected)
            return None
        if isinstance(found, float):
            if found.is_integer():
                return int(found)
            self.fault("bad_quantity", "not a whole number", name, got=shown(value), expected="a whole number")
            return None
        return found

    def word(self, name: str, value: Any, default: Any, *, fold: bool = True) -> str:
        """A word; the default is remembered as assumed."""
        if value is None:
            self.assumed[name] = default
            return str(default)
        self.given[name] = value
        word = str(value).strip()
        return word.lower() if fold else word  # BF16, Train and PaLM are what they say

    def time_limit(self, value: Any) -> float | None:
        """Seconds that something may run, None where not given."""
        if value is None:
            return None
        self.given["time_limit"] = value
        return self.attempt(lambda: read_time_limit(value))

    def fault(self, code: str, message: str, name: str, **parts: Any) -> None:
        """Record a fault of the option `name`."""
        faults = FaultList(InputError)
        faults.add(code=code, message=message, where=option(name), **parts)
        self.errors.append(InputError(*faults.faults))

    def check(self) -> None:
        """Raise what was found: the error itself where there is one, else one InputError with all faults."""
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            raise InputError(*(fault for error in self.errors for fault in error.faults))


def read_time_limit(given: Any) -> float:
    """Seconds that something may run: more than 0 and at most 30 days. Raises InputError."""
    found = parse(given, "duration", "--time-limit")
    if 0 < found <= MAX_SECONDS:
        return float(found)
    raise InputError(
        Fault(
            code="bad_time_limit",
            message="the time limit is not possible",
            where="--time-limit",
            got=shown(given),
            expected="more than 0 s" if found <= 0 else "at most 30 days (30d)",
        )
    )


def read_image(text: Any) -> tuple[int, ...] | None:
    """`HxW` as (height, width). Raises InputError."""
    if text is None:
        return None
    parts = text if isinstance(text, tuple | list) else str(text).lower().split("x")
    sides = [int(part) if str(part).isdecimal() and len(str(part)) < 7 else 0 for part in parts]
    if not 1 <= len(sides) <= 3 or not all(1 <= side <= MAX_SIDE for side in sides):
        raise InputError(
            Fault(
                code="bad_image",
                message="the size cannot be read",
                where="--image",
                got=shown(text),
                expected="height and width, like 224x224",
            )
        )
    return tuple(sides)
