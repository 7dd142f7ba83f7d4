"""Operators that multiply no matrices: kinds for their rows. What is neither here nor in `operators` is *uncounted*.

A name missing here makes a total a lower bound, never a silent zero: the list may be short but not wrong.
"""

from __future__ import annotations

from typing import Any

_KINDS: dict[str, str] = {
    "norm": """native_layer_norm native_layer_norm_backward native_batch_norm native_batch_norm_backward
        _native_batch_norm_legit _native_batch_norm_legit_no_training _native_batch_norm_legit_functional
        cudnn_batch_norm cudnn_batch_norm_backward miopen_batch_norm miopen_batch_norm_backward _batch_norm_with_update
        _batch_norm_no_update batch_norm_backward _batch_norm_impl_index batch_norm_stats batch_norm_elemt
        batch_norm_gather_stats_with_counts batch_norm_backward_reduce batch_norm_backward_elemt
        native_group_norm native_group_norm_backward _fused_rms_norm _fused_rms_norm_backward rms_norm layer_norm
        group_norm batch_norm instance_norm _weight_norm_interface _weight_norm_interface_backward renorm norm
        linalg_vector_norm local_response_norm""",
    "softmax": """_softmax _softmax_backward_data _log_softmax _log_softmax_backward_data _safe_softmax softmax
        log_softmax _masked_softmax _masked_softmax_backward logsumexp _logcumsumexp logcumsumexp nll_loss_forward
        nll_loss_backward nll_loss2d_forward nll_loss2d_backward _ctc_loss _ctc_loss_backward
        _sparse_softmax _sparse_log_softmax""",
    "gather": """embedding embedding_renorm _embedding_bag _embedding_bag_forward_only
        _embedding_bag_per_sample_weights_backward index index_select _unsafe_index gather take masked_select
        masked_scatter_backward nonzero nonzero_static one_hot segment_reduce _segment_reduce_backward
        repeat_interleave _unsafe_masked_index""",
    "scatter": """embedding_dense_backward embedding_sparse_backward _embedding_bag_backward
        _embedding_bag_dense_backward index_put _unsafe_index_put _index_put_impl scatter scatter_add scatter_reduce
        index_add index_copy index_fill index_reduce put masked_scatter slice_scatter select_scatter diagonal_scatter
        as_strided_scatter scatter_value gather_backward index_select_backward value_selecting_reduction_backward
        _unsafe_masked_index_put_accumulate""",
    "pool": """max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool2d_with_indices_backward
        max_pool3d_with_indices max_pool3d_with_indices_backward avg_pool1d avg_pool2d avg_pool2d_backward avg_pool3d
        avg_pool3d_backward _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
        _adaptive_avg_pool3d_backward adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d
        adaptive_max_pool2d_backward adaptive_max_pool3d adaptive_max_pool3d_backward fractional_max_pool2d
        fractional_max_pool2d_backward fractional_max_pool3d max_unpool2d max_unpool3d mkldnn_max_pool2d
        mkldnn_max_pool3d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_nearest1d_backward
        upsample_nearest2d_backward upsample_nearest3d_backward _upsample_nearest_exact1d _upsample_nearest_exact2d
        _upsample_nearest_exact3d _upsample_nearest_exact2d_backward upsample_linear1d upsample_linear1d_backward
        upsample_bilinear2d upsample_bilinear2d_backward _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward
        upsample_bicubic2d upsample_bicubic2d_backward _upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward
        upsample_trilinear3d upsample_trilinear3d_backward grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d
        grid_sampler_3d_backward _grid_sampler_2d_cpu_fallback im2col col2im unfold_backward""",
    "elementwise": """_thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward _thnn_fused_lstm_cell_backward_impl
        _thnn_differentiable_lstm_cell_backward _thnn_fused_gru_cell _thnn_fused_gru_cell_backward
        _thnn_differentiable_gru_cell_backward dropout native_dropout native_dropout_backward alpha_dropout
        feature_dropout _fused_dropout _prelu_kernel _prelu_kernel_backward prelu rrelu_with_noise
        rrelu_with_noise_backward glu glu_backward glu_jvp
        cumsum cumprod cummax cummin diff sum mean amax amin max min prod any all argmax argmin std var
        var_mean std_mean median nanmedian mode quantile count_nonzero aminmax sum_to_size logaddexp
        gelu gelu_backward silu_backward hardswish_backward elu_backward softplus_backward
        threshold_backward tanh_backward sigmoid_backward leaky_relu_backward hardtanh_backward hardsigmoid_backward
        log_sigmoid_forward log_sigmoid_backward mish_backward logit_backward softshrink_backward
        hardshrink_backward binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits
        mse_loss mse_loss_backward huber_loss huber_loss_backward smooth_l1_loss smooth_l1_loss_backward l1_loss
        soft_margin_loss soft_margin_loss_backward multi_margin_loss multilabel_margin_loss_forward kl_div
        cross outer ger linalg_cross _linalg_check_errors histc bincount bucketize searchsorted sort topk kthvalue
        argsort msort unique _unique _unique2 unique_dim unique_consecutive isin tril triu tril_indices triu_indices
        trace roll flip rot90 fliplr flipud lerp addcmul addcdiv clamp where equal floor_divide fmod remainder
        allclose isclose
        masked_fill bernoulli multinomial normal uniform random exponential geometric cauchy log_normal poisson binomial
        _foreach_add _foreach_mul _foreach_div _foreach_copy _amp_foreach_non_finite_check_and_unscale
        quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize fake_quantize_per_tensor_affine
        fake_quantize_per_channel_affine _fake_quantize_learnable_per_tensor_affine choose_qparams_optimized
        _make_per_tensor_quantized_tensor _make_per_channel_quantized_tensor q_scale q_zero_point int_repr
        cosine_similarity pairwise_distance _assert_async assert_async
        _functional_assert_async _functional_sym_constrain_range sym_constrain_range _local_scalar_dense item
        is_nonzero _is_all_true _is_any_true
        _nested_tensor_size polar view_as_complex view_as_real _convert_weight_to_int4pack
        real imag _conj _neg_view resolve_conj resolve_neg""",
    "copy": """clone copy _to_copy to _copy_from cat stack hstack vstack dstack concat contiguous detach lift lift_fresh
        lift_fresh_copy alias new_empty new_zeros new_ones new_full new_empty_strided empty empty_like empty_strided
        empty_permuted zeros zeros_like ones ones_like full full_like fill zero rand rand_like randn randn_like randint
        randint_like randperm arange linspace logspace range eye scalar_tensor tensor from_file repeat tile
        constant_pad_nd pad reflection_pad1d reflection_pad1d_backward reflection_pad2d reflection_pad2d_backward
        reflection_pad3d reflection_pad3d_backward replication_pad1d replication_pad1d_backward replication_pad2d
        replication_pad2d_backward replication_pad3d replication_pad3d_backward _pad_circular _pad_enum channel_shuffle
        pixel_shuffle pixel_unshuffle native_channel_shuffle slice_backward select_backward diagonal_backward
        as_strided_backward expand_copy view_copy permute_copy transpose_copy t_copy squeeze_copy unsqueeze_copy
        select_copy slice_copy split_copy unbind_copy split_with_sizes_copy block_diag diag diag_embed diagonal_copy
        combinations cartesian_prod meshgrid set resize resize_as swap_axes is_same_size _chunk_cat
        _reshape_copy _reshape_alias _unsafe_view reshape view expand permute transpose t unsqueeze squeeze split chunk
        unbind select slice narrow unfold as_strided flatten unflatten movedim numpy_T split_with_sizes
        unsafe_split unsafe_split_with_sizes unsafe_chunk hann_window hamming_window vander
        _sparse_coo_tensor_with_dims_and_tensors _sparse_compressed_tensor_unsafe sparse_coo_tensor
        _sparse_coo_tensor_unsafe coalesce _coalesce to_dense to_sparse _to_dense _to_sparse _to_sparse_csr
        _to_sparse_csc _to_sparse_bsr _indices _values indices values crow_indices col_indices sparse_mask
        _nnz _coalesced sparse_dim dense_dim _nested_view_from_jagged _nested_get_values _nested_get_offsets
        _nested_from_padded_tensor _nested_view_from_buffer _jagged_to_padded_dense_forward
        _padded_dense_to_jagged_forward to_padded_tensor pin_memory _pin_memory is_pinned record_stream
        _fused_sdp_choice _has_compatible_shallow_copy_type _version retain_grad rename""",
}
NAMES = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_PACKAGES = (
    "aten",
    "prim",
    "prims",
    "profiler",
    "quantized",
    "_c10d_functional",
    "c10d",
    "c10d_functional",
    "inductor",
)


def passive_kind(func: Any) -> str | None:
    """Kind of an operator that multiplies no matrices; None where it is not known to be one."""
    package, _, name = func._schema.name.partition("::")
    if package not in _PACKAGES:
        return None
    if package not in ("aten", "prims"):
        return "copy" if package != "quantized" else None
    known = NAMES.get(name) or NAMES.get(name.rstrip("_"))
    if known:
        return known
    tags = {str(tag).rpartition(".")[2] for tag in func.tags}
    if tags & {"pointwise", "reduction"}:
        return "elementwise"
    return "copy" if _is_view(func) or "view_copy" in tags or not _has_tensors(func) else _base_kind(func)


def _is_view(func: Any) -> bool:
    """Whether the results are the arguments seen in another way."""
    return any(value.alias_info is not None and not value.alias_info.is_write for value in func._schema.returns)


def _has_tensors(func: Any) -> bool:
    return any("Tensor" in str(value.type) for value in func._schema.returns)


def _base_kind(func: Any) -> str | None:
    """In-place operators are what their plain form is."""
    import torch  # noqa: PLC0415

    name = func._schema.name.partition("::")[2]
    packet = getattr(torch.ops.aten, name.rstrip("_"), None) if name.endswith("_") else None
    if packet is None:
        return None
    tags = {str(tag).rpartition(".")[2] for over in packet.overloads() for tag in getattr(packet, over).tags}
    return "elementwise" if tags & {"pointwise", "reduction"} else None
