"""Work that ran instructions of XLA: an instruction counts once a run, shared by time over its products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from suanli.explain.attribute import attribute
from suanli.explain.classify import classify
from suanli.explain.roofline import roofline
from suanli.explain.stated import Instructions, event_costs
from suanli.nouns.attribution import WorkClass
from suanli.nouns.hlo import HloInstruction
from suanli.nouns.trace import OpDetail, Trace

Make = Callable[..., Trace]
A, B, C = ("bf16", (64, 32)), ("bf16", (32, 8)), ("bf16", (64, 8))
FLOPS = 2 * 64 * 32 * 8
DOT = HloInstruction(opcode="dot", operands=(A, B), results=(C,), contracted=(1,))
ADD = HloInstruction(opcode="fusion", operands=(A,), results=(A,))


def detail(instruction: HloInstruction | None, op: str = "dot.1", program: int = 1, **others: Any) -> OpDetail:
    said = {"op": op, "module": "jit_f", "program": program}
    return OpDetail(hlo=said if instruction is None else {**said, "instruction": instruction}, **others)


def row(name: str, start: int, lasted: int, place: int, **others: Any) -> dict[str, Any]:
    return {"name": name, "start_ns": start, "end_ns": start + lasted, "detail": place, **others}


def trace_of(make: Make, rows: list[dict[str, Any]], *details: OpDetail) -> Trace:
    return make(rows, details=details, format="xplane")


def test_a_run_of_one_kernel_has_its_flops_and_bytes(make: Make) -> None:
    trace = trace_of(make, [row("gemm", 0, 10, 0), row("gemm", 20, 30, 0), row("fusion", 60, 5, 1)], detail(DOT),
                     detail(ADD, "fusion"))  # fmt: skip
    found = attribute(trace, classify(trace))
    assert found.flops.tolist() == [FLOPS, FLOPS, 0]
    assert found.flops_known.tolist() == [True, True, False]
    assert found.bytes.tolist() == [(64 * 32 + 32 * 8 + 64 * 8) * 2] * 2 + [2 * 64 * 32 * 2]
    assert found.formulas == ("linear_flops",)
    assert [found.dtypes[at] if at >= 0 else None for at in found.dtype] == ["bf16", "bf16", None]
    assert found.reasons == {}


def test_a_split_product_counts_once_a_run(make: Make) -> None:
    rows = [row("gemm", 0, 30, 0), row("splitKreduce_kernel", 30, 10, 0), row("gemm", 100, 10, 0),
            row("splitKreduce_kernel", 110, 30, 0)]  # fmt: skip
    trace = trace_of(make, rows, detail(DOT))
    found = attribute(trace, classify(trace))
    matmul = found.work_class == WorkClass.MATMUL
    assert found.flops[matmul].sum() == 2 * FLOPS
    assert Instructions(trace, classify(trace)).run.tolist() == [0, 0, 1, 1]


def test_helpers_take_none_of_it(make: Make) -> None:
    rows = [row("Im2Col", 0, 90, 0), row("transpose_fusion", 90, 5, 0), row("Cijk_Ailk_BBS", 100, 10, 0),
            row("Im2Col", 200, 90, 0), row("Cijk_Ailk_BBS", 300, 10, 0)]  # fmt: skip
    trace = trace_of(make, rows, detail(DOT))
    found = attribute(trace, classify(trace))
    assert found.flops.tolist() == [0, 0, FLOPS, 0, FLOPS]  # a helper that ran once makes no run fewer
    assert found.bytes_known.tolist() == [False, False, True, False, True]


def test_a_fused_product_is_one_whatever_its_kernel_is_called(make: Make) -> None:
    trace = trace_of(make, [row("fusion_12", 0, 10, 0)], detail(HloInstruction(opcode="fusion", inside=(DOT,))))
    assert classify(trace).tolist() == [WorkClass.COMPUTE]
    found = attribute(trace, classify(trace))
    assert (found.work_class.tolist(), found.flops.tolist()) == ([WorkClass.MATMUL], [FLOPS])


def test_programs_and_devices_are_told_apart(make: Make) -> None:
    rows = [row("gemm", 0, 10, 0), row("gemm", 20, 10, 1), row("gemm", 0, 10, 0, device=1)]
    trace = trace_of(make, rows, detail(DOT), detail(DOT, program=2))
    assert len(set(Instructions(trace, classify(trace)).run.tolist())) == 3
    assert attribute(trace, classify(trace)).flops.tolist() == [FLOPS] * 3


def test_unknown_flops_have_their_reason(make: Make) -> None:
    padded = HloInstruction(opcode="custom-call", target="te_fused_attn_forward_ffi",
                            config="{attn_heads = 4 : i64, input_batch = 2 : i64, kv_max_seqlen = 64 : i64, "
                            "mask_type = 1 : i64, q_max_seqlen = 64 : i64, head_dim = 16 : i64}")  # fmt: skip
    rows = [row("fmha_fwd", 0, 15, 0), row("gemm", 20, 10, 1), row("gemm", 40, 20, -1)]
    trace = trace_of(make, rows, detail(padded), detail(None))
    found = attribute(trace, classify(trace))
    assert found.flops_known.tolist() == [False] * 3
    assert list(found.reasons) == [  # xprof #3070: a command buffer's kernels have no instruction
        "XLA's trace does not say which instruction ran: launched from a command buffer",
        "attention over packed or paged sequences: their lengths are tensors, which a trace does not hold",
        "XLA instruction without FLOPs or shapes in the trace",
    ]


def test_the_profilers_own_count_stands_first(make: Make) -> None:
    trace = trace_of(make, [row("gemm", 0, 10, 0)], detail(DOT, flops=5.0, bytes_accessed=7.0))
    assert event_costs(trace)[1].tolist() == [0]
    found = attribute(trace, classify(trace))
    assert (found.flops.tolist(), found.bytes.tolist()) == ([5], [7])


def test_the_roofline_names_the_instruction_and_its_shapes(make: Make) -> None:
    trace = trace_of(make, [row("gemm", 0, 10, 0)], detail(DOT))
    (group,) = roofline(trace, attribute(trace, classify(trace)))
    assert (group.op, group.shapes, group.flops) == ("dot.1", ((64, 32), (32, 8)), FLOPS)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_kernels_flops_are_those_of_whole_runs(make: Make, seed: int) -> None:
    chance = np.random.default_rng(seed)
    kernels = [(f"gemm_{i}", int(chance.integers(1, 4))) for i in range(chance.integers(1, 4))]
    runs, rows = int(chance.integers(1, 6)), []
    for _ in range(runs):
        for name, times in kernels:
            rows += [row(name, len(rows) * 100, int(chance.integers(1, 50)), 0) for _ in range(times)]
    trace = trace_of(make, rows, detail(DOT))
    least = min(times for _, times in kernels)
    assert attribute(trace, classify(trace)).flops.sum() == pytest.approx(FLOPS * runs * least)
