#include "simulate/import/onnx_masks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace tbdsim {
namespace {

// The first of n, n + 1, n + 2, ... along one side, the last or the one before it, where the others are 1;
// none for other numbers.
std::optional<double> start_along(const OnnxTensor& tensor, std::size_t from_last) {
  const std::vector<double> values = values_of(tensor);
  if (values.size() < 2 || tensor.dims.size() <= from_last) return std::nullopt;
  if (tensor.dims[tensor.dims.size() - 1 - from_last] != std::ssize(values)) return std::nullopt;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] != values[i - 1] + 1) return std::nullopt;
  }
  return values[0];
}

// The side of the diagonal that a comparison of each query's position with each key's chooses.
enum class Side { none, keys_before, keys_behind };

// Positions that do not start alike are those of a window, whose edge lies beside the diagonal.
Side compared_side(const OnnxConversion& net, const OnnxNode& node) {
  const bool less = node.op.starts_with("Less");
  const OnnxTensor *a = net.constant(node, 0), *b = net.constant(node, 1);
  if ((!less && !node.op.starts_with("Greater")) || a == nullptr || b == nullptr) return Side::none;
  const auto alike = [](std::optional<double> key, std::optional<double> query) {
    return key && query && *key == *query;
  };
  if (alike(start_along(*a, 0), start_along(*b, 1))) return less ? Side::keys_before : Side::keys_behind;
  if (alike(start_along(*b, 0), start_along(*a, 1))) return less ? Side::keys_behind : Side::keys_before;
  return Side::none;
}

}  // namespace

bool is_causal_mask(const OnnxConversion& net, const std::string& mask) {
  static constexpr std::string_view kPasses[] = {
      "Where",   "And",   "Or",  "Not", "Cast", "CastLike", "Expand",   "Squeeze", "Unsqueeze",
      "Reshape", "Slice", "Add", "Mul", "Sub",  "Equal",    "Identity", "Tile",    "Concat"};
  constexpr std::size_t kMostNames = 200;
  std::vector<std::string> names = {mask};
  std::set<std::string> seen = {mask};
  std::set<Side> sides;  // both together hide less than what comes after, or more
  for (std::size_t i = 0; i < names.size() && i < kMostNames; ++i) {
    const OnnxTensor* tensor = net.constant(names[i]);
    if (tensor != nullptr && tensor->lower_triangle) return true;
    const OnnxNode* node = net.producer(names[i]);
    if (node == nullptr) continue;
    if (node->op == "Trilu") return true;
    if (const Side side = compared_side(net, *node); side != Side::none) sides.insert(side);
    if (std::ranges::find(kPasses, node->op) == std::end(kPasses)) continue;
    for (const std::string& input : node->inputs) {
      if (seen.insert(input).second) names.push_back(input);
    }
  }
  return sides.size() == 1;
}

}  // namespace tbdsim
