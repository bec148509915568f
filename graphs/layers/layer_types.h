// The visible table of layer types: name in YAML -> maker. A new type is one file here and one row in the
// .cpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "graphs/layer.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

struct LayerType {
  std::string_view name;
  std::string_view description;  // with its keys
  std::unique_ptr<Layer> (*make)(SpecMap& keys);
};

[[nodiscard]] std::span<const LayerType> layer_types();

// Throws SpecError with "did you mean" for a name the table does not have.
[[nodiscard]] const LayerType& layer_type(const SpecNode& name);

// The makers, one a file. Each reads its own keys; the caller rejects the rest.
std::unique_ptr<Layer> make_conv2d(SpecMap& keys);
std::unique_ptr<Layer> make_conv_transpose2d(SpecMap& keys);
std::unique_ptr<Layer> make_conv3d(SpecMap& keys);
std::unique_ptr<Layer> make_conv_transpose3d(SpecMap& keys);
std::unique_ptr<Layer> make_weighted_add(SpecMap& keys);
std::unique_ptr<Layer> make_multiply_add(SpecMap& keys);
std::unique_ptr<Layer> make_neighbour_attention(SpecMap& keys);
std::unique_ptr<Layer> make_dot_interaction(SpecMap& keys);
std::unique_ptr<Layer> make_stack_steps(SpecMap& keys);
std::unique_ptr<Layer> make_joint_sum(SpecMap& keys);
std::unique_ptr<Layer> make_transducer_loss(SpecMap& keys);
std::unique_ptr<Layer> make_spectral_norm(SpecMap& keys);
std::unique_ptr<Layer> make_class_scale(SpecMap& keys);
std::unique_ptr<Layer> make_dot_score(SpecMap& keys);
std::unique_ptr<Layer> make_focal_loss(SpecMap& keys);
std::unique_ptr<Layer> make_anchor_box_loss(SpecMap& keys);
std::unique_ptr<Layer> make_dice_loss(SpecMap& keys);
std::unique_ptr<Layer> make_hard_negative_loss(SpecMap& keys);
std::unique_ptr<Layer> make_batch_norm(SpecMap& keys);
std::unique_ptr<Layer> make_lrn(SpecMap& keys);
std::unique_ptr<Layer> make_relu(SpecMap& keys);
std::unique_ptr<Layer> make_relu6(SpecMap& keys);
std::unique_ptr<Layer> make_silu(SpecMap& keys);
std::unique_ptr<Layer> make_hardswish(SpecMap& keys);
std::unique_ptr<Layer> make_hardsigmoid(SpecMap& keys);
std::unique_ptr<Layer> make_group_norm(SpecMap& keys);
std::unique_ptr<Layer> make_instance_norm(SpecMap& keys);
std::unique_ptr<Layer> make_multiply(SpecMap& keys);
std::unique_ptr<Layer> make_layer_scale(SpecMap& keys);
std::unique_ptr<Layer> make_dropout_add(SpecMap& keys);
std::unique_ptr<Layer> make_relu_dropout(SpecMap& keys);
std::unique_ptr<Layer> make_channel_add(SpecMap& keys);
std::unique_ptr<Layer> make_drop_path(SpecMap& keys);
std::unique_ptr<Layer> make_max_pool(SpecMap& keys);
std::unique_ptr<Layer> make_avg_pool(SpecMap& keys);
std::unique_ptr<Layer> make_adaptive_avg_pool(SpecMap& keys);
std::unique_ptr<Layer> make_global_avg_pool(SpecMap& keys);
std::unique_ptr<Layer> make_add(SpecMap& keys);
std::unique_ptr<Layer> make_concat(SpecMap& keys);
std::unique_ptr<Layer> make_dropout(SpecMap& keys);
std::unique_ptr<Layer> make_fully_connected(SpecMap& keys);
std::unique_ptr<Layer> make_embedding(SpecMap& keys);
std::unique_ptr<Layer> make_layer_norm(SpecMap& keys);
std::unique_ptr<Layer> make_softmax_loss(SpecMap& keys);
std::unique_ptr<Layer> make_smoothed_softmax_loss(SpecMap& keys);
std::unique_ptr<Layer> make_softmax(SpecMap& keys);
std::unique_ptr<Layer> make_gelu(SpecMap& keys);
std::unique_ptr<Layer> make_scale(SpecMap& keys);
std::unique_ptr<Layer> make_bias(SpecMap& keys);
std::unique_ptr<Layer> make_add_positions(SpecMap& keys);
std::unique_ptr<Layer> make_add_embedding(SpecMap& keys);
std::unique_ptr<Layer> make_attention_mask(SpecMap& keys);
std::unique_ptr<Layer> make_attention_scores(SpecMap& keys);
std::unique_ptr<Layer> make_attention_context(SpecMap& keys);
std::unique_ptr<Layer> make_split_heads(SpecMap& keys);
std::unique_ptr<Layer> make_merge_heads(SpecMap& keys);
std::unique_ptr<Layer> make_transpose(SpecMap& keys);
std::unique_ptr<Layer> make_select_positions(SpecMap& keys);
std::unique_ptr<Layer> make_place_positions(SpecMap& keys);
std::unique_ptr<Layer> make_shift_positions(SpecMap& keys);
std::unique_ptr<Layer> make_copy(SpecMap& keys);
std::unique_ptr<Layer> make_anchor_rows(SpecMap& keys);
std::unique_ptr<Layer> make_inside_anchors(SpecMap& keys);
std::unique_ptr<Layer> make_select_rows(SpecMap& keys);
std::unique_ptr<Layer> make_anchor_target(SpecMap& keys);
std::unique_ptr<Layer> make_proposal(SpecMap& keys);
std::unique_ptr<Layer> make_proposal_target(SpecMap& keys);
std::unique_ptr<Layer> make_roi_pool(SpecMap& keys);
std::unique_ptr<Layer> make_crop_and_resize(SpecMap& keys);
std::unique_ptr<Layer> make_smooth_l1_loss(SpecMap& keys);
std::unique_ptr<Layer> make_tanh(SpecMap& keys);
std::unique_ptr<Layer> make_slice_mean(SpecMap& keys);
std::unique_ptr<Layer> make_upsample(SpecMap& keys);
std::unique_ptr<Layer> make_depth_to_space(SpecMap& keys);
std::unique_ptr<Layer> make_reshape(SpecMap& keys);
std::unique_ptr<Layer> make_logistic_loss(SpecMap& keys);
std::unique_ptr<Layer> make_squared_loss(SpecMap& keys);
std::unique_ptr<Layer> make_mean_loss(SpecMap& keys);
std::unique_ptr<Layer> make_host_copy(SpecMap& keys);
std::unique_ptr<Layer> make_fill_past_length(SpecMap& keys);
std::unique_ptr<Layer> make_rescale(SpecMap& keys);
std::unique_ptr<Layer> make_interpolate(SpecMap& keys);
std::unique_ptr<Layer> make_actor_critic_loss(SpecMap& keys);
std::unique_ptr<Layer> make_sigmoid(SpecMap& keys);
std::unique_ptr<Layer> make_lstm(SpecMap& keys);
std::unique_ptr<Layer> make_gru(SpecMap& keys);
std::unique_ptr<Layer> make_additive_score(SpecMap& keys);
std::unique_ptr<Layer> make_weighted_sum(SpecMap& keys);
std::unique_ptr<Layer> make_unstack(SpecMap& keys);
std::unique_ptr<Layer> make_stack(SpecMap& keys);
std::unique_ptr<Layer> make_sequence_reverse(SpecMap& keys);
std::unique_ptr<Layer> make_sequence_last(SpecMap& keys);
std::unique_ptr<Layer> make_fold_time(SpecMap& keys);
std::unique_ptr<Layer> make_ctc_loss(SpecMap& keys);
std::unique_ptr<Layer> make_read_back(SpecMap& keys);
std::unique_ptr<Layer> make_rms_norm(SpecMap& keys);
std::unique_ptr<Layer> make_rotary(SpecMap& keys);
std::unique_ptr<Layer> make_attention(SpecMap& keys);
std::unique_ptr<Layer> make_gated_activation(SpecMap& keys);
std::unique_ptr<Layer> make_learned_positions(SpecMap& keys);
std::unique_ptr<Layer> make_cross_entropy(SpecMap& keys);
std::unique_ptr<Layer> make_image_positions(SpecMap& keys);
std::unique_ptr<Layer> make_class_token(SpecMap& keys);
std::unique_ptr<Layer> make_pairwise(SpecMap& keys);
std::unique_ptr<Layer> make_pointwise(SpecMap& keys);
std::unique_ptr<Layer> make_slice(SpecMap& keys);
std::unique_ptr<Layer> make_pad(SpecMap& keys);
std::unique_ptr<Layer> make_expand(SpecMap& keys);
std::unique_ptr<Layer> make_reduce(SpecMap& keys);
std::unique_ptr<Layer> make_trained(SpecMap& keys);
std::unique_ptr<Layer> make_router(SpecMap& keys);
std::unique_ptr<Layer> make_dispatch(SpecMap& keys);
std::unique_ptr<Layer> make_expert_products(SpecMap& keys);
std::unique_ptr<Layer> make_combine(SpecMap& keys);

}  // namespace tbdsim
