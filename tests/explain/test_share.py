"""How much of the time of products has FLOPs, and the advice where it is little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from suanli.explain import reasons
from suanli.explain import share as s
from suanli.explain.ops import attention, convolutions, custom
from suanli.explain.ops.call import NO_SHAPES
from suanli.explain.share import share
from suanli.nouns.attribution import Attribution, WorkClass
from suanli.nouns.roofline import Share
from suanli.nouns.trace import Trace

Make = Callable[..., Trace]
Attribute = Callable[..., Attribution]
MATMUL, COMPUTE = int(WorkClass.MATMUL), int(WorkClass.COMPUTE)


def of(make: Make, attribute: Attribute, known: int, unknown: int, why: dict[str, float]) -> Share:
    """A trace of three kernels: a product of `known` ns with FLOPs, one of `unknown` ns without, and another kernel."""
    work = [{"start_ns": 0, "end_ns": known}, {"start_ns": 10**6, "end_ns": 10**6 + unknown},
            {"start_ns": 2 * 10**6, "end_ns": 2 * 10**6 + 500}]  # fmt: skip
    found = attribute([MATMUL, MATMUL, COMPUTE], [1.0, None, None], ["bf16", None, None])
    return share(make(work), replace(found, reasons=why))


def test_the_share_is_of_the_time_of_products_alone(make: Make, attribute: Attribute) -> None:
    found = of(make, attribute, 920, 80, {reasons.GRAPH: 80e-9})
    assert (found.matmul_s, found.known_s) == pytest.approx((1000e-9, 920e-9))
    assert found.fraction == pytest.approx(0.92)
    assert found.message == (
        "attributed 92.0 % of matmul time; the rest above all: "
        "graph replay: one launch for all kernels, and no operator (80.00 ns)"
    )
    assert found.reasons == ((reasons.GRAPH, 80e-9),)


def test_all_of_it(make: Make, attribute: Attribute) -> None:
    found = of(make, attribute, 1000, 0, {})
    assert (found.message, found.advice) == ("attributed 100.0 % of matmul time", ())


def test_no_products(make: Make) -> None:
    trace = make([{"start_ns": 0, "end_ns": 10}])
    from suanli.explain.attribute import attribute

    found = share(trace, attribute(trace, [COMPUTE]))
    assert (found.fraction, found.message, found.advice) == (None, "no products in this trace", ())


ADVICE = [
    (NO_SHAPES, s.SHAPES),
    (reasons.GRAPH, s.EAGER),
    (reasons.BEFORE, s.AT_REST),
    (reasons.NO_LAUNCHES, s.BOTH),
    (reasons.NO_OPERATORS, s.BOTH),
    (reasons.XLA, s.XLA),
    (reasons.NO_INSTRUCTION, s.BUFFERS),
    ("operator without a formula: CompiledFunctionBackward", s.COMPILED),
    (attention.LENGTHS, s.LENGTHS),
    (custom.ROUTED, s.LENGTHS),
    (attention.NO_MASK_FLAG, s.VALUES),
    (convolutions.NO_STRIDES, s.VALUES),
]


@pytest.mark.parametrize(("why", "advice"), ADVICE)
def test_each_reason_has_its_advice(make: Make, attribute: Attribute, why: str, advice: str) -> None:
    assert of(make, attribute, 500, 500, {why: 500e-9}).advice == (advice,)


def test_advice_names_the_switch() -> None:
    assert s.SHAPES == (
        "Record shapes: torch.profiler.profile(record_shapes=True); "
        "for nsys, torch.autograd.profiler.emit_nvtx(record_shapes=True)."
    )


def test_none_where_enough_is_known_or_the_reason_is_small(make: Make, attribute: Attribute) -> None:
    assert of(make, attribute, 960, 40, {NO_SHAPES: 40e-9}).advice == ()
    two = {reasons.GRAPH: 495e-9, NO_SHAPES: 5e-9}
    assert of(make, attribute, 500, 500, two).advice == (s.EAGER,)
    both = {reasons.NO_LAUNCHES: 300e-9, reasons.NO_OPERATORS: 200e-9}
    assert of(make, attribute, 500, 500, both).advice == (s.BOTH,)  # said once
