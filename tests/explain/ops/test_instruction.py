"""FLOPs and bytes of instructions of XLA, each with its arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.explain.ops import attention
from suanli.explain.ops.instruction import instruction_bytes, instruction_flops
from suanli.nouns.hlo import HloInstruction

A, B, C = ("bf16", (64, 32)), ("bf16", (32, 8)), ("bf16", (64, 8))
GEMM = '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}'
IMAGE, KERNEL, OUT = ("f16", (2, 4, 10, 10)), ("f16", (6, 4, 3, 3)), ("f16", (2, 6, 8, 8))
FORWARD = 2 * (2 * 6 * 8 * 8) * (4 * 3 * 3)  # every output sums over 4 channels of 3 × 3
Q = ("bf16", (2, 64, 4, 16))  # [B, T, H, d]
FMHA = '{{"cudnn_fmha_backend_config":{{"intermediate_tensor_shape":{{"element_type":"BF16","dimensions":["2","4","64","64"]}},"mask_type":"{}"{}}}}}'  # noqa: E501  one line as XLA writes it
TE = (
    "{{attn_heads = 4 : i64, input_batch = 2 : i64, kv_max_seqlen = 64 : i64, mask_type = {} : i64, "
    "q_max_seqlen = 64 : i64, {} = 16 : i64, window_size_left = {} : i64, window_size_right = -1 : i64}}"
)
ALL, LEFT = 2 * 64 * 64, 2 * 64 * 65 // 2  # pairs of positions in two samples


def made(opcode: str, *operands: Any, out: Any = C, **others: Any) -> HloInstruction:
    return HloInstruction(opcode=opcode, operands=operands, results=(out,), **others)


def call(target: str, *operands: Any, out: Any = C, **others: Any) -> HloInstruction:
    return made("custom-call", *operands, out=out, target=target, **others)


DOT = made("dot", A, B, contracted=(1,))
PRODUCTS = [
    (DOT, 2 * 64 * 32 * 8, "linear_flops", ("bf16", "bf16")),
    (made("dot", ("f32", (4, 64, 32)), ("f32", (4, 32, 8)), out=("f32", (4, 64, 8)), contracted=(2,)),
     4 * 2 * 64 * 32 * 8, "linear_flops", ("f32", "f32")),
    (made("scaled-dot", ("f8e4m3fn", (64, 32)), ("f8e4m3fn", (32, 8)), contracted=(1,)),
     2 * 64 * 32 * 8, "linear_flops", ("f8e4m3fn", "f8e4m3fn")),
    (call("__cublas$gemm", A, B, config=GEMM), 2 * 64 * 32 * 8, "linear_flops", ("bf16", "bf16")),
    (call("__cublas$lt$matmul$f8", A, B, config=GEMM), 2 * 64 * 32 * 8, "linear_flops", ("bf16", "bf16")),
    (made("fusion", A, B, inside=(DOT, DOT)), 2 * 2 * 64 * 32 * 8, "linear_flops", ("bf16", "bf16")),
    (call("__cudnn$convForward", IMAGE, KERNEL, out=OUT, kernel_output=0), FORWARD, "conv_flops", ("f16", "f16")),
    (call("__cudnn$convBiasActivationForward", IMAGE, KERNEL, out=OUT, kernel_output=0), FORWARD, "conv_flops",
     ("f16", "f16")),
    (call("__cudnn$convBackwardInput", OUT, KERNEL, out=IMAGE, kernel_output=0), FORWARD, "conv_backward_flops",
     ("f16", "f16")),
    (call("__cudnn$convBackwardFilter", IMAGE, OUT, out=KERNEL, kernel_output=0), FORWARD, "conv_backward_flops",
     ("f16", "f16")),
    (made("convolution", IMAGE, KERNEL, out=OUT, kernel_output=0), FORWARD, "conv_flops", ("f16", "f16")),
    # the input's gradient at stride 2 as XLA writes it: 4 × 4 outputs' gradients, zeros between, 9 × 9 come out
    (made("convolution", ("f16", (2, 6, 4, 4)), ("f16", (6, 4, 3, 3)), out=("f16", (2, 4, 9, 9)), kernel_output=1,
          spread=1), 2 * (2 * 4 * 4) * (6 * 4 * 3 * 3), "conv_flops", ("f16", "f16")),
    (call("__cudnn$fmhaSoftmax", Q, Q, Q, config=FMHA.format("NO_MASK", "")), 4 * ALL * 4 * 16, "attention_flops",
     ("bf16", "bf16")),
    (call("__cudnn$fmhaSoftmax", Q, Q, Q, config=FMHA.format("CAUSAL", "")), 4 * LEFT * 4 * 16, "attention_flops",
     ("bf16", "bf16")),
    (call("__cudnn$fmhaSoftmaxBackward", Q, Q, Q, config=FMHA.format("CAUSAL", "")), 10 * LEFT * 4 * 16,
     "attention_backward_flops", ("bf16", "bf16")),
    (call("te_fused_attn_forward_ffi", Q, Q, Q, config=TE.format(2, "qk_head_dim", -1)), 4 * LEFT * 4 * 16,
     "attention_flops", ("bf16", "bf16")),
    (call("te_fused_attn_backward", Q, Q, Q, config=TE.format(0, "head_dim", -1)), 10 * ALL * 4 * 16,
     "attention_backward_flops", ("bf16", "bf16")),
]  # fmt: skip


@pytest.mark.parametrize(("instruction", "flops", "formula", "operands"), PRODUCTS)
def test_products(instruction: HloInstruction, flops: int, formula: str, operands: tuple[str, ...]) -> None:
    found = instruction_flops(instruction)
    assert found is not None
    assert (found.flops, found.formula, found.operands) == (flops, formula, operands)


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        (call("__cudnn$fmhaSoftmax", Q, Q, Q, config=FMHA.format("PADDING", "")), attention.LENGTHS),
        (call("__cudnn$fmhaSoftmax", Q, Q, Q, config=FMHA.format("CAUSAL", ',"sliding_window_length":16')),
         attention.WINDOWED),
        (call("te_fused_attn_forward_ffi", Q, config=TE.format(3, "head_dim", -1)), attention.LENGTHS),
        (call("te_fused_attn_forward_ffi", Q, config=TE.format(2, "head_dim", 128)), attention.WINDOWED),
        (made("fusion", A, B, inside=(DOT, call("te_fused_attn_forward", Q, config=TE.format(1, "head_dim", -1)))),
         attention.LENGTHS),
    ],
)  # fmt: skip
def test_lengths_that_are_tensors_make_flops_unknown(instruction: HloInstruction, reason: str) -> None:
    found = instruction_flops(instruction)
    assert found is not None
    assert (found.flops, found.reason) == (None, reason)


@pytest.mark.parametrize(
    "instruction",
    [
        made("add", A, A),
        made("fusion", A, B),
        call("topk", A, B),
        call("__cublas$gemm", A, B),  # nothing said of what is summed over
        call("__cublas$gemm", A, config=GEMM),
        made("dot", A, B, contracted=(5,)),
        made("convolution", IMAGE, KERNEL, kernel_output=7),
        made("convolution", IMAGE, kernel_output=0),
        call("__cudnn$convForward", IMAGE, KERNEL),
        call("__cudnn$fmhaSoftmax", Q, Q, Q, config="{}"),
        call("__cudnn$fmhaSoftmax", Q, config=FMHA.format("CAUSAL", "")),
        call("te_fused_attn_forward_ffi", Q, config="{attn_heads = 4 : i64}"),
    ],
)
def test_what_is_no_product_or_unclear(instruction: HloInstruction) -> None:
    assert instruction_flops(instruction) is None


SIZES = [
    (made("add", A, A, out=A), 3 * 64 * 32 * 2),
    (made("fusion", A, ("f32", ()), ("s4", (8,)), out=C, inside=()), None),  # s4: bytes of its elements not known
    (DOT, (64 * 32 + 32 * 8 + 64 * 8) * 2),
    (made("fusion", A, out=C, parts=True), None),  # parts of A, how much is not said
    (made("fusion", ("bf16", (99, 64, 32)), B, out=C, parts=True, inside=(DOT,)), (64 * 32 + 32 * 8 + 64 * 8) * 2),
    (made("while", A, out=A), None),
    (call("__cublas$gemm", A, B, config=GEMM), (64 * 32 + 32 * 8 + 64 * 8) * 2),
]


@pytest.mark.parametrize(("instruction", "size"), SIZES)
def test_least_bytes(instruction: HloInstruction, size: int | None) -> None:
    assert instruction_bytes(instruction) == size


def test_a_librarys_scratch_is_not_counted() -> None:
    both = HloInstruction(opcode="custom-call", target="__cublas$gemm", operands=(A, B), results=(C, ("s8", (4096,))))
    assert instruction_bytes(both) == (64 * 32 + 32 * 8 + 64 * 8) * 2
