"""What `why` answers: a quantity, its formula, and the numbers put in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Step:
    """One application of a formula: where in the model, the numbers put in, what comes out, how many times."""

    where: str
    formula: str
    expression: str
    values: Mapping[str, Any]
    value: Any
    unit: str
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class Why:
    """Formula, legend, source and numbers of a quantity. Without a model, `value` is None and `steps` empty."""

    id: str
    doc: str
    formula: str
    source: str
    legend: Mapping[str, str]
    values: Mapping[str, Any] = field(default_factory=dict)
    value: Any = None
    unit: str = ""
    model: str | None = None
    steps: tuple[Step, ...] = ()
