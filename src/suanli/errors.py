"""The exceptions Suanli raises, and the one shape in which they are reported.

    SuanliError
    ├── InputError (ValueError)         the input is wrong: exit code 2
    │   ├── UnknownNameError (LookupError)  a device, model, format or option nobody knows; names the nearest
    │   ├── AmbiguousNameError          a name that fits several; lists them
    │   ├── QuantityError               a number or unit that cannot be read
    │   ├── ConfigError                 a model description with missing or contradictory keys
    │   └── UnreadableFileError (OSError)   a file that is absent, too large, not text, not JSON …
    └── MissingExtraError (ImportError) an optional library is needed; names the pip command

A message always says, in this order: what is wrong, where, what was got, what was expected,
the nearest known names, what to do. All faults of one input are listed together.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that is wrong with an input. `got` comes shortened: hostile input cannot flood a screen."""

    code: str
    message: str
    where: str | None = None
    got: str | None = None
    expected: str | None = None
    nearest: tuple[str, ...] = ()
    hint: str | None = None

    def sentence(self) -> str:
        """The fault as one line of text, parts in the fixed order."""
        parts = [self.message if self.where is None else f"{self.message} in {self.where}"]
        if self.got is not None:
            parts.append(f"got {self.got}")
        if self.expected is not None:
            parts.append(f"expected {self.expected}")
        if self.nearest:
            parts.append("nearest: " + ", ".join(self.nearest))
        text = "; ".join(parts)
        return f"{text}. {self.hint}" if self.hint else f"{text}."

    def to_dict(self) -> dict[str, object]:
        """The fault in the JSON error shape."""
        return {
            "code": self.code,
            "message": self.message,
            "where": self.where,
            "got": self.got,
            "expected": self.expected,
            "nearest": list(self.nearest),
            "hint": self.hint,
        }


class SuanliError(Exception):
    """Base of everything Suanli raises on purpose."""

    exit_code = 2

    def __init__(self, *faults: Fault) -> None:
        assert faults, "an error must say at least one thing"
        self.faults = faults
        super().__init__("\n".join(fault.sentence() for fault in faults))

    def __reduce__(self) -> tuple[type[SuanliError], tuple[Fault, ...]]:
        return type(self), self.faults  # pickled by its faults, so that it survives the way out of a worker

    def to_dict(self) -> dict[str, object]:
        """`{"ok": false, "error": first fault, "errors": all faults}`."""
        every = [fault.to_dict() for fault in self.faults]
        return {"ok": False, "error": every[0], "errors": every}


class InputError(SuanliError, ValueError):
    """What the user gave is wrong."""


class UnknownNameError(InputError, LookupError):
    """A name that is not in its catalogue."""


class AmbiguousNameError(InputError):
    """A name that fits more than one entry of its catalogue."""


class QuantityError(InputError):
    """A number or unit that cannot be read."""


class ConfigError(InputError):
    """A model description with missing, contradictory or impossible keys."""


class UnreadableFileError(InputError, OSError):
    """A file that is absent, too large, not text, or not in its format."""


class MissingExtraError(SuanliError, ImportError):
    """An optional library is needed for what was asked."""


def shown(value: object, limit: int = 60) -> str:
    """`value` as it appears in messages: repr, cut to `limit` characters."""
    try:
        text = repr(value)
    except Exception as problem:  # noqa: BLE001  a hostile __repr__ must not hide the real fault
        text = f"<unprintable {type(value).__name__}: {type(problem).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Up to `count` names of `known` that look most like `name`."""
    pool: dict[str, str] = {}
    for candidate in known:
        pool.setdefault(candidate.lower(), candidate)  # of several spellings the first: kW, not KW
    close = difflib.get_close_matches(name.lower()[:200], pool, n=count, cutoff=0.4)
    return tuple(pool[key] for key in close)


def unknown_name(kind: str, name: str, known: Iterable[str], *, where: str, hint: str) -> UnknownNameError:
    """The error for a name that is not in its catalogue: counts the known ones and names the nearest."""
    names = list(known)
    return UnknownNameError(
        Fault(
            code=f"unknown_{kind.replace(' ', '_')}",
            message=f"unknown {kind} {shown(name)}",
            where=where,
            expected=f"one of {len(names)} known",
            nearest=nearest_names(name, names),
            hint=hint,
        )
    )


@dataclass
class FaultList:
    """Collects faults so that one error can list them all."""

    error: type[InputError] = InputError
    faults: list[Fault] = field(default_factory=list)

    def add(self, **parts: object) -> None:
        """Record one fault; keywords as in `Fault`."""
        self.faults.append(Fault(**parts))  # type: ignore[arg-type]

    def raise_if_any(self) -> None:
        """Raise one error holding every fault recorded, if there is one."""
        if self.faults:
            raise self.error(*self.faults)
