#include "simulate/import/onnx_operators.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "hwspecs/base/spec_writer.h"
#include "simulate/import/network.h"
#include "simulate/import/onnx_constants.h"
#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_patterns.h"

namespace tbdsim {
namespace {

// True where sides of a tensor may be seen as one: their product is known.
bool has_count(const NetworkTensor& tensor) { return product_of(tensor.shape) < kLargestProduct; }

// Over the batch and all sides but the channels, the second: images of windows, and the depth of volumes, are
// seen as rows of one image.
void batch_norm(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  net.count_norm();
  if (!has_count(from)) return net.unsupported(node, "of too many elements");
  const OnnxSides sides = net.data(node, 0)->sides;
  NetworkTensor image = from;
  if (from.shape.size() == 2 && sides.size() == 3)  // a sequence
    image = net.viewed(from, {from.shape[0], 1, from.shape[1]});
  if (from.shape.size() > 3 && sides.size() > 2)
    image = net.viewed(
        from, {sides[1].size, product_of(from.shape) / sides[1].size / from.shape.back(), from.shape.back()});
  net.set(node, net.builder().add("batch_norm", name_of_layer(node), {image}, image.shape), sides);
}

// A group norm is exported as an instance norm of an image {groups, elements}, whose scale and shift follow
// it.
void instance_norm(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const OnnxNode* reshape = net.producer(node, 0, "Reshape");
  const OnnxData* whole = reshape == nullptr ? nullptr : net.data(*reshape, 0);
  if (whole != nullptr && from.shape.size() == 2) {
    const NetworkTensor image = net.copied(*whole);
    OnnxConversion::Open open{
        .type = "group_norm", .from = image, .keys = {{"groups", spec_number(from.shape[0])}}};
    if (image.shape.size() == 3 && image.shape[0] % from.shape[0] == 0) {
      LayerKeys keys = open.keys;
      keys.emplace_back("affine", spec_scalar("false"));
      net.set(node, net.builder().add("group_norm", name_of_layer(node), {image}, image.shape, keys),
              net.data(node, 0)->sides);
      return net.set_open(node, std::move(open));
    }
  }
  if (from.shape.size() != 3) {
    const NetworkTensor image = net.viewed(from, {from.shape[0], 1, product_of(from.shape) / from.shape[0]});
    return net.set(node,
                   net.builder().add("instance_norm", name_of_layer(node), {image}, image.shape,
                                     {{"affine", spec_scalar("true")}}),
                   net.data(node, 0)->sides);
  }
  net.set(node, net.builder().add("instance_norm", name_of_layer(node), {from}, from.shape,
                                  {{"affine", spec_scalar("true")}}));
}

void group_norm(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  if (from.shape.size() != 3) return net.unsupported(node, "of no images");
  net.set(node, net.builder().add("group_norm", name_of_layer(node), {from}, from.shape,
                                  {{"groups", spec_number(whole_number_of(node, "num_groups", 1))}}));
}

// Over the last sides; several are seen as one.
void layer_norm(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  const OnnxTensor* scale = net.constant(node, 1);
  LayerKeys keys;
  const OnnxTensor* shift = net.constant(node, 2);
  const bool zeros = shift != nullptr && is_untrained_zero(*shift);
  if (node.op == "LayerNormalization" && (node.inputs.size() < 3 || zeros))
    keys.emplace_back("bias", spec_scalar("false"));
  const std::string owner = scale == nullptr ? "" : net.owner_of(*scale);
  if (!owner.empty()) keys.emplace_back("tied_to", spec_text(owner));
  const std::int64_t features = scale == nullptr ? from.shape.back() : product_of(scale->dims);
  NetworkTensor rows = from;
  if (features > 0 && features != from.shape.back() && product_of(from.shape) % features == 0)
    rows = net.viewed(from, {product_of(from.shape) / features, features});
  const char* type = node.op == "LayerNormalization" ? "layer_norm" : "rms_norm";
  const NetworkTensor to = net.builder().add(type, name_of_layer(node), {rows}, rows.shape, std::move(keys));
  if (scale != nullptr && owner.empty()) net.set_owner(*scale, to.layer);
  net.set(node, to, net.data(node, 0)->sides);
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
    const std::vector<double> values = net.values(node, input);
    return values.empty() ? std::nullopt : std::optional(values[0]);
  };
  constexpr double kSix = 6;
  const bool six = bound("min", 1) == 0.0 && bound("max", 2) == kSix;
  net.set(node, net.builder().add(six ? "relu6" : "relu", name_of_layer(node), {from}, from.shape));
}

void dropout(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  double ratio = 0.5;  // the format's default
  if (const auto found = node.attributes.find("ratio"); found != node.attributes.end())
    ratio = found->second.number;
  if (const std::vector<double> given = net.values(node, 1); !given.empty()) ratio = given[0];
  const std::vector<double> training = net.values(node, 2);
  const bool off = !training.empty() && training[0] == 0;
  if (!(ratio > 0 && ratio < 1) || off) return net.set(node, from);
  net.set(node, net.builder().add("dropout", name_of_layer(node), {from}, from.shape,
                                  {{"keep", spec_scalar(fmt::format("{:.6g}", 1 - ratio))}}));
}

// Over one side; another than the last is moved there and back. Before opset 13 it went over the sides from
// `axis` on, the second if it is not given, as one.
void softmax(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from) {
  if (!has_count(from)) return net.unsupported(node, "of too many elements");
  const OnnxSides sides = net.data(node, 0)->sides;
  const auto rank = std::ssize(sides);
  constexpr std::int64_t kOverOneSide = 13;
  const bool joined = net.is_before(kOverOneSide);
  std::int64_t axis = whole_number_of(node, "axis", joined ? 1 : -1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return net.unsupported(node, "over no such side");
  if (sides[static_cast<std::size_t>(axis)].batch) return net.unsupported(node, "over the batch");
  const std::string name = name_of_layer(node);
  if (axis + 1 == rank) return net.set(node, net.builder().add("softmax", name, {from}, from.shape), sides);
  if (joined) {
    const OnnxSides behind(sides.begin() + axis, sides.end());
    if (std::ranges::any_of(behind, &OnnxSide::batch)) return net.unsupported(node, "over the batch");
    const std::int64_t together = product_of(shape_of(behind)), all = product_of(from.shape);
    const NetworkTensor rows =
        net.viewed(from, all == together ? std::vector{all} : std::vector{all / together, together});
    return net.set(node, net.builder().add("softmax", name, {rows}, rows.shape), sides);
  }
  OnnxData moved{.layer = from, .sides = {}, .places = {}, .name = name + "/in"};
  OnnxData back{.layer = {}, .sides = sides, .places = {}, .name = name + "/out"};
  for (std::int64_t i = 0; i < rank; ++i) {
    const std::int64_t place = i + 1 == rank ? axis : i < axis ? i : i + 1;
    moved.sides.push_back(sides[static_cast<std::size_t>(place)]);
    moved.places.push_back(static_cast<std::size_t>(place));
    back.places.push_back(static_cast<std::size_t>(i < axis ? i : i == axis ? rank - 1 : i - 1));
  }
  const NetworkTensor rows = net.copied(moved);
  back.layer = net.builder().add("softmax", name, {rows}, rows.shape);
  net.set(node, net.copied(back), sides);
}

void same(OnnxConversion& net, const OnnxNode& node) {
  const OnnxData from = *net.data(node, 0);
  if (node.outputs.empty()) return;
  net.set(node.outputs[0], from);
  if (const OnnxConversion::Open* open = net.open(node.inputs[0])) net.set_open(node, *open);
}

using Convert = void (*)(OnnxConversion& net, const OnnxNode& node);
using ConvertFrom = void (*)(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);

// Operators of one layer without keys that keep the shape.
struct SameShape {
  std::string_view op;
  const char* layer;
};
constexpr SameShape kSameShape[] = {{"Relu", "relu"},
                                    {"LeakyRelu", "relu"},
                                    {"Elu", "relu"},
                                    {"Selu", "relu"},
                                    {"Celu", "relu"},
                                    {"ThresholdedRelu", "relu"},
                                    {"Sigmoid", "sigmoid"},
                                    {"Tanh", "tanh"},
                                    {"Gelu", "gelu"},
                                    {"HardSwish", "hardswish"},
                                    {"Swish", "silu"},
                                    {"HardSigmoid", "hardsigmoid"},
                                    {"Exp", "pointwise"},
                                    {"Log", "pointwise"},
                                    {"Sqrt", "pointwise"},
                                    {"Erf", "pointwise"},
                                    {"Neg", "scale"},
                                    {"Abs", "pointwise"},
                                    {"Reciprocal", "pointwise"},
                                    {"Sin", "pointwise"},
                                    {"Cos", "pointwise"},
                                    {"Softplus", "pointwise"},
                                    {"Softsign", "pointwise"},
                                    {"Mish", "pointwise"},
                                    {"Sign", "pointwise"},
                                    {"Floor", "pointwise"},
                                    {"Ceil", "pointwise"},
                                    {"Round", "pointwise"},
                                    {"Atan", "pointwise"},
                                    {"Trilu", "scale"},
                                    {"CumSum", "pointwise"}};

// Operators that read the elements in the order of their sides.
struct FromRow {
  std::string_view op;
  ConvertFrom convert;
};
constexpr FromRow kFromRows[] = {{"Conv", convert_convolution},
                                 {"ConvTranspose", convert_transposed},
                                 {"MaxPool", convert_pooling},
                                 {"AveragePool", convert_pooling},
                                 {"BatchNormalization", batch_norm},
                                 {"InstanceNormalization", instance_norm},
                                 {"GroupNormalization", group_norm},
                                 {"LayerNormalization", layer_norm},
                                 {"RMSNormalization", layer_norm},
                                 {"SimplifiedLayerNormalization", layer_norm},
                                 {"LRN", local_response_norm},
                                 {"Clip", clip},
                                 {"Dropout", dropout},
                                 {"Softmax", softmax},
                                 {"LogSoftmax", softmax},
                                 {"Resize", convert_upsample},
                                 {"Upsample", convert_upsample},
                                 {"DepthToSpace", convert_depth_to_space}};

struct Row {
  std::string_view op;
  Convert convert;
};
constexpr Row kRows[] = {
    {"Add", convert_pair},
    {"Sum", convert_pair},
    {"Mul", convert_pair},
    {"Div", convert_pair},
    {"Sub", convert_pair},
    {"Pow", convert_pair},
    {"Min", convert_pair},
    {"Max", convert_pair},
    {"PRelu", convert_pair},
    {"Mod", convert_pair},
    {"Where", convert_pair},
    {"Gemm", convert_matrix_product},
    {"MatMul", convert_matrix_product},
    {"Einsum", convert_einsum},
    {"Concat", convert_concat},
    {"Split", convert_split},
    {"Slice", convert_slice},
    {"Gather", convert_gather},
    {"GatherElements", convert_gather_elements},
    {"Expand", convert_expand},
    {"Tile", convert_expand},
    {"Pad", convert_pad},
    {"GlobalAveragePool", convert_reduction},
    {"GlobalMaxPool", convert_reduction},
    {"ReduceMean", convert_reduction},
    {"ReduceSum", convert_reduction},
    {"ReduceMax", convert_reduction},
    {"ReduceMin", convert_reduction},
    {"ReduceL1", convert_reduction},
    {"ReduceL2", convert_reduction},
    {"ReduceSumSquare", convert_reduction},
    {"ReduceLogSumExp", convert_reduction},
    {"Reshape", convert_reshape},
    {"Flatten", convert_reshape},
    {"Squeeze", convert_reshape},
    {"Unsqueeze", convert_reshape},
    {"Transpose", convert_transpose},
    // Operators that compute nothing in training, or whose kernels a framework does not launch.
    {"Identity", same},
    {"SplitToSequence", same},  // SequenceAt takes the part
    {"Cast", same},
    {"CastLike", same}};

bool compares(std::string_view op) {
  static constexpr std::string_view kOps[] = {"Equal",
                                              "Less",
                                              "LessOrEqual",
                                              "Greater",
                                              "GreaterOrEqual",
                                              "Not",
                                              "And",
                                              "Or",
                                              "IsNaN",
                                              "IsInf",
                                              "ArgMax",
                                              "Xor",
                                              "RandomUniformLike",
                                              "RandomNormalLike",
                                              "Bernoulli"};
  return std::ranges::find(kOps, op) != std::end(kOps);
}

}  // namespace

void convert_indices(OnnxConversion& net, const OnnxNode& node) {
  OnnxData to;
  std::optional<OnnxSides> sides = OnnxSides{};
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const bool parameter = i > 0 && (node.op == "Slice" || node.op == "Reshape" || node.op == "Unsqueeze" ||
                                     node.op == "Squeeze" || node.op == "CumSum" || node.op == "Gather");
    if (const OnnxData* data = net.data(node, i)) {
      if (to.layer.layer.empty()) to = *data;
      if (sides && !parameter) sides = spread_sides(*sides, data->sides);
    } else if (const OnnxTensor* tensor = net.constant(node, i); tensor != nullptr && sides && !parameter) {
      sides = spread_sides(*sides, sides_beside(tensor->dims, to.sides, net.batch()));
    }
  }
  to.whole = true;
  to.places.clear();
  if (sides) to.sides = *sides;
  if (node.op == "Unsqueeze" || node.op == "Squeeze") {
    if (!change_rank(net, node, to)) return net.unsupported(node, "by sides that do not fit");
  }
  const std::vector<std::int64_t> dims = dims_of(to.sides, net.batch());
  if (node.op == "Reshape") {
    if (const auto other = reshaped_sides(to.sides, net.whole_values(node, 1), net.batch()))
      to.sides = *other;
  } else if (node.op == "Slice") {
    if (const auto left = sliced_dims(net, node, dims); left.size() == to.sides.size()) {
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (left[i] != dims[i]) to.sides[i] = {.size = std::max<std::int64_t>(left[i], 1), .batch = false};
      }
    }
  } else if (node.op == "Expand") {
    const auto shape = net.whole_values(node, 1);
    if (const auto spread = spread_sides(to.sides, sides_beside(shape, to.sides, net.batch())))
      to.sides = *spread;
  }
  if (!can_be(to.sides)) return net.unsupported(node, "to sides that cannot be");
  for (const std::string& output : node.outputs) net.set(output, to);
}

bool convert_operator(OnnxConversion& net, const OnnxNode& node) {
  if (compares(node.op)) {
    convert_indices(net, node);
    return true;
  }
  if (convert_decomposed_norm(net, node) || convert_decomposed_activation(net, node) ||
      convert_attention(net, node) || joins_layer_before(net, node))
    return true;
  if (const auto* const row = std::ranges::find(kRows, node.op, &Row::op); row != std::end(kRows)) {
    const bool needs_first = row->convert == convert_reduction || row->convert == convert_reshape ||
                             row->convert == convert_transpose || row->convert == same;
    if (needs_first && net.data(node, 0) == nullptr) return false;
    row->convert(net, node);
    return true;
  }
  const OnnxData* first = net.data(node, 0);
  if (first == nullptr) return false;
  const OnnxData data = *first;
  if (const auto* const kept = std::ranges::find(kSameShape, node.op, &SameShape::op);
      kept != std::end(kSameShape)) {
    const NetworkTensor from = net.stored(data);
    OnnxData to = data;
    to.layer = net.builder().add(kept->layer, name_of_layer(node), {from}, from.shape);
    to.whole = false;
    net.set(node, std::move(to));
    return true;
  }
  const auto* const row = std::ranges::find(kFromRows, node.op, &FromRow::op);
  if (row == std::end(kFromRows)) return false;
  row->convert(net, node, net.copied(data));
  return true;
}

}  // namespace tbdsim
