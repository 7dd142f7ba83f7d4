"""Types as profilers print them -> bytes of one number, and the key of a device's peak."""

from __future__ import annotations

import re

# as printed by torch (`Input type`) and XLA, bits of one number, peak that a product of such numbers runs at
_TYPES: tuple[tuple[str, int, str], ...] = (
    ("c10::BFloat16", 16, "bf16"), ("bf16", 16, "bf16"), ("bfloat16", 16, "bf16"),
    ("c10::Half", 16, "fp16"), ("f16", 16, "fp16"), ("half", 16, "fp16"),
    ("float", 32, "fp32"), ("f32", 32, "fp32"), ("float32", 32, "fp32"),
    ("double", 64, "fp64"), ("f64", 64, "fp64"), ("float64", 64, "fp64"),
    ("c10::complex<float>", 64, "fp32"), ("c64", 64, "fp32"),
    ("c10::complex<double>", 128, "fp64"), ("c128", 128, "fp64"),
    ("signed char", 8, "int8"), ("c10::qint8", 8, "int8"), ("s8", 8, "int8"),
    ("c10::Float8_e4m3fn", 8, "fp8"), ("c10::Float8_e4m3fnuz", 8, "fp8"), ("f8e4m3fn", 8, "fp8"),
    ("c10::Float8_e5m2", 8, "fp8"), ("c10::Float8_e5m2fnuz", 8, "fp8"), ("f8e5m2", 8, "fp8"),
    ("f8e4m3fnuz", 8, "fp8"), ("f8e5m2fnuz", 8, "fp8"),
    ("c10::Float4_e2m1fn_x2", 8, "fp4"), ("f4e2m1fn", 4, "fp4"),
    ("c10::Float8_e8m0fnu", 8, ""), ("unsigned char", 8, ""), ("bool", 8, ""), ("pred", 8, ""), ("u8", 8, ""),
    ("short", 16, ""), ("int", 32, ""), ("s32", 32, ""), ("u32", 32, ""), ("long", 64, ""), ("long int", 64, ""),
    ("s64", 64, ""), ("int64", 64, ""), ("int32", 32, ""), ("c10::complex<c10::Half>", 32, ""),
)  # fmt: skip
_BITS = {name: bits for name, bits, _ in _TYPES}
_PEAKS = {name: peak for name, _, peak in _TYPES if peak}
# Two numbers in one element: dims count elements.
PACKED = {"c10::Float4_e2m1fn_x2": 2}
_WIDEST_FIRST = ("fp64", "fp32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8", "int4")

# Tensor cores on fp32 operands: cutlass and cuBLAS name the instruction or the type, Tensile the math type.
_TF32 = re.compile(r"tf32|xf32|tensorop_s1688gemm|_s1688(?!bf16|f16)[a-z_]*gemm|tensorop_s1684|_S_MX_|3xtf32", re.I)
# What a kernel's own name says of its operands, first match counts.
_BY_KERNEL: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), dtype)
    for pattern, dtype in (
        (r"mxfp4|nvfp4|e2m1", "fp4"),
        (r"e4m3|e5m2|fp8|Float8|_F8[A-Z]*_|f8f8|__hip_fp8|^nvjet_q", "fp8"),
        (r"tf32|s1688gemm|tensorop_s1688", "tf32"),
        (r"bf16|BFloat16|bfloat16|_BBS_|_BSS_|nv_bfloat|DF16b|^nvjet_t", "bf16"),
        (r"(?<!b)f16f16|hgemm|h16816|h1688|h884|s884|_HHS_|_HSS_|_HB_|__half|c10::Half|^nvjet_h|_fp16|half_t", "fp16"),
        (r"i8i8|imma|s8gemm|_I8[A-Z]*_|int8", "int8"),
        (r"dgemm|d884|f64f64|_DB_|<double", "fp64"),
        (r"sgemm|f32f32|_SB_|<float|scudnn|ffma|winograd", "fp32"),
    )
)


def bits_of(printed: str) -> int | None:
    """Bits of one element; None for a type that is not known."""
    return _BITS.get(printed)


def peak_key(operands: tuple[str, ...], kernel: str) -> str | None:
    """The peak a product runs at: that of its widest operand; tf32 where the kernel's name says so.

    Mixed products (bf16 by int8 weights) are computed in the wider type. None where no operand's type is known.
    """
    keys = {_PEAKS[printed] for printed in operands if printed in _PEAKS}
    if not keys or len(keys) != len({_PEAKS.get(printed, printed) for printed in operands if printed}):
        return kernel_key(kernel)
    widest = next(key for key in _WIDEST_FIRST if key in keys)
    return "tf32" if widest == "fp32" and _TF32.search(kernel) else widest


def kernel_key(kernel: str) -> str | None:
    """The peak that a kernel's name speaks of; None where it does not."""
    return next((dtype for pattern, dtype in _BY_KERNEL if pattern.search(kernel)), None)
