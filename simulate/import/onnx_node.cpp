#include "simulate/import/onnx_node.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace tbdsim {

std::int64_t whole_number_of(const OnnxNode& node, const std::string& name, std::int64_t otherwise) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() || found->second.integers.empty() ? otherwise
                                                                          : found->second.integers[0];
}

std::vector<std::int64_t> whole_numbers(const OnnxNode& node, const std::string& name) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? std::vector<std::int64_t>{} : found->second.integers;
}

std::string name_of_layer(const OnnxNode& node) {
  if (!node.name.empty()) return node.name;
  return node.outputs.empty() ? node.op : node.outputs[0];
}

std::optional<std::pair<WindowSide, WindowSide>> window_of(const OnnxNode& node,
                                                           const std::vector<std::int64_t>& shape,
                                                           const std::vector<std::int64_t>& kernel) {
  constexpr std::int64_t kLargest = 1'000'000;
  if (kernel.size() != 2 || shape.size() != 3) return std::nullopt;
  auto strides = whole_numbers(node, "strides"), pads = whole_numbers(node, "pads"),
       dilations = whole_numbers(node, "dilations");
  if (strides.empty()) strides = {1, 1};
  if (dilations.empty()) dilations = {1, 1};
  if (pads.empty()) pads = {0, 0, 0, 0};
  if (strides.size() != 2 || dilations.size() != 2 || pads.size() != 4) return std::nullopt;
  const auto automatic = node.attributes.find("auto_pad");
  const bool same = automatic != node.attributes.end() && automatic->second.text.starts_with("SAME");
  std::array<WindowSide, 2> sides;
  for (std::size_t i = 0; i < 2; ++i) {
    for (const std::int64_t number : {kernel[i], strides[i], dilations[i]}) {
      if (number < 1 || number > kLargest) throw std::invalid_argument("a window that cannot be");
    }
    for (const std::int64_t number : {pads[i], pads[i + 2]}) {
      if (number < 0 || number > kLargest) throw std::invalid_argument("pads that cannot be");
    }
    sides[i] = {.kernel = kernel[i],
                .stride = strides[i],
                .before = pads[i],
                .after = pads[i + 2],
                .dilation = dilations[i],
                .round_up = whole_number_of(node, "ceil_mode", 0) == 1};
    if (!same) continue;
    const std::int64_t in = shape[i + 1], out = (in + strides[i] - 1) / strides[i];
    const std::int64_t needed =
        std::max<std::int64_t>(0, (out - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - in);
    sides[i].before = needed / 2;
    sides[i].after = needed - needed / 2;
  }
  return std::pair(sides[0], sides[1]);
}

}  // namespace tbdsim
