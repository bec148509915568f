// Operators of ONNX that join tensors or give them other sides.
#include <algorithm>

#include <fmt/format.h>

#include "hwspecs/base/spec_writer.h"
#include "simulate/import/network.h"
#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_operators.h"
#include "simulate/import/onnx_scaling.h"

namespace tbdsim {

void convert_concat(OnnxConversion& net, const OnnxNode& node, const NetworkTensor&) {
  std::vector<NetworkTensor> parts;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto part = net.data(node, i);
    if (!part) return net.unsupported(node, "with a constant");
    parts.push_back(*part);
  }
  if (parts.size() == 1) return net.set(node, parts[0]);
  const auto sides = static_cast<std::int64_t>(parts[0].shape.size());
  std::int64_t axis = whole_number_of(node, "axis", 1);
  if (axis < 0) axis += sides + 1;
  if (axis != 1 && axis != sides)
    return net.unsupported(node, "along another side than the first and the last");
  std::vector<std::int64_t> shape = parts[0].shape;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].shape.size() != shape.size()) return net.unsupported(node, "of tensors of several shapes");
    shape[static_cast<std::size_t>(axis - 1)] += parts[i].shape[static_cast<std::size_t>(axis - 1)];
  }
  LayerKeys keys;
  if (axis != 1) keys.emplace_back("axis", spec_scalar("last"));
  net.set(node, net.builder().add("concat", name_of_layer(node), parts, shape, std::move(keys)));
}

// To one row of features for each sample, or to other sides.
void convert_reshape(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const OnnxTensor* to = net.constant(node, 1);
  std::vector<std::int64_t> dims = to == nullptr ? whole_numbers(node, "shape") : to->integers;
  if (dims.size() == 2 || dims.empty()) return net.set(node, net.flat(node, from));
  const auto sides = reshaped(dims, from.shape);
  if (!sides) return net.unsupported(node, "to sides that do not fit");
  net.set(node, net.builder().add_reshape(name_of_layer(node), from, *sides));
}

void convert_upsample(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  std::vector<double> scales;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const OnnxTensor* tensor = net.constant(node, i);
    if (tensor != nullptr && tensor->numbers.size() == 4) scales = tensor->numbers;
  }
  const auto to = add_upsample(net.builder(), node, from, scales);
  to ? net.set(node, *to) : net.unsupported(node, "by other than one whole factor");
}

void convert_depth_to_space(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const auto to = add_depth_to_space(net.builder(), node, from);
  to ? net.set(node, *to) : net.unsupported(node, "of no images");
}

// Dimensions in another order, the batch before them.
void convert_transpose(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const std::vector<std::int64_t> order = whole_numbers(node, "perm");
  if (order.size() != from.shape.size() + 1 || order[0] != 0)
    return net.unsupported(node, "that moves the batch");
  std::vector<std::int64_t> shape;
  std::vector<SpecTree> places;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i] < 1 || order[i] > std::ssize(from.shape))
      return net.unsupported(node, "of no such dimensions");
    shape.push_back(from.shape[static_cast<std::size_t>(order[i] - 1)]);
    places.push_back(spec_number(order[i] - 1));
  }
  net.set(node,
          net.builder().add("transpose", name_of_layer(node), {from}, shape, {{"order", spec_list(places)}}));
}

// To one row of features for each sample where that is what is left, else the input itself.
void convert_flatten(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const bool flattens =
      node.op == "Flatten" || (node.op == "Squeeze" && product_of(from.shape) == from.shape[0]);
  net.set(node, flattens ? net.flat(node, from) : from);
}

}  // namespace tbdsim
