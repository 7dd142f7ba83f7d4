"""What a planner answers: memory of every pipeline stage's ranks, by term, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

STATES = ("weights", "gradients", "optimizer")
ALLOCATED = (*STATES, "activations", "logits", "working", "buffers")
ALLOWANCE = ("reserve", "context")
TERMS = (*ALLOCATED, *ALLOWANCE)
MOMENTS = ("loss", "block", "step")


def _doc(unit: str, doc: str, **more: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class StageMemory:
    """One rank of one stage at the moment it holds most. The terms add up to `total`."""

    stage: int = _doc("", "which, from 0")
    layers: int = _doc("layers", "blocks it holds")
    params: int = _doc("parameters", "it holds, before ZeRO shards them")
    weights: int = _doc("bytes", "weights, with 8-bit copies and what ZeRO-3 has gathered")
    gradients: int = _doc("bytes", "gradients held from one micro-batch to the next")
    optimizer: int = _doc("bytes", "optimizer states on the GPU")
    offloaded: int = _doc("bytes", "optimizer states, and gradients with them, in the host's memory; in no total")
    activations: int = _doc("bytes", "kept for backward by all micro-batches in flight")
    logits: int = _doc("bytes", "logits, their gradient and the head's weight gradient; 0 when the peak is elsewhere")
    working: int = _doc("bytes", "made while one block is in backward or the optimizer steps; 0 when at the loss")
    buffers: int = _doc("bytes", "communication buffers and placeholders")
    reserve: int = _doc("bytes", "what torch's allocator holds beyond what it has given out: an allowance")
    context: int = _doc("bytes", "CUDA context, libraries and communicators: an allowance")
    moment: str = _doc("", "when it holds most: at the loss, in a block's backward, in the optimizer's step")

    @property
    def states(self) -> Any:
        """Weights, gradients and optimizer states: what is there whatever the batch."""
        return sum(getattr(self, name) for name in STATES)

    @property
    def allocated(self) -> Any:
        """All but the allowances: what torch reports as max_memory_allocated."""
        return sum(getattr(self, name) for name in ALLOCATED)

    @property
    def reserved(self) -> Any:
        """What torch reports as max_memory_reserved."""
        return self.allocated + self.reserve

    @property
    def overhead(self) -> Any:
        """The allowances together."""
        return self.reserve + self.context

    @property
    def total(self) -> Any:
        """With the allowances: what the device must have."""
        return self.allocated + self.overhead

    @property
    def largest(self) -> str:
        """The name of the largest term."""
        return max(TERMS, key=lambda name: getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class MemoryEstimate:
    """Memory of every stage under one layout and stack. `fits` and `margin` are None without a device, and say so."""

    layout: str = _doc("", "degrees that differ from 1, and policies")
    stack: str = _doc("", "software stack assumed")
    stages: tuple[StageMemory, ...] = _doc("", "one row a stage")
    capacity: int | None = _doc("bytes", "memory of the device", default=None)
    assumed: tuple[str, ...] = _doc("", "what was assumed", default=())
    reasons: Mapping[str, str] = _doc("", "why a figure is not given", default_factory=dict)

    @property
    def fullest(self) -> StageMemory:
        """The stage whose ranks hold most."""
        return max(self.stages, key=lambda stage: stage.total)

    @property
    def total(self) -> int:
        """Bytes of the fullest rank."""
        return int(self.fullest.total)

    @property
    def margin(self) -> int | None:
        """What is left of the device on the fullest rank; below 0 where it does not fit."""
        return None if self.capacity is None else self.capacity - self.total

    @property
    def fits(self) -> bool | None:
        """Whether every stage fits."""
        return None if self.margin is None else self.margin >= 0

    @property
    def largest(self) -> str:
        """The largest term of the fullest rank."""
        return self.fullest.largest

    def to_dict(self) -> dict[str, Any]:
        """Every stage's terms with their total, and the verdict."""
        rows = [
            {name: getattr(stage, name) for name in ("stage", "layers", "params", *TERMS, "offloaded", "moment")}
            | {"total": stage.total, "largest": stage.largest}
            | ({} if self.capacity is None else {"margin": self.capacity - stage.total})
            for stage in self.stages
        ]
        names = ("layout", "stack", "capacity", "fits", "margin", "largest", "total")
        found = {name: getattr(self, name) for name in names}
        return found | {"stages": rows, "assumed": list(self.assumed), "reasons": dict(self.reasons)}
