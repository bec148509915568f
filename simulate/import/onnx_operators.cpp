#include "simulate/import/onnx_operators.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "hwspecs/base/spec_writer.h"
#include "simulate/import/network.h"
#include "simulate/import/onnx_node.h"

namespace tbdsim {
namespace {

void batch_norm(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  net.count_norm();
  net.set(node, net.builder().add("batch_norm", name_of_layer(node), {from}, from.shape));
}

void instance_norm(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  net.set(node, net.builder().add("instance_norm", name_of_layer(node), {from}, from.shape,
                                  {{"affine", spec_scalar("true")}}));
}

void local_response_norm(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  constexpr std::int64_t kUsual = 5;
  net.set(node, net.builder().add("lrn", name_of_layer(node), {from}, from.shape,
                                  {{"window", spec_number(whole_number_of(node, "size", kUsual))}}));
}

void clip(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const auto bound = [&](const char* name, std::size_t input) -> std::optional<double> {
    if (const auto found = node.attributes.find(name); found != node.attributes.end())
      return found->second.number;
    const OnnxTensor* tensor = net.constant(node, input);
    return tensor == nullptr || tensor->numbers.empty() ? std::nullopt : std::optional(tensor->numbers[0]);
  };
  constexpr double kSix = 6;
  const bool six = bound("min", 1) == 0.0 && bound("max", 2) == kSix;
  net.set(node, net.builder().add(six ? "relu6" : "relu", name_of_layer(node), {from}, from.shape));
}

void dropout(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  double ratio = 0.5;  // the format's default
  if (const auto found = node.attributes.find("ratio"); found != node.attributes.end())
    ratio = found->second.number;
  if (const OnnxTensor* given = net.constant(node, 1); given != nullptr && !given->numbers.empty())
    ratio = given->numbers[0];
  if (!(ratio > 0 && ratio < 1)) return net.set(node, from);
  net.set(node, net.builder().add("dropout", name_of_layer(node), {from}, from.shape,
                                  {{"keep", spec_scalar(fmt::format("{:.6g}", 1 - ratio))}}));
}

using Convert = void (*)(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);

// Operators of one layer without keys that keep the shape.
struct SameShape {
  std::string_view op;
  const char* layer;
};
constexpr SameShape kSameShape[] = {{"Relu", "relu"},          {"LeakyRelu", "relu"},
                                    {"PRelu", "relu"},         {"Elu", "relu"},
                                    {"Sigmoid", "sigmoid"},    {"Tanh", "tanh"},
                                    {"Gelu", "gelu"},          {"HardSwish", "hardswish"},
                                    {"Softmax", "softmax"},    {"HardSigmoid", "hardsigmoid"},
                                    {"LogSoftmax", "softmax"}, {"LayerNormalization", "layer_norm"}};

struct Row {
  std::string_view op;
  Convert convert;
};
constexpr Row kRows[] = {
    {"Conv", convert_convolution},
    {"ConvTranspose", convert_transposed},
    {"MaxPool", convert_pooling},
    {"AveragePool", convert_pooling},
    {"GlobalAveragePool", convert_mean},
    {"ReduceMean", convert_mean},
    {"Pad", convert_pad},
    {"BatchNormalization", batch_norm},
    {"InstanceNormalization", instance_norm},
    {"LRN", local_response_norm},
    {"Clip", clip},
    {"Dropout", dropout},
    {"Add", convert_sum},
    {"Sum", convert_sum},
    {"Mul", convert_product},
    {"Div", convert_scale},
    {"Sub", convert_scale},
    {"Gemm", convert_matrix_product},
    {"MatMul", convert_matrix_product},
    {"Concat", convert_concat},
    {"Reshape", convert_reshape},
    {"Transpose", convert_transpose},
    {"Resize", convert_upsample},
    {"Upsample", convert_upsample},
    {"DepthToSpace", convert_depth_to_space},
    // Operators that compute nothing in training, or whose kernels a framework does not launch.
    {"Identity", convert_flatten},
    {"Cast", convert_flatten},
    {"Squeeze", convert_flatten},
    {"Unsqueeze", convert_flatten},
    {"Flatten", convert_flatten}};

}  // namespace

bool convert_operator(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  if (const auto* const same = std::ranges::find(kSameShape, node.op, &SameShape::op);
      same != std::end(kSameShape)) {
    net.set(node, net.builder().add(same->layer, name_of_layer(node), {from}, from.shape));
    return true;
  }
  const auto* const row = std::ranges::find(kRows, node.op, &Row::op);
  if (row == std::end(kRows)) return false;
  row->convert(net, node, from);
  return true;
}

}  // namespace tbdsim
