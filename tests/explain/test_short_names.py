"""Names of kernels as they are shown."""

from __future__ import annotations

import pytest

from suanli.explain.short_names import NAME, short


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("sm90_gemm", "sm90_gemm"),
        ("void at::native::(anonymous namespace)::cat_kernel<float, 4>(int, float*)", "cat_kernel"),
        ("void at::native::index_kernel<128, 4, at::native::direct_copy_kernel_cuda(at::T&)::{lambda()#1}>(int)",
         "index_kernel: direct_copy_kernel_cuda"),
        ("void vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3> >(int)",
         "vectorized_elementwise_kernel: CUDAFunc…"),
        ("void ck_tile::kentry<ck_tile::gfx950_t, 2, ck_tile::FmhaFwdKernel<ck_tile::P<float>>>(int)", "FmhaFwdKernel"),
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int>>(Params)", "GemmUniversal"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x1>(int)",
         "cutlass_80_wmma_tensorop_bf16_s161616ge…"),
        ("void Kernel<float>(int)", "Kernel"),
        ("x" * 60, "x" * 39 + "…"),
        ("<unknown>", "<unknown>"),
    ],
)  # fmt: skip
def test_short_names_say_what_is_applied(name: str, shown: str) -> None:
    assert short(name) == shown


def test_no_name_is_longer_than_its_column_or_empty() -> None:
    for name in ("void f<" + "x" * 99 + ">(int)", "::", "a::", "x" * 99, "<>", "(int)"):
        assert 0 < len(short(name)) <= NAME
