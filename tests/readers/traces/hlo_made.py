"""Compiled modules made by the tests, in the wire format of hlo.proto."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .xspace_made import number, packed, whole

TYPES = {"pred": 1, "s8": 2, "u8": 6, "f16": 10, "f32": 11, "tuple": 13, "bf16": 16, "f8e4m3fn": 20, "s4": 21}
Shape = tuple[str, tuple[int, ...]]


def listed(place: int, values: Sequence[int]) -> bytes:
    """A packed list of whole numbers."""
    return packed(place, b"".join(number(each) for each in values)) if values else b""


def shape(of: Shape | Sequence[Shape]) -> bytes:
    """ShapeProto of an array, or of a tuple of them."""
    if isinstance(of, tuple) and of and isinstance(of[0], str):
        kind, sizes = of
        return whole(2, TYPES[kind]) + listed(3, sizes)  # type: ignore[arg-type]
    return whole(2, TYPES["tuple"]) + b"".join(packed(4, shape(each)) for each in of)  # type: ignore[arg-type]


@dataclass
class Made:
    """An instruction; operands and computations called by number."""

    name: str
    opcode: str
    result: Shape | Sequence[Shape]
    operands: Sequence[int] = ()
    called: Sequence[int] = ()
    target: str = ""
    config: str = ""
    contracted: Sequence[int] | None = None
    channels: tuple[int, int] | None = None  # places: the kernel's outputs, the input's channels
    dilated: int = 1

    def written(self, own: int) -> bytes:
        """HloInstructionProto."""
        body = packed(1, self.name) + packed(2, self.opcode) + packed(3, shape(self.result)) + whole(35, own)
        body += listed(36, self.operands) + listed(38, self.called)
        body += packed(28, self.target) if self.target else b""
        body += packed(43, self.config) if self.config else b""
        if self.contracted is not None:
            body += packed(30, listed(1, self.contracted) + listed(2, [0]))
        if self.channels is not None:
            out, channels = self.channels
            body += packed(16, (whole(4, out) if out else b"") + (whole(8, channels) if channels else b""))
            body += packed(15, packed(1, whole(1, 3) + whole(2, 1) + whole(6, self.dilated)))
        return body


@dataclass
class Module:
    """A module: computations by number, each a list of instructions numbered from 1."""

    name: str
    computations: dict[int, list[Made]] = field(default_factory=dict)

    def written(self) -> bytes:
        """HloProto."""
        body = packed(1, self.name)
        for number_, instructions in self.computations.items():
            inner = packed(1, f"computation {number_}") + whole(5, number_)
            inner += b"".join(packed(2, each.written(own)) for own, each in enumerate(instructions, start=1))
            body += packed(3, inner)
        return packed(1, body)
