"""What names mean: a table of kernels as profilers print them."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from suanli.explain.classify import class_of_instruction, class_of_name, classify, containers, spelled
from suanli.explain.kernel_names import KERNELS, Rule
from suanli.nouns.attribution import WorkClass
from suanli.nouns.trace import CollectiveCall, OpDetail, Trace

MATMUL = (
    "ampere_sgemm_128x64_nn",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_execute_segment_k_off_kernel__5x_cublas",
    "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_execute_kernel__5x_cudnn",
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align4>(Params)",
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT320x224x64_MI16x16x1_SN",
    "volta_scudnn_128x64_relu_interior_nn_v1",
    "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
    "cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1",
    "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, int, int)",
    "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int, int)",
    "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int)",
    "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1",
    "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1",
    "_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weightINS_47GridwiseGemm_bk0mk1E",
    "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_40Block",
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2>(int)",  # a product with a vector
    "void gemmk1_kernel<float, 256, 5, false, false, false, false>(int)",
    "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(int)",
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>, true>(flash::Flash_fwd_params)",
    "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::Flash_bwd_kernel_traits<64>>()",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x64x64_4x1x1_kernel0_0",
    "attn_fwd",
    "kernel_unified_attention_2d",
    "void vllm::paged_attention_v2_kernel<unsigned short, 128>(float*)",
    "triton_tem_fused_addmm_12",
    "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu",
    "fused_moe_kernel",
    "void deep_gemm::fp8_gemm_kernel<4096u, 7168u>(float*)",
    "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float>(int)",
    "void RNN_blockPersist_fp_LSTM<float, float>(int)",
    "volta_gcgemm_32x32_nt",
)
COMPUTE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >()",
    "void cudnn::cnn::im2col4d_kernel<float, long>(cudnn::cnn::im2col4d_params, cudnnConvolutionStruct)",
    "void at::native::im2col_kernel<float>(long, float const*)",
    "Im2d2Col_v2",
    "void splitKreduce_kernel<float, float, float, float, true, false, false>(cublasSplitKParams<float>)",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::cublasSplitKParams<float>)",
    "void cutlass::Kernel<cutlass::reduction::kernel::ReduceSplitK<cutlass::MatrixShape<4, 128>>>()",
    "void cudnn::cnn::reduce_wgrad_nchw_helper<float, float>(void*)",
    "cask_cudnn::computeOffsetsKernel(cask_cudnn::ComputeOffsetsParams)",
    "cask_cudnn::computeWgradSplitKOffsetsKernel(cask_cudnn::ComputeSplitKOffsetsParams)",
    "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(cudnn::winograd_nonfused::WinogradDataParams)",
    "void cudnn::winograd::generateWinogradTilesKernel<0, float, float>(int)",
    "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)0>(int)",
    "void cudnn::ops::convertTensor_kernel<float, __half, float>(float)",
    "convert_dtype_kernel",
    "void fft2d_r2c_32x32<float, false, 0u, false>(float2*)",
    "SubTensorOpWithScalar1d",  # no _tensorop_ of CUTLASS
    "void fbgemm_gpu::permute_2D_lengths_kernel<int>(int)",  # no gemm but a library called fbgemm
    "void causal_conv1d_fwd_kernel<Causal_conv1d_fwd_kernel_traits<128, 4>>(ConvParamsBase)",
    "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)",
    "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16>(int)",
    "void flash::flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64>>(flash::Flash_bwd_params)",
    "void flash::flash_bwd_convert_dq_kernel<Flash_bwd_kernel_traits<64>>(flash::Flash_bwd_params)",
    "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<64>>(flash::Flash_fwd_params)",
    "create_flashinfer_kv_indices_triton",
    "triton_poi_fused__scaled_dot_product_flash_attention_cat_transpose_view_10",
    "triton_red_fused_addmm_native_layer_norm_16",
    "triton_poi_fused_all_gather_into_tensor_wait_tensor_3",
    "_finalize_matmul_scatter_bf16",
    "void gptq_marlin_repack_kernel<256, 4, true>(unsigned int const*)",
    "void vllm::moe::moe_align_block_size_kernel<int>(int*)",
    "void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16>(float*)",
    "batched_transpose_16x32_half",
    "void deep_ep::intranode::get_dispatch_layout<256, 32, 8>(long const*, int*)",
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(long)",
    "void cunn_SoftMaxForward<4, float, float, float>(float*)",
)
COMMUNICATION = (
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
    "ncclSymDevKernel_AllReduce_RSxLD_AGxST(ncclSymDevArgs)",
    "rcclDevKernel_AllGather_RING_LL(ncclDevKernelArgs)",
    "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)",
    "void deep_ep::internode::combine<true, __nv_bfloat16, 4>(int4*)",
    "void deep_ep::intranode::notify_dispatch<8>(int const*)",
    "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*)",
    "void dpsk::ep::internode::combine<1>(int4*)",
    "nvshmemi_transfer_barrier_kernel",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
    "void tensorrt_llm::kernels::oneShotAllReduceKernel<__nv_bfloat16, 8, true>(int)",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<0, __nv_bfloat16, 8>(int)",
    "one_shot_all_reduce_kernel",
    "two_shot_all_reduce_kernel",
    "void c10d::symmetric_memory::multimem_one_shot_all_reduce_kernel<c10::BFloat16>(int)",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16>(int)",
    "hccl::all_to_all",
    "ccl_allreduce_kernel",
)
COPY = (
    "Memcpy HtoD (Pageable -> Device)",
    "Memset (Device)",
    "hipMemcpyAsync",  # begins with hip, as collectives of no library do
    "__amd_rocclr_copyBuffer",
    "__amd_rocclr_fillBufferAligned",
    "MEMORY_COPY_DEVICE_TO_HOST",
    "MemcpyD2D",
)
PEER = ("Memcpy PtoP (Device -> Device)", "Memcpy Peer -> Peer", "[CUDA memcpy PtoP]", "hipMemcpyPeerAsync")
TABLE = [
    (name, kind)
    for names, kind in (
        (MATMUL, WorkClass.MATMUL), (COMPUTE, WorkClass.COMPUTE), (COMMUNICATION, WorkClass.COMMUNICATION),
        (COPY, WorkClass.COPY), (PEER, WorkClass.PEER_COPY),
    )
    for name in names
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), TABLE, ids=lambda each: str(each)[:60])
def test_names(name: str, expected: WorkClass) -> None:
    assert class_of_name(name) == expected


@pytest.mark.parametrize(
    ("name", "category", "expected"),
    [
        ("fusion.12", "convolution fusion", WorkClass.MATMUL),
        ("fusion.3", "output fusion", WorkClass.MATMUL),  # on TPU: a product with what follows it
        ("fusion.4", "loop fusion", WorkClass.COMPUTE),
        ("copy-done.1", "copy-done", WorkClass.COPY),
        ("all-reduce.7", "all-reduce", WorkClass.COMMUNICATION),
        ("all-gather-start.7", "all-gather-start", WorkClass.COMMUNICATION),
        ("collective-permute.2", "collective-permute", WorkClass.COMMUNICATION),
        ("copy.3", "data formatting", WorkClass.COMPUTE),
        ("custom-call.1", "custom-call", WorkClass.COMPUTE),
        ("flash_attention.3", "custom-call", WorkClass.MATMUL),
        ("dot.5", None, WorkClass.MATMUL),
        ("all-reduce.5", None, WorkClass.COMMUNICATION),
        ("gemm_fusion_dot_3", None, WorkClass.MATMUL),
        ("loop_add_fusion", None, WorkClass.COMPUTE),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", None, WorkClass.COMMUNICATION),
        ("infeed.1", "infeed", WorkClass.COPY),
    ],
)
def test_instructions_of_xla(name: str, category: str | None, expected: WorkClass) -> None:
    assert class_of_instruction(name, OpDetail(hlo={"category": category})) == expected


def test_what_the_file_says_stands_above_the_name(make: Callable[..., Trace]) -> None:
    trace = make(
        [
            {"start_ns": 0, "end_ns": 9, "name": "some_kernel", "collective": 0},
            {"start_ns": 1, "end_ns": 9, "name": "some_kernel"},
            {"start_ns": 2, "end_ns": 9, "name": "Memcpy DtoD (Device -> Device)", "kind": "copy", "collective": 0},
        ],
        collectives=(CollectiveCall(name="allreduce"),),
    )
    assert classify(trace).tolist() == [WorkClass.COMMUNICATION, WorkClass.COMPUTE, WorkClass.COMMUNICATION]


def test_copies_and_sets_are_copies_whatever_they_are_called(make: Callable[..., Trace]) -> None:
    trace = make(
        [
            {"start_ns": 0, "end_ns": 9, "name": "gemm of a copy", "kind": "copy", "copy": 0},
            {"start_ns": 1, "end_ns": 9, "name": "gemm of a copy", "kind": "copy", "copy": 1},
            {"start_ns": 2, "end_ns": 9, "name": "Memset (Device)", "kind": "set"},
            {"start_ns": 3, "end_ns": 9, "name": "Memcpy PtoP (Device -> Device)", "kind": "copy"},
        ],
        copy_kinds=("HtoD", "PtoP"),
    )
    expected = [WorkClass.COPY, WorkClass.PEER_COPY, WorkClass.COPY, WorkClass.PEER_COPY]
    assert classify(trace).tolist() == expected


def test_a_while_of_xla_only_holds_other_work(make: Callable[..., Trace]) -> None:
    trace = make(
        [{"start_ns": 0, "end_ns": 9, "name": "while.1", "detail": 0}, {"start_ns": 1, "end_ns": 2, "name": "x"}],
        details=(OpDetail(hlo={"category": "while"}),),
    )
    assert containers(trace).tolist() == [True, False]


def test_an_empty_trace_has_no_classes(make: Callable[..., Trace]) -> None:
    assert len(classify(make())) == 0
    assert containers(make()).dtype == np.bool_


# Names that a rule decides which no name of the lists above meets first.
MORE = [
    ("dma_request", WorkClass.COPY),  # MTIA
    ("hccl::broadcast", WorkClass.COMMUNICATION),
    ("CopyHostToDevice", WorkClass.COPY),
    ("void msccl::kernel<float>(int)", WorkClass.COMMUNICATION),
    ("void aiter::allgather_lamport<8>(int)", WorkClass.COMMUNICATION),
    ("allreduce_prototype_twoshot", WorkClass.COMMUNICATION),
    ("void all_reduce_two_shot_kernel<8>(int)", WorkClass.COMMUNICATION),
    ("userbuffers_fp16_sum_inplace_gpu_rr", WorkClass.COMMUNICATION),
    ("void quickreduce::allreduce_kernel<float>(int)", WorkClass.COMMUNICATION),
    ("void mylib::all_gather_kernel<float>(int)", WorkClass.COMMUNICATION),
    ("xform_filter_F2x3", WorkClass.COMPUTE),
    ("_bwd_preprocess", WorkClass.COMPUTE),
    ("get_moe_gemm_starts_kernel", WorkClass.COMPUTE),
    ("hipblaslt_ext_kernel", WorkClass.MATMUL),
    ("naive_conv_nonpacked_fwd_nchw", WorkClass.MATMUL),
    ("void BatchPrefillWithRaggedKVCacheKernel<float>(int)", WorkClass.MATMUL),
    ("_fwd_kernel", WorkClass.MATMUL),
    ("_bwd_kernel_dk_dv", WorkClass.MATMUL),
    ("void marlin::Marlin<256, 1, 8, 8, 4, 8>(int4 const*)", WorkClass.MATMUL),
    ("gcnAsmConv1x1U", WorkClass.MATMUL),
    ("MME_conv", WorkClass.MATMUL),
]


@pytest.mark.parametrize(("name", "expected"), MORE)
def test_rarer_names(name: str, expected: WorkClass) -> None:
    assert class_of_name(name) == expected


@pytest.mark.parametrize("rule", KERNELS, ids=lambda rule: rule[0][:50])
def test_every_rule_decides_a_name_of_the_tables(rule: Rule) -> None:
    decided = [
        name
        for name, _ in (*TABLE, *MORE)
        if next((each for each in KERNELS if re.search(each[0], spelled(name))), None) == rule
    ]
    assert decided, f"no row for {rule[0]}"


@pytest.mark.parametrize(
    ("mangled", "expected"),
    [
        ("_ZN7deep_ep9intranode8dispatchILi8ELi768EEEvP4int4", "deep_ep::intranode::dispatch"),
        ("_ZN2ck16tensor_operation6device4gemmIfEEvv", "ck::tensor_operation::device::gemm"),
        ("not mangled 12", "not mangled 12"),
        ("_Z", "_Z"),
    ],
)
def test_mangled_names_are_spelled_out(mangled: str, expected: str) -> None:
    assert spelled(mangled).startswith(expected)


def test_a_mangled_dispatch_is_communication_and_its_layout_is_not() -> None:
    assert class_of_name("_ZN7deep_ep9intranode8dispatchILi8ELi768EEEvP4int4") == WorkClass.COMMUNICATION
    assert class_of_name("_ZN7deep_ep6layout19get_dispatch_layoutILi256EEEvPKl") == WorkClass.COMPUTE
