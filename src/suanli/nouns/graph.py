"""A program's operations as found by walking it (an ONNX graph, a jaxpr): rows of work, and what has no formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from suanli.nouns.ledger import Op


@dataclass(frozen=True)
class NoFormula:
    """An operator that may multiply and has no formula here: the totals are then a lower bound."""

    op: str = field(metadata={"unit": "", "doc": "operator"})
    shapes: str = field(metadata={"unit": "", "doc": "shapes of its inputs"})
    calls: int = field(metadata={"unit": "", "doc": "how often it runs"})
    why: str = field(metadata={"unit": "", "doc": "what is not known"})


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Elements and bytes of one dtype."""

    elements: int = field(metadata={"unit": "elements", "doc": "of all tensors of the dtype"})
    bytes: int = field(metadata={"unit": "bytes", "doc": "of all tensors of the dtype"})


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Work found by walking a program once. `params` is None where the program does not say what is a parameter."""

    name: str
    format: str
    rows: tuple[Op, ...]
    missing: tuple[NoFormula, ...] = ()
    params: int | None = None
    stored: Mapping[str, Stored] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class Missing:
    """Collects operators without a formula, equal ones together."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str, str], int] = {}

    def add(self, op: str, shapes: str, calls: int, why: str = "no formula") -> None:
        """Record `calls` calls."""
        key = (op, shapes, why)
        self._calls[key] = self._calls.get(key, 0) + calls

    def listed(self) -> tuple[NoFormula, ...]:
        """Each operator once, in order of first appearance."""
        return tuple(NoFormula(op, shapes, calls, why) for (op, shapes, why), calls in self._calls.items())
