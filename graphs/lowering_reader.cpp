#include "graphs/lowering_reader.h"

#include <optional>

namespace tbdsim {
namespace {

constexpr std::int64_t kMostCopies = 16;

// Reads what `key` finds of each value and leaves the others as they are.
template <class FindKey>
void read_keys(FindKey key, Lowering& lowering) {
  const auto choice = [&](std::string_view name, std::span<const std::string_view> names, auto& value) {
    if (const std::optional<SpecNode> node = key(name)) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(node->one_of(names));
    }
  };
  choice("layout", kLayoutNames, lowering.layout);
  choice("tensor_core_layout", kLayoutNames, lowering.tensor_core_layout);
  choice("conv_1x1", kConv1x1Names, lowering.conv_1x1);
  choice("relu_keeps", kReluKeepsNames, lowering.relu_keeps);
  if (const std::optional<SpecNode> node = key("relu_in_place")) lowering.relu_in_place = node->flag();
  choice("weight_gradients", kGradientStorageNames, lowering.weight_gradients);
  choice("update", kUpdateKernelsNames, lowering.update);
  choice("recurrence", kRecurrenceNames, lowering.recurrence);
  choice("cell_products", kCellProductsNames, lowering.cell_products);
  choice("cell_pointwise", kCompositionNames, lowering.cell_pointwise);
  choice("step_gradients", kGradientAccumulationNames, lowering.step_gradients);
  choice("layer_norm", kCompositionNames, lowering.layer_norm);
  choice("global_norm", kGlobalNormNames, lowering.global_norm);
  choice("dropout", kCompositionNames, lowering.dropout);
  choice("softmax", kCompositionNames, lowering.softmax);
  choice("embedding_gradient", kTableGradientNames, lowering.embedding_gradient);
  choice("joins", kConcatLoweringNames, lowering.joins);
  if (const std::optional<SpecNode> node = key("parameter_copies")) {
    lowering.parameter_copies = static_cast<int>(node->count(0, kMostCopies));
  }
}

// Reads the keys that a file may leave out.
void read_further_keys(SpecMap& m, Lowering& lowering) {
  if (const auto node = m.find("variables"))
    lowering.variables = static_cast<Variables>(node->one_of(kVariablesNames));
  if (const auto node = m.find("branch_gradients"))
    lowering.branch_gradients = static_cast<GradientAccumulation>(node->one_of(kGradientAccumulationNames));
  if (const auto node = m.find("clip_decision"))
    lowering.clip_decision = static_cast<ClipDecision>(node->one_of(kClipDecisionNames));
  if (const auto node = m.find("half_layout"))
    lowering.half_layout = static_cast<Layout>(node->one_of(kLayoutNames));
  if (const auto node = m.find("norm_layout"))
    lowering.norm_layout = static_cast<NormLayout>(node->one_of(kNormLayoutNames));
  if (const auto node = m.find("depthwise"))
    lowering.depthwise = static_cast<DepthwiseKernels>(node->one_of(kDepthwiseKernelsNames));
  if (const auto node = m.find("product_keeps"))
    lowering.product_keeps = static_cast<SavedMatmulInputs>(node->one_of(kSavedMatmulInputsNames));
  if (const auto node = m.find("gelu"))
    lowering.gelu = static_cast<Composition>(node->one_of(kCompositionNames));
  if (const auto node = m.find("half_gelu"))
    lowering.half_gelu = static_cast<Composition>(node->one_of(kCompositionNames));
  if (const auto node = m.find("lrn"))
    lowering.lrn = static_cast<Composition>(node->one_of(kCompositionNames));
  if (const auto node = m.find("attention"))
    lowering.attention = static_cast<AttentionKernels>(node->one_of(kAttentionKernelsNames));
  const auto composition = [&](std::string_view name, Composition& value) {
    if (const auto node = m.find(name)) value = static_cast<Composition>(node->one_of(kCompositionNames));
  };
  composition("linear_bias", lowering.linear_bias);
  composition("rms_norm", lowering.rms_norm);
  composition("rotary", lowering.rotary);
  composition("gated", lowering.gated);
  composition("gelu_new", lowering.gelu_new);
  if (const auto node = m.find("repeat_keys")) lowering.repeat_keys = node->flag();
  if (const auto node = m.find("loss"))
    lowering.loss = static_cast<LossKernels>(node->one_of(kLossKernelsNames));
  if (const auto node = m.find("norm_kernels"))
    lowering.norm_kernels = static_cast<NormKernels>(node->one_of(kNormKernelsNames));
  if (const auto node = m.find("product_bias"))
    lowering.product_bias = static_cast<Composition>(node->one_of(kCompositionNames));
  if (const auto node = m.find("optimizer_state"))
    lowering.optimizer_state = static_cast<Variables>(node->one_of(kVariablesNames));
  if (const auto node = m.find("zero_gradients")) lowering.zero_gradients = node->flag();
  if (const auto node = m.find("counts_batches")) lowering.counts_batches = node->flag();
  if (const auto node = m.find("compiler"))
    lowering.compiler = static_cast<Compiler>(node->one_of(kCompilerNames));
  if (const auto node = m.find("moments_apart")) lowering.moments_apart = node->flag();
  if (const auto node = m.find("group_norm_in_fp32")) lowering.group_norm_in_fp32 = node->flag();
  if (const auto node = m.find("scale_in_update")) lowering.scale_in_update = node->flag();
  if (const auto node = m.find("aten_kernels")) lowering.aten_kernels = node->flag();
  if (const auto node = m.find("synced_norms")) lowering.synced_norms = node->flag();
}

}  // namespace

Lowering read_lowering(const SpecNode& node) {
  Lowering lowering;
  node.map([&](SpecMap& m) {
    read_keys([&](std::string_view name) { return std::optional(m.at(name)); }, lowering);
    read_further_keys(m, lowering);
  });
  return lowering;
}

Lowering override_lowering(const SpecNode& node, Lowering lowering) {
  node.map([&](SpecMap& m) {
    read_keys([&](std::string_view name) { return m.find(name); }, lowering);
    read_further_keys(m, lowering);
  });
  return lowering;
}

}  // namespace tbdsim
