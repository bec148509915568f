// An ONNX graph as a model file. A layer's backward pass is tbd-sim's own, so only the forward graph is read.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/network.h"
#include "simulate/import/network_files.h"
#include "simulate/import/onnx_operators.h"

namespace tbdsim {
namespace {

void read_input(const OnnxGraph& graph, const GivenValues& given, OnnxConversion& net) {
  const NetworkBuilder& builder = net.builder();
  if (graph.inputs.empty()) builder.fail("no input without a value; expected one, the samples");
  if (graph.inputs.size() > 1)
    builder.fail(fmt::format("{} inputs; expected one, the samples", graph.inputs.size()));
  std::vector<std::int64_t> shape = graph.inputs[0].dims;
  if (shape.size() < 2)
    builder.fail("the input has no batch before its sides; expected batch x channels x height x width");
  shape.erase(shape.begin());
  if (const auto size = given.find("image_size"); size != given.end() && shape.size() == 3) {
    const auto number = parse_whole_number(size->second);
    if (!number || *number < 1)
      throw UsageError("--set image_size: " + in_quotes(size->second) + "; expected a whole number");
    shape[1] = shape[2] = *number;
  }
  if (std::find(shape.begin(), shape.end(), -1) != shape.end())
    builder.fail("the input's height and width are symbolic; expected --set image_size=224, say");
  net.set(graph.inputs[0].name, net.builder().input(shape));
}

// A weight in other sides.
void convert_constant(OnnxConversion& net, const OnnxNode& node) {
  const OnnxTensor* weight = net.constant(node, 0);
  if (weight == nullptr || node.outputs.empty()) return net.unsupported(node, "of constants");
  OnnxTensor to{.dims = weight->dims};
  if (node.op == "Transpose") std::reverse(to.dims.begin(), to.dims.end());
  if (const OnnxTensor* dims = net.constant(node, 1); node.op == "Reshape" && dims != nullptr)
    to.dims = dims->integers;
  const bool known = node.op == "Transpose" || node.op == "Reshape" || node.op == "Unsqueeze" ||
                     node.op == "Squeeze" || node.op == "Cast" || node.op == "Identity";
  if (!known) return net.unsupported(node, "of constants");
  net.set_constant(node.outputs[0], std::move(to));
}

// Numbers that a network computes of its shapes, as x.view(x.size(0), -1) does.
bool is_beside_data(const OnnxConversion& net, const OnnxNode& node) {
  if (node.op == "Shape" || node.op == "Size") return true;
  bool any = false;
  for (const std::string& input : node.inputs) {
    const auto found = net.data(input);
    if (!found) continue;
    if (found->is_data) return false;
    any = true;
  }
  return any;
}

void convert(OnnxConversion& net, const OnnxNode& node) {
  const OnnxTensor* dims = node.op == "ConstantOfShape" ? net.constant(node, 0) : nullptr;
  if (dims != nullptr && !node.outputs.empty())
    return net.set_constant(node.outputs[0], {.dims = dims->integers});
  if (is_beside_data(net, node)) {
    for (const std::string& output : node.outputs)
      net.set(output, {.layer = {}, .shape = {}, .is_data = false});
    return;
  }
  const auto from = net.data(node, 0);
  if (!from) return convert_constant(net, node);
  if (!from->is_data) return net.unsupported(node, "of a shape");
  if (!convert_operator(net, node, *from)) net.unsupported(node);
}

// The name of the output without a softmax at its end, which the loss computes.
std::string without_softmax(const OnnxConversion& net, const std::string& output) {
  const OnnxNode* node = net.producer(output);
  const bool is_softmax = node != nullptr && (node->op == "Softmax" || node->op == "LogSoftmax");
  return is_softmax && !node->inputs.empty() ? node->inputs[0] : output;
}

}  // namespace

ImportedFile onnx_network(const OnnxGraph& graph, const GivenValues& given) {
  OnnxConversion net(graph);
  read_input(graph, given, net);
  for (const OnnxNode& node : graph.nodes) convert(net, node);
  const std::string output = graph.outputs.empty() ? std::string() : graph.outputs.front();
  const auto last = net.data(without_softmax(net, output));
  if (!last && net.builder().has_unsupported()) return net.builder().finish({}, "ONNX");
  if (!last) net.builder().fail(in_quotes(output) + " is the output and no node computes it");
  if (net.may_have_folded_norms())
    net.builder().note(
        "no batch norm: if the network has some, the export folded them into its convolutions "
        "(torch.onnx.export with training=TrainingMode.TRAINING and do_constant_folding=False keeps them)");
  return net.builder().finish(*last, "ONNX");
}

}  // namespace tbdsim
