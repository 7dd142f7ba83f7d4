"""What names of device work mean: patterns in order, the first that fits decides. Names as profilers print them.

Helpers of a product that multiply nothing themselves (im2col, transforms of Winograd and FFT, reductions of split-K,
offset tables, layouts) are other compute: only what peak FLOP/s are for stands against the peak.
"""

from __future__ import annotations

from suanli.nouns.attribution import WorkClass

MATMUL, COMPUTE, COMMUNICATION = WorkClass.MATMUL, WorkClass.COMPUTE, WorkClass.COMMUNICATION
PEER_COPY, COPY = WorkClass.PEER_COPY, WorkClass.COPY
Rule = tuple[str, WorkClass]

COPIES: tuple[Rule, ...] = (
    (r"(?i)memcpy *p(to|2)p|peer *(->|to) *peer|memcpypeer|\bp2p\b", PEER_COPY),
    (r"(?i)^(cuda|hip|cu)?mem(cpy|set)", COPY),  # hipMemcpy… is a copy, whatever else begins with hip
    (r"^__amd_rocclr_(copy|fill|batchMemOp)", COPY),
    (r"^MEMORY_COPY", COPY),  # ROCm 7: MEMORY_COPY_HOST_TO_DEVICE …
    (r"(?i)^copy(host|device)to(host|device)", COPY),
    (r"^dma_request$", COPY),  # MTIA
)
COLLECTIVES: tuple[Rule, ...] = (
    # Inductor names a fused kernel after the ops around it, collectives among them.
    (r"^triton_(poi|red|per|for|unk|mtm)_", COMPUTE),
    (r"get_dispatch_layout", COMPUTE),  # DeepEP counts tokens before it sends any
    (r"(?i)^(void )?(nccl|rccl|msccl)|\b(nccl|rccl)(Dev)?Kernel", COMMUNICATION),
    (r"(deep_ep|dpsk::ep)::.*(dispatch|combine|notify|barrier)", COMMUNICATION),
    (r"(?i)nvshmem|rocshmem", COMMUNICATION),
    (r"cross_device_reduce|reduce_scatter_cross_device|allgather_lamport", COMMUNICATION),
    (r"(?i)(one|two|1|2)_?-?shot\w*?_?(all_?reduce|reduce_?scatter|all_?gather)", COMMUNICATION),
    (r"(?i)(all_?reduce|reduce_?scatter|all_?gather)\w*?_?(one|two)_?-?shot", COMMUNICATION),
    (r"(?i)multimem_|quickreduce|quick_reduce|userbuffers_fp|allreduce_fusion_kernel", COMMUNICATION),
    (r"(?i)^(void )?(\w+::)*(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv)\w*", COMMUNICATION),
    (r"^hccl(::|_)|^Hcom|^hcom_", COMMUNICATION),  # MTIA and HPU; Ascend
    (r"(?i)oneccl|^(void )?ccl::|ccl_(allreduce|allgather|reduce|alltoall|broadcast|kernel)", COMMUNICATION),
)
LOOK_ALIKES: tuple[Rule, ...] = (
    (r"im2col|col2im|Im2Col|Im2d2Col", COMPUTE),
    (r"(?i)split_?k_?reduce|ReduceSplitK|reduce_?split_?k|reduce_wgrad|split_?k_?combine|splitkv_combine", COMPUTE),
    (r"(?i)compute\w*Offsets|scalePackedTensor|generateWinogradTiles", COMPUTE),
    (r"winograd\w*(Forward|Wgrad|Bwd|Backward)(Data|Filter|Output|Delta)", COMPUTE),
    (r"(?i)winograd.*x?form_|xform_(filter|data|out)", COMPUTE),
    (r"(?i)nchw_?to_?nhwc|nhwc_?to_?nchw|flip_filter|transpose_readWrite|CNHW", COMPUTE),
    (r"(?i)causal_?conv1d|conv1d_update|conv1d_fwd_kernel|short_?conv", COMPUTE),  # four taps a channel: memory-bound
    (r"(?i)flash_?(attn)?_?bwd_(dot|convert|preprocess|postprocess|clear)|FlashAttnBwd(Pre|Post)process", COMPUTE),
    (
        r"(?i)FlashAttnFwdCombine|FmhaBwdOGradDot|FmhaBwdConvertQGrad|compute_dot_do_o|^_?(attn_)?bwd_preprocess",
        COMPUTE,
    ),
    (
        r"(?i)reshape_and_cache|cache_flash|store_?kv|kv_indices|merge_attn_states|attention_softcap|copy_blocks",
        COMPUTE,
    ),
    (r"(?i)_finalize_matmul|matmul_scatter|repack|moe_align|moe_sum|(per_token|dynamic|scaled)\w*_quant", COMPUTE),
    (r"(?i)gemm_?(offsets|args|starts|problem_sizes)|get_\w*gemm_starts|epilogue::impl", COMPUTE),
)
PRODUCTS: tuple[Rule, ...] = (
    (r"at::native::.*(conv_depthwise|slow_conv|naive_conv|conv_transpose)", MATMUL),
    (r"^(void )?at::native::", COMPUTE),
    (r"^triton_(tem|mm|bmm|addmm|baddbmm|convolution|flex_attention)", MATMUL),
    (r"(?i)(?<!fb)gemm|gemv|Cijk_|matmul|bmm_kernel|_mm_kernel|nvjet|wgrad|dgrad|fprop", MATMUL),
    (r"(?i)hipblaslt|xmma|wmma|_tensorop_|xdlops|_xdl_|mfma", MATMUL),
    (r"_s?cudnn_\d|scudnn|cudnn_\w*(cgemm|winograd)|volta_\w*cudnn|(?i:winograd)", MATMUL),
    (r"(?i)(?<![a-z])((de|grouped_|depthwise_?|implicit_|explicit_|naive_)?conv)(olution|olve|\d?d|_|fwd|bwd)", MATMUL),
    (r"(?i)miopenSp3AsmConv|SubSample.*Conv|gcnAsmConv|DepthwiseConv", MATMUL),
    (r"(?i)fmha|flash_?(attn_?)?(fwd|bwd)|flash::flash|FlashAttn|flash_attention|sdpa|scaled_dot_product", MATMUL),
    (r"(?i)^_?attn_(fwd|bwd)|mha_(fwd|bwd|varlen)|efficient_attention|attention_kernel_b|unified_attention", MATMUL),
    (r"(?i)(paged|prefill|decode|multi_?query|flex)_?\w*attention|PagedAttention|AttentionKernel", MATMUL),
    (r"(?i)(Batch|Single)(Prefill|Decode|MLA)\w*Kernel|flash_?mla|mla_(fwd|decode|prefill|a8w8|pfl|dec)", MATMUL),
    (r"^_fwd_kernel(_stage\d)?$|^_fwd_grouped_kernel_stage1|^_bwd_kernel(_d[kqv]\w*)?$", MATMUL),
    (r"(?i)fused_moe_kernel|moe_stage[12]|marlin|machete|grouped_mm|scaled_mm|_ogs_", MATMUL),
    (r"(LSTM|GRU|RNN)\w*[Pp]ersist|[Pp]ersist\w*(LSTM|GRU|RNN)", MATMUL),  # cuDNN multiplies inside the loop
    (r"^MME", MATMUL),  # Gaudi's matrix engine
)
KERNELS: tuple[Rule, ...] = (*COPIES, *COLLECTIVES, *LOOK_ALIKES, *PRODUCTS)

# Categories of XLA on TPU (hlo_category), and names of instructions where no category is given.
HLO: tuple[Rule, ...] = (
    (r"all-?reduce|all-?gather|all-?to-?all|reduce-?scatter|collective|^(send|recv)|megascale", COMMUNICATION),
    (r"^(async-)?copy(-start|-done)?\b|infeed|outfeed|host (send|recv|transfer)|^memcpy", COPY),
    (r"convolution|\bdot\b|_dot|output fusion|gemm|matmul|attention|cudnn-?conv", MATMUL),
)
CONTAINERS = r"(?i)^(while|conditional|call)(\.\d+)?$"  # control flow of XLA: spans that hold the spans of their bodies
