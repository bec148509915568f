// Sums and products of ONNX: of matrices, of tensors, with numbers.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/spec_writer.h"
#include "simulate/import/network.h"
#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_operators.h"

namespace tbdsim {
namespace {

// x * sigmoid(x) and x * hardsigmoid(x), as exports write activations that frameworks compute in one
// kernel.
std::optional<NetworkTensor> gated(OnnxConversion& net, const OnnxNode& node) {
  for (const std::size_t gate : {std::size_t{0}, std::size_t{1}}) {
    if (node.inputs.size() != 2) return std::nullopt;
    const std::string &factor = node.inputs[gate], &other = node.inputs[1 - gate];
    const OnnxNode* sigmoid = net.producer_for_one(factor);
    if (sigmoid == nullptr || (sigmoid->op != "Sigmoid" && sigmoid->op != "HardSigmoid") ||
        sigmoid->inputs.empty() || sigmoid->inputs[0] != other)
      continue;
    const auto from = net.data(node, 1 - gate);
    if (!from) continue;
    return net.builder().add(sigmoid->op == "Sigmoid" ? "silu" : "hardswish", name_of_layer(node), {*from},
                             from->shape);
  }
  return std::nullopt;
}

}  // namespace

void convert_sum(OnnxConversion& net, const OnnxNode& node, const NetworkTensor&) {
  std::vector<NetworkTensor> terms;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (const auto term = net.data(node, i)) terms.push_back(*term);
  }
  const bool alike =
      std::all_of(terms.begin(), terms.end(), [&](const auto& t) { return t.shape == terms[0].shape; });
  if (terms.size() == node.inputs.size() && terms.size() > 1 && alike)
    return net.set(node, net.builder().add("add", name_of_layer(node), terms, terms[0].shape));
  if (terms.size() == 1 && node.inputs.size() == 2) {  // a bias or a number
    const OnnxTensor* other = net.constant(node, net.data(node, 0) ? 1 : 0);
    if (other == nullptr) return net.unsupported(node, "of tensors of several shapes");
    const std::int64_t features = terms[0].shape.back();
    if (terms[0].shape.size() < 3 && other->dims == std::vector<std::int64_t>{features}) {
      // Behind a matrix product: its bias.
      return net.set(node, net.builder().add("bias", name_of_layer(node), terms, terms[0].shape));
    }
    const std::int64_t others = product_of(other->dims);
    if (others == 1 || others == terms[0].shape.front())
      return net.set(node, net.builder().add("scale", name_of_layer(node), terms, terms[0].shape));
  }
  net.unsupported(node, "of tensors of several shapes");
}

// A number, or one for each channel, that is no parameter: y = c x.
void convert_scale(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const OnnxTensor* other = net.constant(node, 1);
  // Numbers that are drawn beside the data, as stochastic depth does, are a factor for each sample.
  const auto beside = net.data(node, 1);
  const bool factor = beside && !beside->is_data;
  if (!factor && (other == nullptr || product_of(other->dims) > product_of(from.shape)))
    return net.unsupported(node, "of tensors of several shapes");
  net.set(node, net.builder().add("scale", name_of_layer(node), {from}, from.shape));
}

void convert_product(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  if (auto activation = gated(net, node)) return net.set(node, std::move(*activation));
  auto other = net.data(node, 1);
  if (!other || !other->is_data) return convert_scale(net, node, from);
  NetworkTensor large = from, small = *other;
  if (product_of(small.shape) > product_of(large.shape)) std::swap(small, large);
  bool spreads = small.shape.size() == large.shape.size();
  for (std::size_t i = 0; spreads && i < small.shape.size(); ++i)
    spreads = small.shape[i] == 1 || small.shape[i] == large.shape[i];
  if (!spreads) return net.unsupported(node, "of tensors of several shapes");
  net.set(node, net.builder().add("multiply", name_of_layer(node), {large, small}, large.shape));
}

void convert_matrix_product(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const OnnxTensor* weight = net.constant(node, 1);
  if (weight == nullptr || weight->dims.size() != 2) return net.unsupported(node, "of two computed tensors");
  const bool transposed = node.op == "Gemm" && whole_number_of(node, "transB", 0) == 1;
  const std::int64_t inputs = weight->dims[transposed ? 1 : 0], outputs = weight->dims[transposed ? 0 : 1];
  const bool positions =
      from.shape.size() > 1 && from.shape.back() == inputs && product_of(from.shape) != inputs;
  if (!positions && product_of(from.shape) != inputs) {
    if (net.builder().has_unsupported()) return net.unsupported(node);
    net.builder().fail(fmt::format("{}: a weight for {} features and an input of {}", name_of_layer(node),
                                   inputs, product_of(from.shape)));
  }
  std::vector<std::int64_t> shape = positions ? from.shape : std::vector<std::int64_t>{outputs};
  shape.back() = outputs;
  LayerKeys keys = {{"outputs", spec_number(outputs)}};
  if (node.op == "MatMul" || node.inputs.size() < 3) keys.emplace_back("bias", spec_scalar("false"));
  if (positions) keys.emplace_back("per_position", spec_scalar("true"));
  net.set(node, net.builder().add("fully_connected", name_of_layer(node), {from}, std::move(shape),
                                  std::move(keys)));
}

}  // namespace tbdsim
