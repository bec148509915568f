#include <algorithm>
#include <array>
#include <string_view>

#include "simulate/import/execution_trace.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostArguments = 10;

// The operator of a step file that a node is, and which of the node's inputs are its arguments: a number of
// an input, kNone, or kTrue for a flag that a training step sets (docs/step_file.md, PyTorch's
// native_functions.yaml).
constexpr int kNone = -1;
constexpr int kTrue = -2;
constexpr int kMask = -3;  // the list of three gradients that are wanted
constexpr int kEnd = -4;
struct Fused {
  std::string_view node;
  std::string_view name;
  std::array<int, kMostArguments> arguments;
};
constexpr std::string_view kForward = "tbdsim.scaled_dot_product_attention";
constexpr std::string_view kBackward = "tbdsim.scaled_dot_product_attention_backward";
constexpr Fused kFused[] = {
    // query, key, value, mask, dropout, causal, scale
    {"_scaled_dot_product_flash_attention", kForward, {0, 1, 2, kNone, 3, 4, 6, kEnd}},
    {"_scaled_dot_product_flash_attention_for_cpu", kForward, {0, 1, 2, 5, 3, 4, 6, kEnd}},
    {"_scaled_dot_product_efficient_attention", kForward, {0, 1, 2, 3, 5, 6, 7, kEnd}},
    {"_scaled_dot_product_cudnn_attention", kForward, {0, 1, 2, 3, 5, 6, 8, kEnd}},
    // gradient, query, key, value, output, mask, dropout, causal, scale, whether the mask's gradient is
    // wanted
    {"_scaled_dot_product_flash_attention_backward", kBackward, {0, 1, 2, 3, 4, kNone, 10, 11, 14, kNone}},
    {"_scaled_dot_product_flash_attention_for_cpu_backward", kBackward, {0, 1, 2, 3, 4, 8, 6, 7, 9, kNone}},
    {"_scaled_dot_product_efficient_attention_backward", kBackward, {0, 1, 2, 3, 5, 4, 9, 11, 12, kNone}},
    {"_scaled_dot_product_cudnn_attention_backward", kBackward, {0, 1, 2, 3, 4, 8, 13, 14, 15, kNone}},
    // gradient, input, weight, two moving and two saved statistics, whether it trains, eps, gradients wanted
    {"cudnn_batch_norm_backward",
     "aten.native_batch_norm_backward.default",
     {1, 0, 2, 3, 4, 5, 6, kTrue, 7, kMask}},
};

}  // namespace

bool rename_fused(std::string_view name, TracedOperator& op) {
  const auto* const found = std::ranges::find(kFused, name, &Fused::node);
  if (found == std::end(kFused)) return false;
  std::vector<TracedValue> arguments;
  for (const int argument : found->arguments) {
    if (argument == kEnd) break;
    TracedValue value;
    if (argument == kTrue) value.value = true;
    if (argument == kMask) value.value = std::vector<TracedValue>(3, TracedValue{true});
    if (argument >= 0 && static_cast<std::size_t>(argument) < op.inputs.size())
      value = op.inputs[static_cast<std::size_t>(argument)];
    arguments.push_back(std::move(value));
  }
  op.name = found->name;
  op.inputs = std::move(arguments);
  return true;
}

}  // namespace tbdsim
