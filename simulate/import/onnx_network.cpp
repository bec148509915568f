// An ONNX graph as a model file. A layer's backward pass is tbd-sim's own, so only the forward graph is read.
#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/network.h"
#include "simulate/import/network_files.h"
#include "simulate/import/onnx_constants.h"
#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_operators.h"

namespace tbdsim {
namespace {

// A batch that is a name: a prime that is no size of a network, so that sizes made of it are told from
// others.
constexpr std::int64_t kNamedBatch = 7919;

// The side that `--set NAME=128` gives; -1 where it gives none.
std::int64_t given_side(const GivenValues& given, const std::string& name) {
  const auto found = name.empty() ? given.end() : given.find(name);
  if (found == given.end()) return -1;
  const auto number = parse_whole_number(found->second);
  if (!number || *number < 1)
    throw UsageError("--set " + name + ": " + in_quotes(found->second) + "; expected a whole number");
  return *number;
}

std::vector<std::int64_t> sides_of(const OnnxInput& input, const GivenValues& given,
                                   const NetworkBuilder& builder) {
  std::vector<std::int64_t> shape = input.dims;
  const bool image = shape.size() == 4;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    const std::string name = i < input.symbols.size() ? input.symbols[i] : "";
    const std::int64_t size = image && i > 1 ? given_side(given, "image_size") : -1;
    if (size > 0) shape[i] = size;
    if (shape[i] == -1) shape[i] = given_side(given, name);
    if (shape[i] > 0) continue;
    if (image && i > 1)
      builder.fail("the input's height and width are symbolic; expected --set image_size=224, say");
    builder.fail(fmt::format("side {} of the input {} is {}; expected its size, as --set {}=128", i + 1,
                             in_quotes(input.name), name.empty() ? "symbolic" : "named " + in_quotes(name),
                             name.empty() ? "NAME" : name));
  }
  shape.erase(shape.begin());
  return shape;
}

void read_inputs(const std::vector<const OnnxInput*>& inputs, const GivenValues& given, OnnxConversion& net) {
  const NetworkBuilder& builder = net.builder();
  if (inputs.empty()) builder.fail("no input without a value; expected one, the samples");
  bool first = true;
  for (const OnnxInput* input : inputs) {
    if (input->dims.size() < (input->real ? 2U : 1U)) {
      if (input->real)
        builder.fail("the input has no batch before its sides; expected batch x channels x height x width");
      continue;
    }
    std::vector<std::int64_t> shape = sides_of(*input, given, builder);
    if (shape.empty()) shape = {1};
    const NetworkTensor tensor = net.builder().input(shape, first ? "data" : input->name);
    OnnxSides sides = batch_and(shape);
    sides.resize(input->dims.size());
    net.set(input->name, {.layer = tensor, .sides = std::move(sides), .places = {}, .whole = !input->real});
    first = false;
  }
}

// Names that the output needs, over the nodes that make them.
std::set<std::string> needed_for(const OnnxGraph& graph, const std::string& output) {
  std::set<std::string> needed = {output};
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool used =
        std::ranges::any_of(node->outputs, [&](const auto& name) { return needed.contains(name); });
    if (used) needed.insert(node->inputs.begin(), node->inputs.end());
  }
  return needed;
}

void convert(OnnxConversion& net, const OnnxNode& node) {
  bool computed = false, whole = true, of_sequence = false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxData* data = net.data(node, i);
    computed |= data != nullptr;
    whole &= data == nullptr || data->whole;
    of_sequence |= net.producer(node, i, "SplitToSequence") != nullptr;
  }
  if (of_sequence)
    return node.op == "SequenceAt" ? convert_sequence_part(net, node)
                                   : net.unsupported(node, "of a sequence");
  // A constant as another tensor's type is one whatever that tensor is computed from.
  const bool of_constant = node.op == "CastLike" && net.data(node, 0) == nullptr;
  if (!computed || of_constant || node.op == "Shape" || node.op == "Size") {
    if (!fold_constants(net, node)) net.unsupported(node, "of constants");
    return;
  }
  const OnnxTensor* table = net.constant(node, 0);
  if (whole && !(node.op == "Gather" && table != nullptr && table->real && table->dims.size() == 2))
    return convert_indices(net, node);
  if (!convert_operator(net, node)) net.unsupported(node);
}

// The name of the output without a softmax at its end, which the loss computes.
std::string without_softmax(const OnnxConversion& net, const std::string& output) {
  const OnnxNode* node = net.producer(output);
  const bool is_softmax = node != nullptr && (node->op == "Softmax" || node->op == "LogSoftmax");
  return is_softmax && !node->inputs.empty() ? node->inputs[0] : output;
}

// Refuses operators that the model's own functions define.
void require_no_functions(const OnnxGraph& graph) {
  for (const OnnxNode& node : graph.nodes) {
    if (graph.functions.contains(node.op))
      NetworkBuilder(graph.file, "")
          .fail(fmt::format("{} is a function of the model itself; expected its nodes in its place: "
                            "onnx.save(onnx.inliner.inline_local_functions(onnx.load({})), \"inlined.onnx\")",
                            in_quotes(node.op), in_quotes(graph.file)));
  }
}

// Refuses a network of whole numbers in the place of reals, which is made of a trained one and is not
// trained.
void require_reals(const OnnxGraph& graph) {
  constexpr std::string_view kOfIntegers[] = {"QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv",
                                              "QLinearMatMul",  "ConvInteger",           "MatMulInteger"};
  for (const OnnxNode& node : graph.nodes) {
    if (std::ranges::find(kOfIntegers, node.op) != std::end(kOfIntegers))
      NetworkBuilder(graph.file, "")
          .fail(fmt::format(
              "is quantized for inference ({}); expected the network before that, as it is trained",
              node.op));
  }
}

}  // namespace

ImportedFile onnx_network(const OnnxGraph& graph, const GivenValues& given) {
  require_reals(graph);
  require_no_functions(graph);
  const std::string output = graph.outputs.empty() ? std::string() : graph.outputs.front();
  const std::set<std::string> needed = needed_for(graph, output);
  std::vector<const OnnxInput*> inputs;
  for (const OnnxInput& input : graph.inputs) {
    if (needed.contains(input.name)) inputs.push_back(&input);
  }
  // The samples before indices and masks beside them.
  std::stable_partition(inputs.begin(), inputs.end(), [](const OnnxInput* input) { return input->real; });
  const bool named = inputs.empty() || inputs[0]->dims.empty() || inputs[0]->dims[0] < 1;
  constexpr std::int64_t kLargestBatch = 1'000'000;
  if (!named && inputs[0]->dims[0] > kLargestBatch)
    NetworkBuilder(graph.file, "")
        .fail(fmt::format("a batch of {}; expected up to {}", inputs[0]->dims[0], kLargestBatch));
  OnnxConversion net(graph, named ? kNamedBatch : inputs[0]->dims[0]);
  read_inputs(inputs, given, net);
  std::size_t left_out = 0;
  for (const OnnxNode& node : graph.nodes) {
    const bool used =
        std::ranges::any_of(node.outputs, [&](const auto& name) { return needed.contains(name); });
    if (used) convert(net, node);
    if (!used) ++left_out;
  }
  if (left_out > 0)
    net.builder().note(fmt::format("{} nodes that the first output does not need are left out", left_out));
  if (const OnnxNode* node = net.producer(output); node != nullptr && node->op == "SplitToSequence")
    net.unsupported(*node, "as the output");
  const OnnxData* last = net.data(without_softmax(net, output));
  if (last == nullptr && net.builder().has_unsupported()) return net.builder().finish({}, "ONNX");
  if (last == nullptr) net.builder().fail(in_quotes(output) + " is the output and no node computes it");
  if (net.restored_norms() > 0)
    net.builder().note(fmt::format("{} batch norms that the export folded into convolutions are layers again",
                                   net.restored_norms()));
  if (net.may_have_folded_norms())
    net.builder().note(
        "no batch norm: if the network has some, the export folded them into its convolutions "
        "(torch.onnx.export keeps them with dynamo=True and optimize=False, or with "
        "training=TrainingMode.TRAINING and do_constant_folding=False)");
  return net.builder().finish(net.viewed(*last), "ONNX");
}

}  // namespace tbdsim
