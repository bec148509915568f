// Operators of ONNX over windows of an image.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>

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
                                                        std::vector<std::int64_t> kernel) {
  try {
    if (kernel.size() == 1) {
      OnnxNode row = node;
      for (const auto& [name, first] : {std::pair("strides", 1), std::pair("dilations", 1)}) {
        auto& numbers = row.attributes[name].integers;
        if (numbers.empty()) numbers = {1};
        numbers.insert(numbers.begin(), first);
      }
      auto& pads = row.attributes["pads"].integers;
      if (pads.size() != 2) pads = {0, 0};
      pads = {0, pads[0], 0, pads[1]};
      kernel.insert(kernel.begin(), 1);
      return window_of(row, from.shape, kernel);
    }
    return window_of(node, from.shape, kernel);
  } catch (const std::invalid_argument& wrong) {
    net.builder().fail(name_of_layer(node) + ": " + wrong.what());
  }
}

// A window whose pads no layer has reads an image that was padded before.
NetworkTensor add_padded(OnnxConversion& net, const char* type, const OnnxNode& node,
                         const NetworkTensor& from, std::pair<WindowSide, WindowSide> sides,
                         std::int64_t channels, LayerKeys keys) {
  auto& [tall, wide] = sides;
  NetworkTensor image = from;
  if (!net.builder().has_pads(tall, wide, from.shape)) {
    image = add_resized(
        net, "pad", name_of_layer(node) + "/pad", from,
        {from.shape[0], from.shape[1] + tall.before + tall.after, from.shape[2] + wide.before + wide.after});
    tall.before = tall.after = wide.before = wide.after = 0;
  }
  return net.builder().add_window(type, name_of_layer(node), image, tall, wide, channels, std::move(keys));
}

void set_seen(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& to, bool sequence) {
  net.set(node, to, batch_and(sequence ? std::vector<std::int64_t>{to.shape[0], to.shape[2]} : to.shape));
}

// Whether the export for inference folded a batch norm into the convolution: the new tensors have the
// weight's name and "_bias" (onnxscript 0.7, rewriter/rules/common/_fuse_batchnorm.py), or both that of the
// node and a number (PyTorch's torch/csrc/jit/passes/onnx/eval_peephole.cpp). Where weights are new the bias
// is 0 and left out; the output still has the norm's name: of its three outputs torch.export takes one by
// "getitem".
bool has_folded_norm(const OnnxNode& node) {
  constexpr std::string_view kNumbered = "onnx::Conv_", kOneOfSeveral = "getitem";
  if (node.inputs.size() == 2) return node.outputs.size() == 1 && node.outputs[0].starts_with(kOneOfSeveral);
  if (node.inputs.size() != 3) return false;
  const std::string &weight = node.inputs[1], &bias = node.inputs[2];
  return bias == weight + "_bias" || (weight.starts_with(kNumbered) && bias.starts_with(kNumbered));
}

// The layer that has a convolution's whole weight already, and its bias or the norm behind it, to which it is
// tied; empty for none.
std::string tied_to(const OnnxConversion& net, const OnnxNode& node, const OnnxTensor& weight) {
  const OnnxTensor* bias = net.constant(node, 2);
  const std::string owner = net.owner_of(weight);
  const bool whole = !owner.empty() && weight.trained.begin()->second == product_of(weight.dims);
  if (!whole || bias == nullptr) return whole ? owner : std::string();
  const bool shared = has_folded_norm(node) ? !net.vector_of(*bias, product_of(bias->dims)).empty()
                                            : net.owner_of(*bias) == owner;
  return shared ? owner : std::string();
}

// A batch norm behind a convolution, with the name of the convolution's node: of an image, or of a volume
// whose depth is seen as more rows. Where the convolution is tied to one before, so is the norm.
NetworkTensor restored_norm(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from,
                            bool is_tied = false) {
  net.count_restored();
  const std::vector<std::int64_t>& shape = from.shape;
  const NetworkTensor image =
      shape.size() == 4 ? net.viewed(from, {shape[0], product_of({shape[1], shape[2]}), shape[3]}) : from;
  const OnnxTensor* bias = net.constant(node, 2);
  const std::int64_t count = bias == nullptr ? 0 : product_of(bias->dims);
  LayerKeys keys;
  if (is_tied && bias != nullptr) keys.emplace_back("tied_to", spec_text(net.vector_of(*bias, count)));
  const NetworkTensor to =
      net.builder().add("batch_norm", name_of_layer(node) + "/norm", {image}, image.shape, std::move(keys));
  if (!is_tied && bias != nullptr) net.set_vector(*bias, to.layer, count);
  return net.viewed(to, shape);
}

// Several images of a sample, as windows are, computed as one image of them below one another.
void images_below_one_another(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from,
                              const OnnxTensor& weight) {
  const std::vector<std::int64_t>& shape = from.shape;
  const auto sides = window(net, node, {.layer = from.layer, .shape = {shape[1], shape[2], shape[3]}},
                            {weight.dims[2], weight.dims[3]});
  const std::int64_t groups = whole_number_of(node, "group", 1), all = product_of({shape[0], shape[2]});
  const std::int64_t rows = sides ? product_of({sides->first.outputs(shape[2]), shape[0]}) : 0;
  if (!sides || groups < 1 || product_of({weight.dims[1], groups}) != shape[1] || rows < 1 ||
      sides->first.outputs(all) < rows || sides->second.outputs(shape[3]) < 1)
    return net.unsupported(node, "of several images of a sample");
  LayerKeys keys = {{"filters", spec_number(weight.dims[0])}};
  const bool folded = has_folded_norm(node), biased = node.inputs.size() > 2 && !folded;
  if (biased) keys.emplace_back("bias", spec_scalar("true"));
  if (biased) net.count_bias();
  if (groups != 1) keys.emplace_back("groups", spec_number(groups));
  NetworkTensor to = add_padded(net, "conv2d", node, net.viewed(from, {shape[1], all, shape[3]}), *sides,
                                weight.dims[0], std::move(keys));
  const std::int64_t each = sides->first.outputs(shape[2]), width = to.shape[2];
  if (to.shape[1] != rows)
    to = add_resized(net, "slice", name_of_layer(node), to, {weight.dims[0], rows, width});
  if (folded) to = restored_norm(net, node, to);
  OnnxSides out = {net.data(node, 0)->sides[0], {.size = weight.dims[0]}, {.size = each}, {.size = width}};
  net.set(node, net.viewed(to, {shape[0], weight.dims[0], each, width}), std::move(out));
}

void volume(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from, const OnnxTensor& weight) {
  const std::int64_t kernel = weight.dims[2];
  auto strides = whole_numbers(node, "strides"), pads = whole_numbers(node, "pads");
  const auto all = [](const std::vector<std::int64_t>& numbers, std::int64_t value) {
    return std::ranges::all_of(numbers, [&](auto number) { return number == value; });
  };
  const std::int64_t stride = strides.empty() ? 1 : strides[0];
  const bool plain = weight.dims[3] == kernel && weight.dims[4] == kernel && all(strides, stride) &&
                     stride > 0 && all(pads, kernel / 2) && kernel % 2 == 1 &&
                     whole_number_of(node, "group", 1) == 1;
  if (!plain) return net.unsupported(node, "of a volume by other than cubes");
  std::vector<std::int64_t> shape = {weight.dims[0]};
  for (std::size_t i = 1; i < 4; ++i) shape.push_back((from.shape[i] + stride - 1) / stride);
  const bool folded = has_folded_norm(node), biased = node.inputs.size() > 2 && !folded;
  if (biased) net.count_bias();
  const NetworkTensor to = net.builder().add("conv3d", name_of_layer(node), {from}, shape,
                                             {{"filters", spec_number(weight.dims[0])},
                                              {"kernel", spec_number(kernel)},
                                              {"stride", spec_number(stride)},
                                              {"bias", spec_scalar(biased ? "true" : "false")}});
  net.set(node, folded ? restored_norm(net, node, to) : to);
}

}  // namespace

// A sequence is an image of one row; volumes have a layer of their own, for cubes.
void convert_convolution(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& given) {
  const OnnxTensor* weight = net.constant(node, 1);
  if (weight != nullptr && weight->dims.size() == 4 && given.shape.size() == 4)
    return images_below_one_another(net, node, given, *weight);
  if (weight == nullptr || weight->dims.size() < 3 || weight->dims.size() != given.shape.size() + 1)
    return net.unsupported(node, weight == nullptr ? "with a computed weight" : "of another number of sides");
  if (weight->dims.size() == 5) return volume(net, node, given, *weight);
  const bool sequence = weight->dims.size() == 3;
  const NetworkTensor from = sequence ? net.viewed(given, {given.shape[0], 1, given.shape[1]}) : given;
  const auto sides = window(net, node, from, {weight->dims.begin() + 2, weight->dims.end()});
  if (!sides) return net.unsupported(node, "of no images");
  const std::int64_t groups = whole_number_of(node, "group", 1);
  if (groups < 1 || groups > from.shape[0] || product_of({weight->dims[1], groups}) != from.shape[0]) {
    if (net.builder().has_unsupported()) return net.unsupported(node);
    net.builder().fail(
        fmt::format("{}: a weight of {} channels in {} group{}; expected {} in all, as its input has",
                    name_of_layer(node), weight->dims[1], groups, groups == 1 ? "" : "s", from.shape[0]));
  }
  LayerKeys keys = {{"filters", spec_number(weight->dims[0])}};
  const OnnxTensor* bias = net.constant(node, 2);
  const bool zeros =  // weights may be ConstantOfShape; a number that is expanded stands for no bias
      bias != nullptr && is_untrained_zero(*bias) && net.producer(node, 2, "Expand") != nullptr;
  const bool folded = has_folded_norm(node), biased = node.inputs.size() > 2 && !folded && !zeros;
  if (biased) keys.emplace_back("bias", spec_scalar("true"));
  if (biased) net.count_bias();
  if (groups != 1) keys.emplace_back("groups", spec_number(groups));
  const std::string owner = tied_to(net, node, *weight);
  if (!owner.empty()) keys.emplace_back("tied_to", spec_text(owner));
  NetworkTensor to = add_padded(net, "conv2d", node, from, *sides, weight->dims[0], std::move(keys));
  if (owner.empty()) net.set_owner(*weight, to.layer);
  if (owner.empty() && bias != nullptr && !folded) net.set_owner(*bias, to.layer);
  if (folded) to = restored_norm(net, node, to, !owner.empty());
  set_seen(net, node, to, sequence);
}

void convert_transposed(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const OnnxTensor* weight = net.constant(node, 1);
  if (weight == nullptr || weight->dims.size() != 4)
    return net.unsupported(node, "without a weight of four sides");
  const auto sides = window(net, node, from, {weight->dims[2], weight->dims[3]});
  const auto to = sides ? add_transposed(net.builder(), node, from, weight->dims[1], *sides) : std::nullopt;
  to ? net.set(node, *to) : net.unsupported(node, "in groups, or not square");
}

void convert_pooling(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& given) {
  const std::vector<std::int64_t> kernel = whole_numbers(node, "kernel_shape");
  const bool sequence = kernel.size() == 1 && given.shape.size() == 2;
  const NetworkTensor from = sequence ? net.viewed(given, {given.shape[0], 1, given.shape[1]}) : given;
  const auto sides = window(net, node, from, kernel);
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
  const char* type = node.op == "MaxPool" ? "max_pool" : "avg_pool";
  set_seen(net, node, add_padded(net, type, node, from, *sides, from.shape[0], {}), sequence);
}

}  // namespace tbdsim
