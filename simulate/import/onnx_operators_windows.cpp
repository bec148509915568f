// Operators of ONNX over windows of an image.
#include <algorithm>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "hwspecs/base/spec_writer.h"
#include "simulate/import/network.h"
#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_operators.h"
#include "simulate/import/onnx_scaling.h"

namespace tbdsim {
namespace {

std::optional<std::pair<WindowSide, WindowSide>> window(OnnxConversion& net, const OnnxNode& node,
                                                        const NetworkTensor& from,
                                                        const std::vector<std::int64_t>& kernel) {
  try {
    return window_of(node, from.shape, kernel);
  } catch (const std::invalid_argument& wrong) {
    net.builder().fail(name_of_layer(node) + ": " + wrong.what());
  }
}

}  // namespace

void convert_convolution(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const OnnxTensor* weight = net.constant(node, 1);
  if (weight == nullptr || weight->dims.size() != 4)
    return net.unsupported(node, "without a weight of four sides");
  const auto sides = window(net, node, from, {weight->dims[2], weight->dims[3]});
  if (!sides) return net.unsupported(node, "of no images");
  const std::int64_t groups = whole_number_of(node, "group", 1);
  if (groups < 1 || groups > from.shape[0] || weight->dims[1] * groups != from.shape[0]) {
    if (net.builder().has_unsupported()) return net.unsupported(node);
    net.builder().fail(fmt::format("{}: a weight of {} channels in {} groups for an input of {}",
                                   name_of_layer(node), weight->dims[1], groups, from.shape[0]));
  }
  LayerKeys keys = {{"filters", spec_number(weight->dims[0])}};
  if (node.inputs.size() > 2) keys.emplace_back("bias", spec_scalar("true"));
  if (node.inputs.size() > 2) net.count_bias();
  if (groups != 1) keys.emplace_back("groups", spec_number(groups));
  net.set(node, net.builder().add_window("conv2d", name_of_layer(node), from, sides->first, sides->second,
                                         weight->dims[0], std::move(keys)));
}

void convert_transposed(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const OnnxTensor* weight = net.constant(node, 1);
  if (weight == nullptr || weight->dims.size() != 4)
    return net.unsupported(node, "without a weight of four sides");
  const auto sides = window(net, node, from, {weight->dims[2], weight->dims[3]});
  const auto to = sides ? add_transposed(net.builder(), node, from, weight->dims[1], *sides) : std::nullopt;
  to ? net.set(node, *to) : net.unsupported(node, "in groups, or not square");
}

void convert_pooling(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const auto sides = window(net, node, from, whole_numbers(node, "kernel_shape"));
  if (!sides) return net.unsupported(node, "of no images");
  const auto covers = [](const WindowSide& side, std::int64_t input) {
    return side.outputs(input) == 1 && side.kernel >= input + side.before;
  };
  const bool whole = covers(sides->first, from.shape[1]) && covers(sides->second, from.shape[2]);
  const bool uneven =
      sides->first.before != sides->first.after || sides->second.before != sides->second.after;
  if (node.op == "AveragePool" && whole && uneven)  // one mean of all pixels, whatever surrounds them
    return net.set(node,
                   net.builder().add("global_avg_pool", name_of_layer(node), {from}, {from.shape[0], 1, 1}));
  net.set(node, net.builder().add_window(node.op == "MaxPool" ? "max_pool" : "avg_pool", name_of_layer(node),
                                         from, sides->first, sides->second, from.shape[0]));
}

void convert_mean(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  std::vector<std::int64_t> axes = whole_numbers(node, "axes");
  if (const OnnxTensor* given = net.constant(node, 1); axes.empty() && given != nullptr)
    axes = given->integers;
  for (std::int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
  std::sort(axes.begin(), axes.end());
  if (from.shape.size() != 3 || (node.op == "ReduceMean" && axes != std::vector<std::int64_t>{2, 3}))
    return net.unsupported(node, "over other sides than pixels");
  NetworkTensor to = net.builder().add("global_avg_pool", name_of_layer(node), {from}, {from.shape[0], 1, 1});
  if (node.op == "ReduceMean" && whole_number_of(node, "keepdims", 1) == 0) to = net.flat(node, to);
  net.set(node, to);
}

void convert_pad(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  std::vector<std::int64_t> pads = whole_numbers(node, "pads");
  if (const OnnxTensor* given = net.constant(node, 1); pads.empty() && given != nullptr)
    pads = given->integers;
  if (!pads.empty() && std::all_of(pads.begin(), pads.end(), [](auto p) { return p == 0; }))
    return net.set(node, from);
  net.unsupported(node, "that is no convolution's own");
}

}  // namespace tbdsim
