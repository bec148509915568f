#include "graphs/captured/operator_table.h"

#include <algorithm>
#include <array>

#include "graphs/captured/operators/operators.h"

namespace tbdsim {
namespace {

// Operators with a function that lowers them and the operations of an element, where the function takes them
// from here: one for arithmetic and, as an estimate, 8 for a transcendental function.
struct Row {
  void (*lower)(OperatorSite&);
  std::int64_t flops;
  std::string_view names;  // apart by spaces
};

constexpr auto kRows = std::to_array<Row>({
    {lower_convolution, 0, "convolution convolution_overrideable"},
    {lower_convolution_backward, 0, "convolution_backward convolution_backward_overrideable"},
    {lower_mm, 0, "mm _scaled_mm _int_mm"},
    {lower_bmm, 0, "bmm"},
    {lower_addmm, 0, "addmm"},
    {lower_baddbmm, 0, "baddbmm"},
    {lower_grouped_mm, 0, "_grouped_mm _scaled_grouped_mm"},
    {lower_dot, 0, "dot mv vdot addmv ger addr"},
    {lower_attention, 0, "tbdsim.scaled_dot_product_attention"},
    {lower_attention_backward, 0, "tbdsim.scaled_dot_product_attention_backward"},
    {lower_batch_norm, 0, "native_batch_norm _native_batch_norm_legit cudnn_batch_norm"},
    {lower_batch_norm_backward, 0, "native_batch_norm_backward"},
    {lower_layer_norm, 0, "native_layer_norm _fused_rms_norm"},
    {lower_layer_norm_backward, 0, "native_layer_norm_backward _fused_rms_norm_backward"},
    {lower_recurrent, 0, "_cudnn_rnn"},
    {lower_recurrent_backward, 0, "_cudnn_rnn_backward"},
    {lower_group_norm, 0, "native_group_norm"},
    {lower_group_norm_backward, 0, "native_group_norm_backward"},
    {lower_pool, 0,
     "max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d "
     "_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d"},
    {lower_max_pool_backward, 0,
     "max_pool2d_with_indices_backward max_pool3d_with_indices_backward "
     "adaptive_max_pool2d_backward adaptive_max_pool3d_backward"},
    {lower_mean_pool_backward, 0,
     "avg_pool2d_backward avg_pool3d_backward _adaptive_avg_pool2d_backward "
     "_adaptive_avg_pool3d_backward"},
    {lower_resampling, 2,
     "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact2d "
     "im2col col2im max_unpool2d max_unpool3d"},
    {lower_resampling, 6, "upsample_linear1d affine_grid_generator fractional_max_pool2d"},
    {lower_resampling, 10, "upsample_bilinear2d _upsample_bilinear2d_aa grid_sampler_2d"},
    {lower_resampling, 20, "upsample_trilinear3d grid_sampler_3d"},
    {lower_resampling, 40, "upsample_bicubic2d _upsample_bicubic2d_aa"},
    {lower_roi_align, 0, "torchvision.roi_align"},
    {lower_roi_align_backward, 0, "torchvision._roi_align_backward"},
    {lower_resampling_backward, 2,
     "upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward "
     "_upsample_nearest_exact2d_backward"},
    {lower_resampling_backward, 6, "upsample_linear1d_backward"},
    {lower_resampling_backward, 1, "fractional_max_pool2d_backward"},
    {lower_resampling_backward, 10, "upsample_bilinear2d_backward _upsample_bilinear2d_aa_backward"},
    {lower_resampling_backward, 20, "upsample_trilinear3d_backward"},
    {lower_resampling_backward, 40, "upsample_bicubic2d_backward _upsample_bicubic2d_aa_backward"},
    {lower_resampling_backward, 20, "grid_sampler_2d_backward grid_sampler_3d_backward"},
    {lower_real_to_complex, 0, "_fft_r2c"},
    {lower_complex_to_real, 0, "_fft_c2r"},
    {lower_complex_to_complex, 0, "_fft_c2c"},
    {lower_cholesky, 0, "linalg_cholesky_ex cholesky"},
    {lower_cholesky_solve, 0, "cholesky_solve"},
    {lower_cholesky_inverse, 0, "cholesky_inverse"},
    {lower_triangular_solve, 0, "linalg_solve_triangular"},
    {lower_lu, 0, "linalg_lu linalg_lu_factor_ex _linalg_slogdet _linalg_det"},
    {lower_lu_and_solve, 0, "_linalg_solve_ex linalg_inv_ex"},
    {lower_lu_solve, 0, "linalg_lu_solve"},
    {lower_qr, 0, "linalg_qr geqrf"},
    {lower_reflections, 0, "linalg_householder_product ormqr"},
    {lower_symmetric_eigenvalues, 0, "_linalg_eigh"},
    {lower_singular_values, 0, "_linalg_svd"},
    {lower_softmax, 0, "_softmax _log_softmax _safe_softmax"},
    {lower_softmax_backward, 0, "_softmax_backward_data _log_softmax_backward_data"},
    {lower_class_loss, 0, "nll_loss_forward nll_loss2d_forward"},
    {lower_class_loss_backward, 0, "nll_loss_backward nll_loss2d_backward"},
    {lower_ctc_loss, 0, "_ctc_loss _ctc_loss_backward"},
    {lower_embedding, 0, "embedding"},
    {lower_embedding_backward, 0, "embedding_dense_backward"},
    {lower_embedding_bag, 0, "_embedding_bag _embedding_bag_forward_only"},
    {lower_embedding_bag_backward, 0, "_embedding_bag_dense_backward _embedding_bag_backward"},
    {lower_gather, 0, "index index_select gather take _unsafe_index"},
    {lower_scatter, 0,
     "index_put _index_put_impl _unsafe_index_put index_add index_copy scatter scatter_add "
     "scatter_reduce index_fill index_reduce masked_scatter put"},
    {lower_selection, 1,
     "nonzero masked_select masked_scatter_backward _unique2 unique_dim unique_consecutive"},
    {lower_nms, 12, "torchvision.nms"},
    {lower_view, 0,
     "view _unsafe_view reshape _reshape_alias t transpose permute expand expand_as detach "
     "alias slice select narrow unbind split split_with_sizes chunk unsqueeze squeeze "
     "as_strided diagonal unfold lift lift_fresh view_as movedim swapaxes swapdims numpy_T mT "
     "unsafe_chunk unsafe_split unsafe_split_with_sizes empty empty_like empty_strided "
     "new_empty new_empty_strided view_as_real view_as_complex _conj set resize "
     "_nested_view_from_buffer flatten real imag tensor_split hsplit vsplit sym_size "
     "_assert_async _assert_scalar record_stream is_same_size _efficientzerotensor "
     "_has_same_storage_numel"},
    // Collectives of one process; the exchange among several is added to the step.
    {lower_view, 0,
     "c10d.allreduce c10d.allreduce_coalesced c10d.broadcast c10d.reduce c10d.allgather "
     "c10d._allgather_base c10d.allgather_into_tensor_coalesced c10d.reduce_scatter "
     "c10d._reduce_scatter_base c10d.reduce_scatter_tensor_coalesced c10d.alltoall "
     "c10d.alltoall_base c10d.gather c10d.scatter c10d.send c10d.recv c10d.barrier"},
    {lower_host_read, 0, "_local_scalar_dense is_nonzero item _linalg_check_errors equal"},
    {lower_synchronization, 0, "tbdsim.synchronize"},
    {lower_copy, 0, "clone copy _to_copy contiguous to"},
    {lower_join, 0,
     "cat stack concat _chunk_cat roll repeat flip repeat_interleave rot90 tile pixel_shuffle "
     "pixel_unshuffle channel_shuffle"},
    {lower_pad, 0, "constant_pad_nd"},
    {lower_slice_backward, 0,
     "slice_backward select_backward unfold_backward diagonal_backward as_strided_scatter "
     "slice_scatter select_scatter diagonal_scatter diag_embed"},
    {lower_resampling, 0,
     "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
     "replication_pad3d"},
    {lower_resampling_backward, 1,
     "reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward "
     "replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward"},
    {lower_fill, 0,
     "zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full fill zero "
     "scalar_tensor arange linspace logspace eye tril_indices triu_indices hann_window hamming_window "
     "blackman_window bartlett_window kaiser_window"},
    {lower_fill, 10,
     "bernoulli uniform normal exponential geometric random rand rand_like randn randn_like "
     "randint randint_like randperm log_normal cauchy multinomial poisson binomial _standard_gamma"},
    {lower_elementwise, 2,
     "native_dropout native_dropout_backward _fused_dropout _masked_scale lerp prelu "
     "_prelu_kernel _prelu_kernel_backward hardshrink softshrink rrelu_with_noise addcmul "
     "addcdiv hardsigmoid hardsigmoid_backward mse_loss mse_loss_backward l1_loss "
     "smooth_l1_loss huber_loss smooth_l1_loss_backward huber_loss_backward kl_div dist glu "
     "glu_backward hardshrink_backward softshrink_backward rrelu_with_noise_backward cross "
     "linalg_cross _weight_norm_interface _weight_norm_interface_backward xlogy hypot "
     "multi_margin_loss_backward multilabel_margin_loss_backward"},
    {lower_elementwise, 1,
     "add sub rsub mul div neg abs relu relu6 hardtanh hardtanh_backward threshold "
     "threshold_backward clamp clamp_min clamp_max maximum minimum fmax fmin eq ne lt le gt ge "
     "logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not "
     "bitwise_xor where masked_fill sign floor ceil round trunc frac square reciprocal sqrt "
     "rsqrt clip leaky_relu leaky_relu_backward isnan isinf isfinite remainder fmod floor_divide "
     "tril triu __and__ __or__ __xor__ __lshift__ __rshift__ copysign heaviside nan_to_num sgn "
     "true_divide _amp_update_scale isposinf isneginf isclose signbit bitwise_left_shift "
     "bitwise_right_shift prims.add prims.sub prims.mul prims.div complex gcd native_channel_shuffle "
     "_pack_padded_sequence "
     "_pack_padded_sequence_backward isin "
     "bucketize searchsorted"},
    {lower_elementwise, 4,
     "hardswish hardswish_backward binary_cross_entropy binary_cross_entropy_backward elu "
     "elu_backward celu selu fake_quantize_per_tensor_affine_cachemask "
     "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams "
     "fake_quantize_per_channel_affine_cachemask _fused_moving_avg_obs_fq_helper "
     "_fake_quantize_learnable_per_tensor_affine _fake_quantize_learnable_per_channel_affine "
     "_fake_quantize_learnable_per_tensor_affine_backward "
     "_fake_quantize_learnable_per_channel_affine_backward"},
    {lower_elementwise, 8,
     "exp exp2 expm1 log log2 log10 log1p sigmoid tanh sin cos tan asin acos atan atan2 sinh "
     "cosh asinh acosh atanh erf erfc erfinv pow silu softplus softplus_backward logit "
     "sigmoid_backward tanh_backward logit_backward binary_cross_entropy_with_logits logaddexp "
     "log_sigmoid_forward log_sigmoid_backward logaddexp2 special_expm1 special_log1p sinc polar "
     "angle lgamma digamma special_i0 special_i0e special_i1 special_i1e special_ndtri special_erfcx "
     "soft_margin_loss soft_margin_loss_backward"},
    {lower_elementwise, 12, "gelu mish silu_backward"},
    {lower_recurrent_cell, 30,
     "_thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward_impl _thnn_fused_gru_cell "
     "_thnn_fused_gru_cell_backward"},
    {lower_elementwise, 20, "gelu_backward mish_backward"},
    {lower_reduction, 1,
     "sum mean amax amin max min prod any all argmax argmin nansum cumsum cumprod logcumsumexp "
     "cummax cummin count_nonzero _is_all_true _is_any_true median mode trace nanmedian histc bincount "
     "renorm"},
    {lower_reduction, 2, "linalg_vector_norm norm"},
    {lower_reduction, 3,
     "_cdist_forward _euclidean_dist _pdist_forward multi_margin_loss multilabel_margin_loss_forward"},
    {lower_reduction, 4, "var std var_mean std_mean logsumexp aminmax"},
    {lower_reduction, 20, "sort topk argsort kthvalue"},
    {lower_foreach, 1,
     "_foreach_add _foreach_sub _foreach_mul _foreach_div _foreach_neg _foreach_abs "
     "_foreach_sqrt _foreach_rsqrt _foreach_reciprocal _foreach_maximum _foreach_minimum "
     "_foreach_clamp_min _foreach_clamp_max _foreach_sign"},
    {lower_foreach, 3, "_foreach_addcmul _foreach_addcdiv"},
    {lower_foreach, 2, "_foreach_lerp"},
    {lower_foreach, 0, "_foreach_zero _foreach_copy"},
    {lower_foreach, 8, "_foreach_pow _foreach_exp _foreach_log"},
    {lower_foreach_norm, 2, "_foreach_norm"},
    {lower_fused_optimizer, 6, "_fused_sgd _fused_adagrad"},
    {lower_fused_optimizer, 11, "_fused_adam"},
    {lower_fused_optimizer, 13, "_fused_adamw"},
    {lower_unscale, 2, "_amp_foreach_non_finite_check_and_unscale"},
    {lower_fused, 0, "tbdsim.fused_pointwise tbdsim.fused_reduction"},
});

constexpr std::size_t kNames = [] {
  std::size_t names = 0;
  for (const Row& row : kRows) names += 1 + static_cast<std::size_t>(std::ranges::count(row.names, ' '));
  return names;
}();

// The rows' operators by name.
constexpr std::array<OperatorEntry, kNames> kOperators = [] {
  std::array<OperatorEntry, kNames> operators{};
  std::size_t next = 0;
  for (const Row& row : kRows) {
    for (std::string_view rest = row.names; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      operators[next++] = {name, row.lower, row.flops};
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
  }
  std::ranges::sort(operators, {}, &OperatorEntry::name);
  return operators;
}();
static_assert(std::ranges::adjacent_find(kOperators, {}, &OperatorEntry::name) == kOperators.end());

}  // namespace

std::string_view name_in_table(std::string_view recorded) {
  constexpr std::string_view kAten = "aten.";
  std::string_view name = recorded;
  std::size_t begin = 0;  // of the name behind another namespace
  if (name.starts_with(kAten)) {
    name.remove_prefix(kAten.size());
  } else if (const std::size_t dot = name.find('.'); dot != std::string_view::npos) {
    begin = dot + 1;
  }
  name = name.substr(0, name.find('.', begin));
  if (name.ends_with('_') && !name.ends_with("__")) name.remove_suffix(1);
  return name;
}

bool is_in_place(std::string_view recorded) {
  const std::string_view name = name_in_table(recorded);
  const std::size_t end = static_cast<std::size_t>(name.data() - recorded.data()) + name.size();
  return end < recorded.size() && recorded[end] == '_';
}

const OperatorEntry* find_operator(std::string_view recorded) {
  const std::string_view name = name_in_table(recorded);
  const auto found = std::ranges::lower_bound(kOperators, name, {}, &OperatorEntry::name);
  return found != kOperators.end() && found->name == name ? &*found : nullptr;
}

}  // namespace tbdsim
