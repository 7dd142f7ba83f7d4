"""How numbers are stored, a block of them at a time, and how a quantised model stores its weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from suanli.units import BITS_PER_BYTE


def _field(unit: str, doc: str, **options: Any) -> Any:
    return field(metadata={"unit": unit, "doc": doc}, **options)


@dataclass(frozen=True, kw_only=True)
class Format:
    """A storage format: `nbytes` for every `values` numbers, scales of the block among them."""

    name: str = _field("", "as options spell it")
    values: int = _field("numbers", "in a block")
    nbytes: int = _field("B", "of a block, its scales included")
    source: str = _field("", "who says so")

    @property
    def bits(self) -> int | Fraction:
        """Bits a number on average: exact, a whole number where it is one."""
        found = Fraction(self.nbytes * BITS_PER_BYTE, self.values)
        return int(found) if found.denominator == 1 else found


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """How a checkpoint stores its weights: matrices in few bits with scales, the rest in a wider format.

    A scale covers `group_in` inputs (None: all of them) times `group_out` outputs (None: all of them).
    """

    name: str = _field("", "as options spell it")
    title: str = _field("", "what it is")
    bits: int | Fraction = _field("bits", "of a weight of a quantised matrix, scales apart")
    base: str = _field("", "format of what is not quantised", default="bf16")
    group_in: int | None = _field("inputs", "that share a scale; None: all", default=None)
    group_out: int | None = _field("outputs", "that share a scale; None: all", default=1)
    scale_bytes: int = _field("B", "a scale", default=0)
    zero_bits: int = _field("bits", "a zero point, one beside each scale", default=0)
    index_bytes: int = _field("B", "an input's group index (GPTQ's g_idx)", default=0)
    tensor_bytes: int = _field("B", "of each matrix besides: global scales, shapes", default=0)
    targets: tuple[str, ...] = _field("", "what is quantised: linear, experts, head, embedding", default=())
    skip: tuple[str, ...] = _field("", "modules left alone: parts of paths, globs, or re:patterns", default=())
    source: str = _field("", "who says so", default="")
