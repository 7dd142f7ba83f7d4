"""One instruction of a compiled XLA module, as far as its cost needs it: shapes, and how they are multiplied."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HloShape = tuple[str, tuple[int, ...]]  # element type as XLA prints it (bf16, f32), and sizes


def _field(doc: str, **options: Any) -> Any:
    return field(metadata={"unit": "", "doc": doc}, **options)


@dataclass(frozen=True, kw_only=True)
class HloInstruction:
    """An instruction that a kernel ran. Sizes are elements; places are dimensions, counted from 0."""

    opcode: str = _field("dot, convolution, fusion, custom-call …")
    target: str = _field("what a custom call calls", default="")
    results: tuple[HloShape, ...] = _field("arrays that come out", default=())
    operands: tuple[HloShape, ...] = _field("arrays that go in", default=())
    contracted: tuple[int, ...] | None = _field("dimensions of the left factor that are summed over", default=None)
    kernel_output: int | None = _field("of a convolution: the kernel's dimension of output channels", default=None)
    spread: int | None = _field(
        "of a convolution with zeros between its inputs (base dilation): their dimension of channels", default=None
    )
    config: str = _field("what a custom call is told", default="")
    parts: bool = _field("of a fusion: it may read or write only parts of its arrays (slices, gathers)", default=False)
    inside: tuple[HloInstruction, ...] = _field("of a fusion: the products in it", default=())
