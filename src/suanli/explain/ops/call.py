"""One call of an operator as a trace has it, and what it costs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from suanli.nouns.trace import OpDetail

Shape = tuple[int, ...]

NO_SHAPES = "no shapes recorded"
STATED = "stated by the profiler"


@dataclass(frozen=True)
class Cost:
    """FLOPs and least bytes of one call; None with the reason where the trace does not say enough.

    `operands` are the types, as printed, of what is multiplied; `formula` is an id of the registry or STATED.
    """

    flops: float | None = None
    formula: str = ""
    operands: tuple[str, ...] = ()
    reason: str = ""


MOST_FLOPS = 1e30  # of one call: more is a broken shape


def misfit(call: Call) -> Cost:
    """Shapes that this operator cannot have been called with."""
    return unknown(f"{call.name}: shapes that do not fit")


def unknown(reason: str) -> Cost:
    """A call that has FLOPs, but the trace does not say how many."""
    return Cost(reason=reason)


@dataclass(frozen=True)
class Call:
    """A call with the one it was called from, and, where it was looked for, the shape of what it gave out."""

    name: str
    detail: OpDetail
    parent: Call | None = None
    output: Shape | None = None
    full_pairs: bool = False  # charge attention for every pair, a causal mask or not

    def shape(self, at: int) -> Shape | None:
        """Shape of argument `at`; None where it is no tensor or was not recorded."""
        dims = self.detail.dims
        if dims is None or not -len(dims) <= at < len(dims):
            return None
        return dims[at] if _is_shape(dims[at]) else None

    def shapes(self) -> list[Shape]:
        """Every tensor, those inside lists too, in order."""
        return list(_flat(self.detail.dims or ()))

    def type(self, at: int) -> str:
        """Type of argument `at` as printed; empty where not recorded."""
        types = self.detail.types
        return types[at] if types and -len(types) <= at < len(types) and isinstance(types[at], str) else ""

    def text(self, at: int) -> str | None:
        """Value of a scalar argument as text; None where not recorded (older torch), or not given."""
        values = self.detail.concrete
        if values is None or not -len(values) <= at < len(values):
            return None
        return values[at] if isinstance(values[at], str) and values[at] else None

    def whole(self, at: int) -> int | None:
        """A whole number."""
        text = self.text(at)
        return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None

    def wholes(self, at: int) -> Shape | None:
        """A list of whole numbers: `[1, 1]`."""
        text = self.text(at)
        if text is None or not re.fullmatch(r"\[[-\d, ]*\]", text):
            return None
        return tuple(int(part) for part in re.findall(r"-?\d+", text))

    def flag(self, at: int) -> bool | None:
        """A truth value."""
        return _FLAGS.get(self.text(at) or "")

    def flags(self, at: int) -> tuple[bool, ...] | None:
        """A list of truth values: `[False, True, False]`."""
        text = self.text(at)
        if text is None or not text.startswith("["):
            return None
        return tuple(word == "True" for word in re.findall(r"True|False", text))


_FLAGS = {"True": True, "False": False}


def _is_shape(value: Any) -> bool:
    """Whether an argument is a tensor of at least one dimension; nothing has a size below zero."""
    return isinstance(value, tuple) and bool(value) and all(isinstance(size, int) and size >= 0 for size in value)


def _flat(dims: Any) -> Any:
    """Shapes among arguments and lists of arguments; scalars and what is absent have none."""
    for each in dims:
        if isinstance(each, tuple) and each:
            if _is_shape(each):
                yield each
            else:
                yield from _flat(each)
