"""What `compare` answers: field names are the JSON keys, `metadata` their unit and help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One reason why a counter's number is not the right one, with its exact size."""

    cause: str = _doc("", "what the counter does, as found in its own books")
    flops: int = _doc("FLOPs", "what that adds to its number, or takes away")
    places: int = _doc("modules", "in how many modules, or rows of a formula")
    example: str = _doc("", "one of them")


@dataclass(frozen=True, kw_only=True)
class Right:
    """The number the others are held against, found in two ways."""

    phase: str = _doc("", "forward, or train for formulas of a training step")
    flops: int | None = _doc("FLOPs", "by trace; by formula where the model cannot be run")
    formula: int | None = _doc("FLOPs", "Suanli's formula, convention full")
    trace: int | None = _doc("FLOPs", "Suanli's trace, convention full")
    equal: bool | None = _doc("", "whether both are the same to the last FLOP")
    note: str = _doc("", "why one is missing, or what differs", default="")


@dataclass(frozen=True, kw_only=True)
class Counter:
    """A counter's answer and why it differs. `reason` says why there is none."""

    name: str = _doc("", "name of the counter, as --tools and --like take it")
    title: str = _doc("", "name as people write it")
    version: str | None = _doc("", "installed version; null for a formula")
    device: str | None = _doc("", "where its tensors were; null for a formula")
    phase: str = _doc("", "forward, or train for formulas of a training step")
    params: int | None = _doc("parameters", "its parameter count")
    reported: int | None = _doc("", "its number as it gives it")
    unit: str = _doc("", "what that number is: FLOPs, MACs")
    says: str = _doc("", "what it calls that number")
    flops: int | None = _doc("FLOPs", "its number as FLOPs: MACs doubled")
    ratio: float | None = _doc("", "flops over the right number")
    difference: int | None = _doc("FLOPs", "flops less the right number")
    causes: tuple[Cause, ...] = _doc("", "what makes the difference; they add up to it with `unexplained`", default=())
    unexplained: int | None = _doc("FLOPs", "part of the difference without a cause found", default=None)
    explanation: str = _doc("", "the causes as a sentence")
    seconds: float | None = _doc("s", "its call alone, in a process that has loaded torch", default=None)
    peak_bytes: int | None = _doc("bytes", "most memory its process held", default=None)
    reason: str | None = _doc("", "why there is no number", default=None)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A model through every counter."""

    model: str = _doc("", "name")
    title: str = _doc("", "name as people write it")
    unit: str = _doc("", "what one position is: token, patch, image")
    units: int = _doc("positions", "positions the FLOPs are for")
    params: int = _doc("parameters", "all, tied weights once")
    right: tuple[Right, ...] = _doc("", "the right number of a forward pass, and of a training step")
    counters: tuple[Counter, ...] = _doc("", "each counter")
    explained: int = _doc("", "counters whose whole difference has causes")


@dataclass(frozen=True, kw_only=True)
class Likeness:
    """The number another counter would give, by its rules."""

    model: str = _doc("", "name")
    title: str = _doc("", "name as people write it")
    like: str = _doc("", "the counter")
    phase: str = _doc("", "forward, or train for formulas of a training step")
    device: str | None = _doc("", "the device it would run on; null for a formula")
    reported: int | None = _doc("", "the number it would give")
    unit: str = _doc("", "what that number is: FLOPs, MACs")
    says: str = _doc("", "what it calls that number")
    flops: int | None = _doc("FLOPs", "that number as FLOPs: MACs doubled")
    right: int = _doc("FLOPs", "convention full")
    ratio: float | None = _doc("", "flops over the right number")
    difference: int | None = _doc("FLOPs", "flops less the right number")
    causes: tuple[Cause, ...] = _doc("", "what makes the difference", default=())
    unexplained: int | None = _doc("FLOPs", "part of the difference without a cause found", default=None)
    explanation: str = _doc("", "the causes as a sentence")
