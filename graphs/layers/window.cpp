#include "graphs/layers/window.h"

#include <algorithm>
#include <array>
#include <string>

#include "graphs/layer.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kLargest = 1'000'000;  // pixels

// One number for both directions, or a list of two.
std::array<std::int64_t, 2> pair_of(const SpecNode& node, std::int64_t least) {
  if (!node.is_list()) {
    const std::int64_t both = node.count(least, kLargest);
    return {both, both};
  }
  const auto numbers = node.list();
  if (numbers.size() != 2)
    node.fail("has " + std::to_string(numbers.size()) + " numbers; expected [height, width]");
  return {numbers[0].count(least, kLargest), numbers[1].count(least, kLargest)};
}

}  // namespace

std::int64_t WindowAxis::positions(std::int64_t input, std::string_view axis) const {
  if (padding == Padding::same) return (input + stride - 1) / stride;
  const std::int64_t padded = input + (padding == Padding::number ? 2 * pad : 0);
  if (padded < span()) {
    throw ShapeMismatch("a window of " + std::to_string(span()) + " does not fit an input " +
                        std::string(axis) + " of " + std::to_string(input) + " with padding " +
                        std::to_string((padded - input) / 2) + "; expected a larger input or more padding");
  }
  return (padded - span()) / stride + 1;
}

std::int64_t WindowAxis::pad_before(std::int64_t input) const {
  if (padding == Padding::number) return pad;
  if (padding == Padding::valid) return 0;
  const std::int64_t covered = (positions(input, "") - 1) * stride + span();
  return std::max<std::int64_t>(0, covered - input) / 2;
}

Window read_window(SpecMap& keys) {
  Window window;
  const auto kernel = pair_of(keys.at("kernel"), 1);
  const auto stride_node = keys.find("stride");
  const auto stride = stride_node ? pair_of(*stride_node, 1) : std::array<std::int64_t, 2>{1, 1};
  const SpecNode padding = keys.at("padding");
  std::array<std::int64_t, 2> pad{};
  auto kind = WindowAxis::Padding::number;
  const bool word =
      padding.is_scalar() && padding.tree().text.find_first_not_of("-0123456789") != std::string::npos;
  if (word) {
    kind = padding.one_of({"same", "valid"}) == 0 ? WindowAxis::Padding::same : WindowAxis::Padding::valid;
  } else {
    pad = pair_of(padding, 0);
  }
  window.height = {kernel[0], stride[0], kind, pad[0]};
  window.width = {kernel[1], stride[1], kind, pad[1]};
  return window;
}

void read_dilation(SpecMap& keys, Window& window) {
  const auto node = keys.find("dilation");
  if (!node) return;
  const auto dilation = pair_of(*node, 1);
  window.height.dilation = dilation[0];
  window.width.dilation = dilation[1];
}

}  // namespace tbdsim
