#include "simulate/import/onnx_masks.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

namespace tbdsim {
namespace {

// 0, 1, 2, ... along one side, the last or the one before it; the others are 1.
bool counts_along(const OnnxTensor& tensor, std::size_t from_last) {
  const std::vector<double> values = values_of(tensor);
  if (values.size() < 2 || tensor.dims.size() <= from_last) return false;
  if (tensor.dims[tensor.dims.size() - 1 - from_last] != std::ssize(values)) return false;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] != values[i - 1] + 1) return false;
  }
  return true;
}

bool compares_positions(const OnnxConversion& net, const OnnxNode& node) {
  if (!node.op.starts_with("Less") && !node.op.starts_with("Greater")) return false;
  const OnnxTensor *a = net.constant(node, 0), *b = net.constant(node, 1);
  if (a == nullptr || b == nullptr) return false;
  return (counts_along(*a, 0) && counts_along(*b, 1)) || (counts_along(*a, 1) && counts_along(*b, 0));
}

}  // namespace

bool is_causal_mask(const OnnxConversion& net, const std::string& mask) {
  static constexpr std::string_view kPasses[] = {
      "Where",   "And",   "Or",  "Not", "Cast", "CastLike", "Expand",   "Squeeze", "Unsqueeze",
      "Reshape", "Slice", "Add", "Mul", "Sub",  "Equal",    "Identity", "Tile",    "Concat"};
  constexpr std::size_t kMostNames = 200;
  std::vector<std::string> names = {mask};
  std::set<std::string> seen = {mask};
  for (std::size_t i = 0; i < names.size() && i < kMostNames; ++i) {
    const OnnxTensor* tensor = net.constant(names[i]);
    if (tensor != nullptr && tensor->lower_triangle) return true;
    const OnnxNode* node = net.producer(names[i]);
    if (node == nullptr) continue;
    if (node->op == "Trilu" || compares_positions(net, *node)) return true;
    if (std::ranges::find(kPasses, node->op) == std::end(kPasses)) continue;
    for (const std::string& input : node->inputs) {
      if (seen.insert(input).second) names.push_back(input);
    }
  }
  return false;
}

}  // namespace tbdsim
