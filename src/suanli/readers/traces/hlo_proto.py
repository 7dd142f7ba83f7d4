"""The compiled modules that an `xplane.pb` holds beside its events: what instruction a kernel of a GPU ran.

Field numbers are those of hlo.proto and xla_data.proto (openxla/xla): HloProto hlo_module 1; HloModuleProto name 1,
computations 3; HloComputationProto instructions 2, id 5; HloInstructionProto name 1, opcode 2, shape 3, window 15,
convolution_dimension_numbers 16, custom_call_target 28, dot_dimension_numbers 30, id 35, operand_ids 36,
called_computation_ids 38, backend_config 43; ShapeProto element_type 2, dimensions 3, tuple_shapes 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from suanli.nouns.hlo import HloInstruction, HloShape
from suanli.readers.traces.wire import BYTES, VARINT, fields, signed, varint
from suanli.readers.traces.xplane_space import Plane

# PrimitiveType of xla_data.proto, from 1 on
_NAMES = (
    "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "tuple", "opaque", "c64",
    "bf16", "token", "c128", "f8e5m2", "f8e4m3fn", "s4", "u4", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "s2", "u2",
    "f8e4m3", "f8e3m4", "s1", "u1", "f4e2m1fn", "f8e8m0fnu",
)  # fmt: skip
_TYPES = dict(enumerate(_NAMES, start=1))
_NUMBER = re.compile(r"\((\d{1,18})\)$")
_PRODUCTS = ("dot", "scaled-dot", "convolution", "custom-call")
_AROUND = ("fusion", "call", "async-start")
_PARTS = ("slice", "dynamic-slice", "dynamic-update-slice", "gather", "scatter")
_DEEPEST = 4  # fusions in fusions
Place = tuple[int, int]  # where a message starts and ends


@dataclass
class _Module:
    """One HloModuleProto, indexed: instructions are read when they are asked for."""

    raw: bytes
    name: str = ""
    named: dict[str, tuple[int, Place]] = field(default_factory=dict)  # computation, place
    numbered: dict[tuple[int, int], Place] = field(default_factory=dict)
    computations: dict[int, list[Place]] = field(default_factory=dict)


class HloModules:
    """The modules of a file by the number of their program."""

    def __init__(self, plane: Plane | None) -> None:
        self._raw: dict[int, bytes] = {}
        self._read: dict[int, _Module] = {}
        for key, event in (plane.events if plane else {}).items():
            content = next((value for value in event.stats.values() if isinstance(value, bytes)), None)
            if content is not None:
                number = _NUMBER.search(event.name)
                self._raw[int(number[1]) if number else key] = content

    def __bool__(self) -> bool:
        """Whether the file has any."""
        return bool(self._raw)

    def instruction(self, program: int, module: str, name: str) -> HloInstruction | None:
        """The instruction of this name; None where the file does not hold it, or several programs have the name."""
        found = self._module(program, module)
        if found is None or name not in found.named:
            return None
        return _instruction(found, *found.named[name], 0)

    def _module(self, program: int, module: str) -> _Module | None:
        if program in self._raw:
            return self._indexed(program)
        same = [number for number in self._raw if module and self._indexed(number).name == module]
        return self._indexed(same[0]) if len(same) == 1 else None

    def _indexed(self, program: int) -> _Module:
        if program not in self._read:
            self._read[program] = _index(self._raw[program])
        return self._read[program]


def _index(raw: bytes) -> _Module:
    made, broken = _Module(raw), list[int]()
    for number, kind, at, end in fields(raw, 0, len(raw), broken):
        if (number, kind) != (1, BYTES):
            continue
        for inner, form, start, stop in fields(raw, at, end, broken):
            if (inner, form) == (1, BYTES):
                made.name = _text(raw, start, stop)
            elif (inner, form) == (3, BYTES):
                _computation(made, start, stop, broken)
    return made


def _computation(made: _Module, at: int, end: int, broken: list[int]) -> None:
    raw, number, found = made.raw, 0, list[tuple[str, int, Place]]()
    for inner, form, start, stop in fields(raw, at, end, broken):
        if (inner, form) == (5, VARINT):
            number = signed(start)
        elif (inner, form) == (2, BYTES):
            name, own = "", 0
            for each, kind, value, close in fields(raw, start, stop, broken):
                if (each, kind) == (1, BYTES):
                    name = _text(raw, value, close)
                elif (each, kind) == (35, VARINT):
                    own = signed(value)
            found.append((name, own, (start, stop)))
    made.computations[number] = [place for _, _, place in found]
    for name, own, place in found:
        made.named.setdefault(name, (number, place))
        made.numbered.setdefault((number, own), place)


def _instruction(module: _Module, computation: int, place: Place, depth: int) -> HloInstruction:
    raw, broken = module.raw, list[int]()
    texts, called, operands = dict[int, str](), list[int](), list[int]()
    said: dict[str, object] = {}
    channels, spread = 0, False
    for number, kind, at, end in fields(raw, *place, broken):
        if number in (2, 28, 43) and kind == BYTES:
            texts[number] = _text(raw, at, end)
        elif number == 3 and kind == BYTES:
            said["results"] = tuple(_shapes(raw, at, end))
        elif number in (36, 38):
            (operands if number == 36 else called).extend(_wholes(raw, kind, at, end))
        elif number == 30 and kind == BYTES:
            said["contracted"] = _repeated(raw, at, end, 1)
        elif number == 16 and kind == BYTES:
            said["kernel_output"], channels = ((*_repeated(raw, at, end, each), 0)[0] for each in (4, 8))
        elif number == 15 and kind == BYTES:
            spread = any(_repeated(raw, *window, 6) > (1,) for window in _messages(raw, at, end, 1))
    opcode = texts.get(2, "")
    inner = called if opcode in _AROUND and depth < _DEEPEST else []
    opcodes = {opcode, *(each for number in inner for each, _ in _opcodes(module, number))}
    return HloInstruction(
        opcode=opcode, target=texts.get(28, ""), config=texts.get(43, "") if opcode == "custom-call" else "",
        operands=tuple(shape for each in operands for shape in _results(module, computation, each)),
        inside=tuple(found for each in inner for found in _products(module, each, depth + 1)),
        parts=not opcodes.isdisjoint(_PARTS),
        spread=channels if spread else None,
        **said,  # type: ignore[arg-type]
    )  # fmt: skip


def _products(module: _Module, computation: int, depth: int) -> Iterator[HloInstruction]:
    """The products in a computation, those of computations that it calls among them."""
    for opcode, place in _opcodes(module, computation):
        if opcode in _PRODUCTS:
            yield _instruction(module, computation, place, depth)
        elif opcode in _AROUND:
            yield from _instruction(module, computation, place, depth).inside


def _opcodes(module: _Module, computation: int) -> Iterator[tuple[str, Place]]:
    """What the instructions of a computation do."""
    for place in module.computations.get(computation, ()):
        yield next((_text(module.raw, at, end) for at, end in _messages(module.raw, *place, 2)), ""), place


def _results(module: _Module, computation: int, number: int) -> tuple[HloShape, ...]:
    """What the instruction of this number gives; () where it is not there."""
    place = module.numbered.get((computation, number))
    if place is None:
        return ()
    return tuple(
        shape for at, end in _messages(module.raw, *place, 3) for shape in _shapes(module.raw, at, end)
    )  # fmt: skip


def _shapes(raw: bytes, at: int, end: int, depth: int = 0) -> Iterator[HloShape]:
    """The arrays of a shape, those of a tuple one after another."""
    element, sizes, parts = 0, list[int](), list[Place]()
    for number, kind, value, stop in fields(raw, at, end, []):
        if number == 2 and kind == VARINT:
            element = value
        elif number == 3:
            sizes += _wholes(raw, kind, value, stop)
        elif number == 4 and kind == BYTES:
            parts.append((value, stop))
    if parts and depth < _DEEPEST:
        for part in parts:
            yield from _shapes(raw, *part, depth + 1)
    elif _TYPES.get(element) not in (None, "tuple", "opaque", "token"):
        yield _TYPES[element], tuple(sizes)


def _messages(raw: bytes, at: int, end: int, wanted: int) -> Iterator[Place]:
    return (
        (value, stop) for number, kind, value, stop in fields(raw, at, end, []) if (number, kind) == (wanted, BYTES)
    )


def _repeated(raw: bytes, at: int, end: int, wanted: int) -> tuple[int, ...]:
    """All whole numbers of one field, packed or not."""
    return tuple(
        each for number, kind, value, stop in fields(raw, at, end, []) if number == wanted
        for each in _wholes(raw, kind, value, stop)
    )  # fmt: skip


def _wholes(raw: bytes, kind: int, at: int, end: int) -> list[int]:
    if kind == VARINT:
        return [signed(at)]
    found = list[int]()
    while kind == BYTES and 0 <= at < end:
        value, at = varint(raw, at, end)
        if at > 0:
            found.append(signed(value))
    return found


def _text(raw: bytes, at: int, end: int) -> str:
    return raw[at:end].decode("utf-8", "replace")
