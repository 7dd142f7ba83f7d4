"""What `why` answers: a quantity, its formula, and the numbers put in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def _doc(doc: str, **more: Any) -> Any:
    return field(metadata={"doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One application of a formula: where in the model, the numbers put in, what comes out, how many times."""

    where: str = _doc("in the model, or what is worked out")
    formula: str = _doc("id in the registry")
    expression: str = _doc("the formula in letters")
    values: Mapping[str, Any] = _doc("numbers put in, by argument")
    value: Any = _doc("what comes out, all copies together")
    unit: str = _doc("unit of the value")
    times: int = _doc("equal copies", default=1)


@dataclass(frozen=True, kw_only=True)
class Why:
    """Formula, legend, source and numbers of a quantity. Without a model, `value` is None and `steps` empty."""

    id: str = _doc("quantity or formula")
    doc: str = _doc("what it is")
    formula: str = _doc("in letters")
    source: str = _doc("paper and equation, or convention and model")
    legend: Mapping[str, str] = _doc("arguments, each with letter, meaning, unit")
    values: Mapping[str, Any] = _doc("numbers put in; for a sum, what is added", default_factory=dict)
    value: Any = _doc("the verb's value; None without a model", default=None)
    unit: str = _doc("unit of the value", default="")
    model: str | None = _doc("name of the model", default=None)
    steps: tuple[Step, ...] = _doc("every application of a formula", default=())
