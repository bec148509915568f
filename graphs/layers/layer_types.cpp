#include "graphs/layers/layer_types.h"

#include <string>
#include <vector>

#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr LayerType kLayerTypes[] = {
    {"conv2d",
     "2-D convolution: filters, kernel, stride (1), padding (a number, same or valid), bias (false), groups "
     "(1; "
     "as many as channels: depthwise), dilation (1), epilogue (none; bias, relu: added, applied by its "
     "kernel)",
     make_conv2d},
    {"conv_transpose2d",
     "transposed convolution, each pixel as a square of kernel x kernel pixels: filters, kernel, stride "
     "(kernel: "
     "side by side; less: overlapping), padding (0), output_padding (0), bias (true)",
     make_conv_transpose2d},
    {"conv3d", "convolution of volumes: filters, kernel (odd), stride (1), bias (false)", make_conv3d},
    {"conv_transpose3d",
     "transposed convolution of volumes, cubes side by side: filters, kernel, bias (false)",
     make_conv_transpose3d},
    {"batch_norm",
     "batch normalisation over rows and pixels or positions: scale (true), shift (true), statistics (batch): "
     "of the batch "
     "or global",
     make_batch_norm},
    {"lrn", "local response normalisation over a window of neighbouring channels: window", make_lrn},
    {"group_norm",
     "normalisation over pixels and channels of a sample's group: groups, affine (true), joined (false): one "
     "kernel forward and one backward, silu (false): which also apply it",
     make_group_norm},
    {"instance_norm", "normalisation over the pixels of each channel: affine (false)", make_instance_norm},
    {"layer_norm",
     "layer normalisation: axes (features), or image: of channels and pixels; bias (true); affine (true), "
     "without "
     "factors and bias if false",
     make_layer_norm},
    {"rms_norm", "normalisation by the root mean square of features: heads (1), each of which is normalised",
     make_rms_norm},
    {"relu", "rectified linear unit: in_place (as the framework has it)", make_relu},
    {"relu6", "the same, at most 6: in_place (false)", make_relu6},
    {"silu", "product with its logistic function, also called swish: in_place (false), composite (false)",
     make_silu},
    {"swish", "the same as silu", make_silu},
    {"hardswish", "product with hardsigmoid: in_place (false)", make_hardswish},
    {"hardsigmoid", "(x + 3) / 6, at least 0 and at most 1: in_place (false)", make_hardsigmoid},
    {"tanh", "hyperbolic tangent", make_tanh},
    {"sigmoid", "logistic function", make_sigmoid},
    {"max_pool", "maximum over a window: kernel, stride, padding", make_max_pool},
    {"avg_pool", "mean over a window: kernel, stride, padding", make_avg_pool},
    {"adaptive_avg_pool", "mean over windows that give an image of outputs x outputs pixels: outputs",
     make_adaptive_avg_pool},
    {"global_avg_pool", "mean over all pixels", make_global_avg_pool},
    {"slice_mean", "mean over 2x2 pixels as a sum of four strided slices", make_slice_mean},
    {"upsample",
     "larger image: factor, in both directions, or outputs: height and width, mode (nearest, bilinear)",
     make_upsample},
    {"depth_to_space", "channels laid out as pixels: factor, in both directions", make_depth_to_space},
    {"add", "element-wise sum of two or more inputs of one shape", make_add},
    {"weighted_add",
     "the same with a trained weight for each input: divides (true), each weight by the sum of all, "
     "spare (0) weights that no input has",
     make_weighted_add},
    {"multiply",
     "element-wise product of two inputs; dimensions of the second may be 1, as in squeeze-excite",
     make_multiply},
    {"multiply_add",
     "product of the first two inputs and its sum with the third, of one shape: fused (false): one kernel "
     "forward and one backward",
     make_multiply_add},
    {"neighbour_attention",
     "attention over the edges of a graph that was sampled, from {sources, width} to {targets, width} "
     "(GAT): edges of a sample, heads",
     make_neighbour_attention},
    {"pairwise",
     "sum, product, quotient or function of two inputs, whose dimensions of 1 spread: operation (add, "
     "subtract, "
     "multiply, divide, function), trained: dimensions of a trained second one, the same for all samples, "
     "elements (all) of the tensor that it is made of",
     make_pairwise},
    {"pointwise", "any function of each element without a layer of its own: operations (1)", make_pointwise},
    {"slice", "a part, of those dimensions: dims, parts (1): of so many equal ones along the last",
     make_slice},
    {"pad", "zeros around it: dims", make_pad},
    {"expand", "the same elements again along dimensions of 1: dims", make_expand},
    {"reduce", "along dimensions that are 1 or gone in the output: dims, operation (mean, sum, max)",
     make_reduce},
    {"trained",
     "a trained tensor that all samples of the input share: dims, elements (of the tensor; 0: a constant)",
     make_trained},
    {"channel_add",
     "sum of an image, or of positions, and a number for each of its channels, or features, and samples",
     make_channel_add},
    {"concat", "inputs side by side along one axis: axis (first: channels, last, or rows)", make_concat},
    {"reshape", "the same elements in other dimensions: dims", make_reshape},
    {"dropout", "random zeroing: keep, the probability of keeping an element", make_dropout},
    {"dropout_add", "random zeroing of the first input and its sum with the second, in one kernel: keep",
     make_dropout_add},
    {"relu_dropout", "rectified linear unit and random zeroing in one kernel: keep", make_relu_dropout},
    {"drop_path", "random zeroing of whole samples (stochastic depth): keep, the probability of keeping one",
     make_drop_path},
    {"fully_connected",
     "matrix product with the flattened input: outputs, bias (true), per_position (false): with the last "
     "dimension, narrow (true): in fp8 or fp4 where the precision has products in it",
     make_fully_connected},
    {"embedding",
     "rows of a table, one for each position: words, outputs, dense_gradient (as the framework has it), "
     "sparse "
     "(false): only rows looked up have a gradient and are updated, distinct (all) rows of an iteration for "
     "each of its samples, whose gradients are added up, shards (1) in which the table is kept, summed_to (a "
     "vector for each row): vectors of a sample that its "
     "rows are added up to",
     make_embedding},
    {"dot_interaction", "products of every two of a sample's vectors, and the first vector",
     make_dot_interaction},
    {"softmax_loss",
     "softmax and cross entropy against one label for each row or position: targets (labels; dense: a share "
     "of "
     "every class)",
     make_softmax_loss},
    {"smoothed_softmax_loss", "the same with a little of each label spread over all classes",
     make_smoothed_softmax_loss},
    {"softmax", "softmax over the last dimension", make_softmax},
    {"gelu", "Gaussian error linear unit: approximate (none, tanh)", make_gelu},
    {"gated_activation",
     "function (silu, gelu) of a gate times values; reads both, or one tensor with the two side by side",
     make_gated_activation},
    {"scale", "product with a constant, or with a factor for each position", make_scale},
    {"layer_scale",
     "product with a trained factor for each feature: axes (features; image: for each channel; all: one)",
     make_layer_scale},
    {"bias", "sum with a bias for each feature, for a product that is tied to another layer", make_bias},
    {"add_positions", "sum with a constant for each position and feature", make_add_positions},
    {"add_embedding", "sum with one row of a table, the same for all positions: words", make_add_embedding},
    {"attention_mask",
     "sum of scores with a mask for each key of a sample: causal (false), for each query and key",
     make_attention_mask},
    {"attention_scores", "products of queries and keys, each heads x positions x features",
     make_attention_scores},
    {"attention_context", "weights, heads x queries x keys, times values, heads x keys x features",
     make_attention_context},
    {"attention",
     "scaled dot product attention of queries, keys and values, or of one tensor with the three side by "
     "side: "
     "heads, kv_heads (heads), causal (false), window (0: all keys), keep (1) of probabilities, score_bias "
     "(none, "
     "alibi, relative), buckets (0) of a table of relative distances, sinks (false), shared (0) features of "
     "each "
     "key that the third input gives to all heads",
     make_attention},
    {"rotary", "pairs of features turned by position: heads (1), rotated (all) features of each",
     make_rotary},
    {"learned_positions", "sum with a trained row for each position: positions, the most there are",
     make_learned_positions},
    {"image_positions", "pixels of an image as positions, channels as their features", make_image_positions},
    {"class_token", "one more position in front, trained", make_class_token},
    {"router", "weights of each position's best experts, from scores: top", make_router},
    {"dispatch",
     "positions copied for each of their experts, whose weights the second input has: capacity (1)",
     make_dispatch},
    {"expert_products", "a matrix product for each expert with its rows: experts, outputs, bias (false)",
     make_expert_products},
    {"combine", "rows of experts, times the weights of the second input, summed for each position",
     make_combine},
    {"cross_entropy",
     "cross entropy of scores over a vocabulary against one label for each position: z_loss (false), the "
     "squared logarithm of the sum of exponentials beside it",
     make_cross_entropy},
    {"split_heads",
     "positions x features copied to heads x positions x features: heads, parts (1): how many tensors, as "
     "queries, keys and values, lie side by side in the features, of which it reads one",
     make_split_heads},
    {"merge_heads", "heads x positions x features copied to positions x features", make_merge_heads},
    {"transpose", "a copy with two dimensions exchanged, or its dimensions in another order: order ([1, 0])",
     make_transpose},
    {"select_positions", "positions gathered: count (all)", make_select_positions},
    {"place_positions", "positions put back where they were gathered", make_place_positions},
    {"shift_positions", "each position one place later", make_shift_positions},
    {"copy", "a copy, as TensorFlow makes of parts", make_copy},
    {"anchor_rows",
     "channels of every cell as a row for each anchor: values of a row, copied (false; true: by a transpose; "
     "slices: rows that are joined to others behind it, whose gradient is copied, and images of NCHW)",
     make_anchor_rows},
    {"inside_anchors", "anchors within the image: sizes, ratios, stride; reads the cells and the image",
     make_inside_anchors},
    {"select_rows", "the first input's rows that the second one names, or so many of a sample: rows",
     make_select_rows},
    {"anchor_target",
     "classes and offsets for anchors: on (device, host), samples (all), objects in an image (on the "
     "device), most_objects and pair_numbers (0) held of each anchor and object, batched (false): images do "
     "not take turns",
     make_anchor_target},
    {"proposal",
     "regions from scores and offsets of anchors: before (all), after, suppression (device, mask_to_host, "
     "host), batched (false)",
     make_proposal},
    {"proposal_target",
     "regions drawn from proposals, with their classes and offsets: on (device, host, round_trip), regions, "
     "offsets of each, objects in an image (on the device), batched (false)",
     make_proposal_target},
    {"roi_pool", "maxima over a grid in each region: size of the grid; reads features and regions",
     make_roi_pool},
    {"crop_and_resize",
     "bilinear samples of each region: size of the grid; reads features, of one or more levels, and regions",
     make_crop_and_resize},
    {"smooth_l1_loss",
     "squared near the target, linear beyond; reads predictions and targets: targets (layer; given: by the "
     "loader)",
     make_smooth_l1_loss},
    {"focal_loss",
     "logistic loss weighted by each score's distance from its target: form (graph, torchvision, fused, "
     "fused_images)",
     make_focal_loss},
    {"anchor_box_loss",
     "absolute difference of anchors' offsets from those of their objects, which it makes of all anchors; "
     "reads anchor_rows of 4",
     make_anchor_box_loss},
    {"hard_negative_loss",
     "softmax loss of boxes, {classes, boxes}, with an object and of the worst three times as many without",
     make_hard_negative_loss},
    {"dice_loss", "Dice loss and cross entropy of a volume's classes", make_dice_loss},
    {"logistic_loss", "logistic function and cross entropy of each score against its own target",
     make_logistic_loss},
    {"squared_loss", "squared difference from one target for each element", make_squared_loss},
    {"mean_loss", "mean over all elements", make_mean_loss},
    {"actor_critic_loss", "policy gradient, entropy and squared advantage, of scores of actions and a value",
     make_actor_critic_loss},
    {"host_copy",
     "copy between host and device: to (device or host), element_bytes (4), host_time, targets (false): "
     "which no layer reads, but a loss",
     make_host_copy},
    {"fill_past_length", "zero behind each sample's end, by a mask that the host makes: host_time",
     make_fill_past_length},
    {"rescale",
     "bytes or whole numbers as floating-point numbers in another range: element_bytes, operations",
     make_rescale},
    {"interpolate", "a point between two inputs, drawn at random for each sample", make_interpolate},
    {"lstm",
     "LSTM over a sequence: hidden, feed (0), biases (2), reverse, recurrence (the framework's), "
     "forget_bias, masked",
     make_lstm},
    {"gru", "GRU over a sequence: hidden, gates (own, or given by the second input), reverse, recurrence",
     make_gru},
    {"additive_score",
     "scores v tanh(query + keys): score (matmul, sum), mask (none, select, sequence_mask), normalize, "
     "recompute, fused (false): one kernel forward and one backward",
     make_additive_score},
    {"dot_score", "scores query * key of an attention: scale (true), by a trained number", make_dot_score},
    {"weighted_sum", "context of an attention: sum of a memory's vectors by weights", make_weighted_sum},
    {"unstack", "a sequence as tensors of one step each", make_unstack},
    {"stack", "tensors of one step each as a sequence", make_stack},
    {"sequence_reverse", "steps in reverse order: lengths (true: each sample by its own), parallel (false)",
     make_sequence_reverse},
    {"sequence_last", "the last step of each sample", make_sequence_last},
    {"fold_time", "channels x time x frequencies as a sequence over time", make_fold_time},
    {"stack_steps", "several steps of a sequence side by side as one: factor", make_stack_steps},
    {"joint_sum", "sums of every frame and every label, {frames, labels, features}", make_joint_sum},
    {"transducer_loss", "recurrent transducer's loss of {frames, labels, classes}", make_transducer_loss},
    {"spectral_norm",
     "divides the weights of the layer behind it by their largest singular value: filters, kernel (1)",
     make_spectral_norm},
    {"class_scale", "a trained scale and shift of each channel for each class: classes", make_class_scale},
    {"ctc_loss", "connectionist temporal classification of a sequence: labels, their number", make_ctc_loss},
    {"read_back", "the mean over samples and positions, copied to the host", make_read_back},
};

}  // namespace

std::span<const LayerType> layer_types() { return kLayerTypes; }

const LayerType& layer_type(const SpecNode& name) {
  const std::string text = name.text();
  for (const LayerType& type : kLayerTypes) {
    if (type.name == text) return type;
  }
  std::vector<std::string> names;
  for (const LayerType& type : kLayerTypes) names.emplace_back(type.name);
  name.fail("unknown layer type " + in_quotes(text) + did_you_mean(text, names) +
            " ('tbd-sim list layers' names them)");
}

}  // namespace tbdsim
