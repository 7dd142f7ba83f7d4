"""Instructions of compiled modules, from modules made here."""

from __future__ import annotations

import random

import pytest

from suanli.nouns.hlo import HloInstruction
from suanli.readers.traces.hlo_proto import HloModules
from suanli.readers.traces.xplane_space import EventName, Plane

from .hlo_made import Made, Module

A, B, C = ("bf16", (64, 32)), ("bf16", (32, 8)), ("bf16", (64, 8))
CONFIG = '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}'
STEP = Module(
    "jit_step",
    {
        1: [
            Made("p0", "parameter", A), Made("p1", "parameter", B),
            Made("fusion.1", "fusion", C, operands=(1, 2), called=(2,)),
            Made("gemm.1", "custom-call", (C, ("s8", (4096,))), operands=(1, 2), target="__cublas$gemm", config=CONFIG),
            Made("slices", "fusion", C, operands=(1,), called=(4,)),
        ],
        2: [
            Made("q0", "parameter", A), Made("q1", "parameter", B),
            Made("deeper", "fusion", C, operands=(1, 2), called=(3,)),
        ],
        3: [
            Made("r0", "parameter", A), Made("r1", "parameter", B),
            Made("dot.7", "dot", C, operands=(1, 2), contracted=(1,)),
        ],
        4: [Made("s0", "parameter", A), Made("slice.2", "dynamic-slice", C, operands=(1,))],
    },
)  # fmt: skip
DOT = HloInstruction(opcode="dot", results=(C,), operands=(A, B), contracted=(1,))


def modules(*made: tuple[int, str, bytes]) -> HloModules:
    events = {key: EventName(name, stats={1: content, 2: key}) for key, name, content in made}
    return HloModules(Plane("/host:metadata", events=events))


def one(content: bytes = STEP.written()) -> HloModules:
    return modules((7, "jit_step(7)", content))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dot.7", DOT),
        ("fusion.1", HloInstruction(opcode="fusion", results=(C,), operands=(A, B), inside=(DOT,))),
        ("gemm.1", HloInstruction(opcode="custom-call", target="__cublas$gemm", results=(C, ("s8", (4096,))),
                                  operands=(A, B), config=CONFIG)),
        ("slices", HloInstruction(opcode="fusion", results=(C,), operands=(A,), parts=True)),
        ("p0", HloInstruction(opcode="parameter", results=(A,))),
        ("other", None),
    ],
)  # fmt: skip
def test_an_instruction_by_its_name(name: str, expected: HloInstruction | None) -> None:
    assert one().instruction(7, "jit_step", name) == expected


@pytest.mark.parametrize(("dilated", "spread"), [(1, None), (2, 1)])
def test_a_convolution_says_where_its_channels_stand(dilated: int, spread: int | None) -> None:
    conv = Made("conv", "convolution", C, channels=(3, 1), dilated=dilated)
    found = one(Module("jit_step", {1: [conv]}).written()).instruction(7, "", "conv")
    assert found == HloInstruction(opcode="convolution", results=(C,), kernel_output=3, spread=spread)


def test_programs_by_number_else_by_a_name_that_is_theirs_alone() -> None:
    wide = Module("jit_step", {1: [Made("dot.7", "dot", B, contracted=(0,))]}).written()
    both = modules((7, "jit_step(7)", STEP.written()), (9, "jit_step(9)", wide))
    ours, theirs = (both.instruction(number, "jit_step", "dot.7") for number in (7, 9))
    assert ours is not None and theirs is not None
    assert (ours.results, theirs.results) == ((C,), (B,))
    assert both.instruction(-1, "jit_step", "dot.7") is None  # which of the two is not said
    assert one().instruction(-1, "jit_step", "dot.7") == DOT
    assert one().instruction(-1, "", "dot.7") is None


def test_a_file_without_modules() -> None:
    assert not HloModules(None)
    assert not modules()
    assert HloModules(None).instruction(7, "jit_step", "dot.7") is None


def test_a_fusion_that_holds_itself_ends() -> None:
    loop = Module("jit_step", {1: [Made("f", "fusion", C, called=(1,)), Made("d", "dot", C, contracted=())]})
    found = one(loop.written()).instruction(7, "", "f")
    assert found is not None
    assert len(found.inside) == 4  # as deep as fusions are followed


def test_broken_modules_never_crash() -> None:
    whole, chance = STEP.written(), random.Random(5)
    for _ in range(300):
        cut = bytearray(whole[: chance.randrange(len(whole))])
        for _ in range(chance.randrange(4)):
            if cut:
                cut[chance.randrange(len(cut))] = chance.randrange(256)
        held = one(bytes(cut))
        for name in ("fusion.1", "gemm.1", "dot.7", "slices"):
            found = held.instruction(7, "jit_step", name)
            assert found is None or isinstance(found, HloInstruction)
