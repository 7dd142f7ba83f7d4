"""Types as printed, and the peak a product stands against."""

from __future__ import annotations

import pytest

from suanli.explain.ops.dtypes import bits_of, kernel_key, peak_key
from suanli.nouns.hardware import DTYPES

TF32 = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1>(Params)"
FFMA = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4"
OPERANDS = [
    (("c10::BFloat16", "c10::BFloat16"), "any", "bf16"),
    (("c10::Half", "c10::Half"), "any", "fp16"),
    (("float", "float"), "ampere_sgemm_128x64_nn", "fp32"),
    (("float", "float"), FFMA, "fp32"),
    (("float", "float"), "volta_sgemm_64x64_nt", "fp32"),
    (("float", "float"), TF32, "tf32"),
    (("float", "float"), "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n", "tf32"),
    (("double", "double"), "any", "fp64"),
    (("c10::Float8_e4m3fn", "c10::Float8_e5m2"), "any", "fp8"),
    (("c10::Float8_e4m3fnuz", "c10::Float8_e4m3fnuz"), "any", "fp8"),
    (("c10::Float4_e2m1fn_x2", "c10::Float4_e2m1fn_x2"), "any", "fp4"),
    (("signed char", "signed char"), "any", "int8"),
    (("c10::BFloat16", "signed char"), "any", "bf16"),  # weights of 8 bits are widened
    (("c10::complex<float>", "c10::complex<float>"), "any", "fp32"),
    (("bf16", "bf16"), "loop_fusion", "bf16"),
    (("", ""), "some_kernel", None),
    ((), "some_kernel", None),
    (("c10::BFloat16", "QUInt4x2"), "some_kernel", None),  # one operand's type is not known
]


@pytest.mark.parametrize(("operands", "kernel", "key"), OPERANDS)
def test_the_peak_of_a_product(operands: tuple[str, ...], kernel: str, key: str | None) -> None:
    assert peak_key(operands, kernel) == key
    assert key is None or key in DTYPES


KERNELS = [
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64", "bf16"),
    ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32", "fp16"),
    ("Cijk_Alik_Bljk_SB_MT64x64x16", "fp32"),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64", "bf16"),
    ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n", "fp16"),
    ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_stages_64x4_nn", "fp16"),
    ("volta_h884gemm_64x64_nn", "fp16"),
    ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "bf16"),
    ("nvjet_hsh_192x192_64x4", "fp16"),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", "fp4"),
    ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "fp32"),
    (TF32, "tf32"),
    (FFMA, "fp32"),
    ("ampere_dgemm_64x64", "fp64"),
    ("sm80_xmma_gemm_i8i8_i8i32_f32", "int8"),
    ("attn_fwd", None),
]


@pytest.mark.parametrize(("kernel", "key"), KERNELS)
def test_what_a_kernels_name_says(kernel: str, key: str | None) -> None:
    assert kernel_key(kernel) == key


@pytest.mark.parametrize(
    ("printed", "bits"),
    [
        ("float", 32),
        ("double", 64),
        ("c10::BFloat16", 16),
        ("bool", 8),
        ("long int", 64),
        ("f8e4m3fn", 8),
        ("Scalar", None),
    ],
)
def test_bits(printed: str, bits: int | None) -> None:
    assert bits_of(printed) == bits
