// Operators of an ONNX graph as layers of tbd-sim. A layer's backward pass is tbd-sim's own, so only the
// forward graph is read.
#include <algorithm>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/network.h"
#include "simulate/import/network_files.h"
#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_scaling.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

// Operators that are one layer without keys and keep the shape.
const std::map<std::string, std::string> kSameShape = {
    {"Relu", "relu"},         {"LeakyRelu", "relu"},
    {"PRelu", "relu"},        {"Elu", "relu"},
    {"Sigmoid", "sigmoid"},   {"Tanh", "tanh"},
    {"Gelu", "gelu"},         {"HardSwish", "hardswish"},
    {"Softmax", "softmax"},   {"HardSigmoid", "hardsigmoid"},
    {"LogSoftmax", "softmax"}};

// Operators that compute nothing in training, or whose kernels a framework does not launch: their output is
// the input.
const std::vector<std::string> kAliases = {"Identity", "Cast", "Squeeze", "Unsqueeze", "Flatten"};

class Converter {
 public:
  Converter(const OnnxGraph& graph, const GivenValues& given)
      : graph_(graph),
        given_(given),
        builder_(graph.file, graph.title.empty() ? "imported network" : graph.title) {}

  ImportedFile convert() {
    for (const OnnxNode& node : graph_.nodes) {
      for (const std::string& input : node.inputs) ++uses_[input];
      for (const std::string& output : node.outputs) producers_[output] = &node;
    }
    read_input();
    for (const OnnxNode& node : graph_.nodes) convert(node);
    const std::string output = graph_.outputs.empty() ? std::string() : graph_.outputs.front();
    const auto last = tensors_.find(output);
    if (last == tensors_.end() && builder_.has_unsupported()) return builder_.finish({}, "ONNX");
    if (last == tensors_.end()) builder_.fail(in_quotes(output) + " is the output and no node computes it");
    if (norms_ == 0 && biases_ > 0)
      builder_.note(
          "no batch norm: if the network has some, the export folded them into its convolutions "
          "(torch.onnx.export with training=TrainingMode.TRAINING and do_constant_folding=False keeps them)");
    return builder_.finish(without_softmax(output), "ONNX");
  }

 private:
  void read_input() {
    if (graph_.inputs.empty()) builder_.fail("no input without a value; expected one, the samples");
    if (graph_.inputs.size() > 1)
      builder_.fail(fmt::format("{} inputs; expected one, the samples", graph_.inputs.size()));
    std::vector<std::int64_t> shape = graph_.inputs[0].dims;
    if (shape.size() < 2)
      builder_.fail("the input has no batch before its sides; expected batch x channels x height x width");
    shape.erase(shape.begin());
    if (const auto size = given_.find("image_size"); size != given_.end() && shape.size() == 3) {
      const auto number = parse_whole_number(size->second);
      if (!number || *number < 1)
        throw UsageError("--set image_size: " + in_quotes(size->second) + "; expected a whole number");
      shape[1] = shape[2] = *number;
    }
    if (std::find(shape.begin(), shape.end(), -1) != shape.end())
      builder_.fail("the input's height and width are symbolic; expected --set image_size=224, say");
    tensors_[graph_.inputs[0].name] = builder_.input(shape);
  }

  // The output without a softmax at its end, which the loss computes.
  NetworkTensor without_softmax(const std::string& output) {
    const auto producer = producers_.find(output);
    if (producer == producers_.end()) return tensors_.at(output);
    const OnnxNode& node = *producer->second;
    if ((node.op != "Softmax" && node.op != "LogSoftmax") || node.inputs.empty()) return tensors_.at(output);
    return tensors_.at(node.inputs[0]);
  }

  [[nodiscard]] const OnnxTensor* constant(const OnnxNode& node, std::size_t input) const {
    if (input >= node.inputs.size()) return nullptr;
    const auto found = graph_.tensors.find(node.inputs[input]);
    if (found != graph_.tensors.end()) return &found->second;
    const auto made = filled_.find(node.inputs[input]);
    return made == filled_.end() ? nullptr : &made->second;
  }

  [[nodiscard]] std::optional<NetworkTensor> data(const OnnxNode& node, std::size_t input) const {
    if (input >= node.inputs.size()) return std::nullopt;
    const auto found = tensors_.find(node.inputs[input]);
    return found == tensors_.end() ? std::nullopt : std::optional(found->second);
  }

  void set(const OnnxNode& node, NetworkTensor tensor) {
    if (!node.outputs.empty()) tensors_[node.outputs[0]] = std::move(tensor);
  }

  // Notes the operator; what reads it goes on as if it kept the shape, so that all unsupported ones are
  // found.
  void unsupported(const OnnxNode& node, const std::string& why = "") {
    builder_.note_unsupported(why.empty() ? node.op : node.op + " " + why);
    const auto from = data(node, 0);
    if (from) {
      for (const std::string& output : node.outputs) tensors_[output] = *from;
    }
  }

  void convert(const OnnxNode& node) {
    if (node.op == "ConstantOfShape") {
      const OnnxTensor* dims = constant(node, 0);
      if (dims != nullptr && !node.outputs.empty()) {
        filled_[node.outputs[0]] = {.dims = dims->integers};
        return;
      }
    }
    const auto from = data(node, 0);
    const bool beside = is_beside_data(node);
    if (beside) {
      for (const std::string& output : node.outputs)
        tensors_[output] = {.layer = {}, .shape = {}, .is_data = false};
      return;
    }
    if (!from) return of_constants(node);
    if (!from->is_data) return unsupported(node, "of a shape");
    if (const auto same = kSameShape.find(node.op); same != kSameShape.end())
      return set(node, builder_.add(same->second, name_of_layer(node), {*from}, from->shape));
    if (node.op == "Clip") return clip(node, *from);
    if (node.op == "Conv") return convolution(node, *from);
    if (node.op == "ConvTranspose") return transposed(node, *from);
    if (node.op == "BatchNormalization") ++norms_;
    if (node.op == "BatchNormalization")
      return set(node, builder_.add("batch_norm", name_of_layer(node), {*from}, from->shape));
    if (node.op == "InstanceNormalization")
      return set(node, builder_.add("instance_norm", name_of_layer(node), {*from}, from->shape,
                                    {{"affine", spec_scalar("true")}}));
    if (node.op == "LayerNormalization")
      return set(node, builder_.add("layer_norm", name_of_layer(node), {*from}, from->shape));
    if (node.op == "MaxPool" || node.op == "AveragePool") return pooling(node, *from);
    if (node.op == "GlobalAveragePool" || node.op == "ReduceMean") return mean_of_pixels(node, *from);
    if (node.op == "Add" || node.op == "Sum") return sum(node);
    if (node.op == "Mul") return product(node, *from);
    if (node.op == "Div" || node.op == "Sub") return with_constant(node, *from);
    if (node.op == "Concat") return concat(node);
    if (node.op == "Gemm" || node.op == "MatMul") return matrix_product(node, *from);
    if (node.op == "Dropout") return dropout(node, *from);
    if (node.op == "LRN")
      return set(node, builder_.add("lrn", name_of_layer(node), {*from}, from->shape,
                                    {{"window", spec_number(whole_number_of(node, "size", 5))}}));
    if (node.op == "Resize" || node.op == "Upsample") return upsample(node, *from);
    if (node.op == "DepthToSpace") return depth_to_space(node, *from);
    if (node.op == "Reshape") return reshape(node, *from);
    if (node.op == "Pad") return pad(node, *from);
    if (std::find(kAliases.begin(), kAliases.end(), node.op) != kAliases.end()) {
      NetworkTensor to = *from;
      if (node.op == "Flatten" || (node.op == "Squeeze" && product_of(to.shape) == to.shape[0]))
        to = flat(node, to);
      return set(node, to);
    }
    unsupported(node);
  }

  // A weight in other sides.
  void of_constants(const OnnxNode& node) {
    const OnnxTensor* weight = constant(node, 0);
    if (weight == nullptr || node.outputs.empty()) return unsupported(node, "of constants");
    OnnxTensor to{.dims = weight->dims};
    if (node.op == "Transpose") std::reverse(to.dims.begin(), to.dims.end());
    if (const OnnxTensor* dims = constant(node, 1); node.op == "Reshape" && dims != nullptr)
      to.dims = dims->integers;
    const bool known = node.op == "Transpose" || node.op == "Reshape" || node.op == "Unsqueeze" ||
                       node.op == "Squeeze" || node.op == "Cast" || node.op == "Identity";
    if (!known) return unsupported(node, "of constants");
    filled_[node.outputs[0]] = std::move(to);
  }

  // Numbers that a network computes of its shapes, as x.view(x.size(0), -1) does.
  [[nodiscard]] bool is_beside_data(const OnnxNode& node) const {
    if (node.op == "Shape" || node.op == "Size") return true;
    bool any = false;
    for (const std::string& input : node.inputs) {
      const auto found = tensors_.find(input);
      if (found == tensors_.end()) continue;
      if (found->second.is_data) return false;
      any = true;
    }
    return any;
  }

  // One row of features for each sample.
  NetworkTensor flat(const OnnxNode& node, const NetworkTensor& from) {
    return from.shape.size() == 1 ? from
                                  : builder_.add_reshape(name_of_layer(node), from, {product_of(from.shape)});
  }

  void clip(const OnnxNode& node, const NetworkTensor& from) {
    const auto bound = [&](const char* name, std::size_t input) -> std::optional<double> {
      if (const auto found = node.attributes.find(name); found != node.attributes.end())
        return found->second.number;
      const OnnxTensor* tensor = constant(node, input);
      return tensor == nullptr || tensor->numbers.empty() ? std::nullopt : std::optional(tensor->numbers[0]);
    };
    constexpr double kSix = 6;
    const bool six = bound("min", 1) == 0.0 && bound("max", 2) == kSix;
    set(node, builder_.add(six ? "relu6" : "relu", name_of_layer(node), {from}, from.shape));
  }

  [[nodiscard]] std::optional<std::pair<WindowSide, WindowSide>> window(
      const OnnxNode& node, const NetworkTensor& from, const std::vector<std::int64_t>& kernel) const {
    try {
      return window_of(node, from.shape, kernel);
    } catch (const std::invalid_argument& wrong) {
      builder_.fail(name_of_layer(node) + ": " + wrong.what());
    }
  }

  void convolution(const OnnxNode& node, const NetworkTensor& from) {
    const OnnxTensor* weight = constant(node, 1);
    if (weight == nullptr || weight->dims.size() != 4)
      return unsupported(node, "without a weight of four sides");
    const auto sides = window(node, from, {weight->dims[2], weight->dims[3]});
    if (!sides) return unsupported(node, "of no images");
    const std::int64_t groups = whole_number_of(node, "group", 1);
    if (groups < 1 || weight->dims[1] * groups != from.shape[0]) {
      if (builder_.has_unsupported()) return unsupported(node);
      builder_.fail(fmt::format("{}: a weight of {} channels in {} groups for an input of {}",
                                name_of_layer(node), weight->dims[1], groups, from.shape[0]));
    }
    LayerKeys keys = {{"filters", spec_number(weight->dims[0])}};
    if (node.inputs.size() > 2) keys.emplace_back("bias", spec_scalar("true"));
    if (node.inputs.size() > 2) ++biases_;
    if (groups != 1) keys.emplace_back("groups", spec_number(groups));
    set(node, builder_.add_window("conv2d", name_of_layer(node), from, sides->first, sides->second,
                                  weight->dims[0], std::move(keys)));
  }

  void transposed(const OnnxNode& node, const NetworkTensor& from) {
    const OnnxTensor* weight = constant(node, 1);
    if (weight == nullptr || weight->dims.size() != 4)
      return unsupported(node, "without a weight of four sides");
    const auto sides = window(node, from, {weight->dims[2], weight->dims[3]});
    const auto to = sides ? add_transposed(builder_, node, from, weight->dims[1], *sides) : std::nullopt;
    to ? set(node, *to) : unsupported(node, "in groups, or not square");
  }

  void pooling(const OnnxNode& node, const NetworkTensor& from) {
    const auto sides = window(node, from, whole_numbers(node, "kernel_shape"));
    if (!sides) return unsupported(node, "of no images");
    set(node, builder_.add_window(node.op == "MaxPool" ? "max_pool" : "avg_pool", name_of_layer(node), from,
                                  sides->first, sides->second, from.shape[0]));
  }

  void mean_of_pixels(const OnnxNode& node, const NetworkTensor& from) {
    std::vector<std::int64_t> axes = whole_numbers(node, "axes");
    if (const OnnxTensor* given = constant(node, 1); axes.empty() && given != nullptr) axes = given->integers;
    for (std::int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
    std::sort(axes.begin(), axes.end());
    if (from.shape.size() != 3 || (node.op == "ReduceMean" && axes != std::vector<std::int64_t>{2, 3}))
      return unsupported(node, "over other sides than pixels");
    NetworkTensor to = builder_.add("global_avg_pool", name_of_layer(node), {from}, {from.shape[0], 1, 1});
    if (node.op == "ReduceMean" && whole_number_of(node, "keepdims", 1) == 0) to = flat(node, to);
    set(node, to);
  }

  void sum(const OnnxNode& node) {
    std::vector<NetworkTensor> terms;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (const auto term = data(node, i)) terms.push_back(*term);
    }
    const bool alike =
        std::all_of(terms.begin(), terms.end(), [&](const auto& t) { return t.shape == terms[0].shape; });
    if (terms.size() == node.inputs.size() && terms.size() > 1 && alike)
      return set(node, builder_.add("add", name_of_layer(node), terms, terms[0].shape));
    if (terms.size() == 1 && node.inputs.size() == 2) {  // a bias or a number
      const OnnxTensor* other = constant(node, data(node, 0) ? 1 : 0);
      if (other == nullptr) return unsupported(node, "of tensors of several shapes");
      const std::int64_t features = terms[0].shape.back();
      if (terms[0].shape.size() < 3 && other->dims == std::vector<std::int64_t>{features}) {
        // Behind a matrix product: its bias.
        return set(node, builder_.add("bias", name_of_layer(node), terms, terms[0].shape));
      }
      const std::int64_t others = product_of(other->dims);
      if (others == 1 || others == terms[0].shape.front())
        return set(node, builder_.add("scale", name_of_layer(node), terms, terms[0].shape));
    }
    unsupported(node, "of tensors of several shapes");
  }

  // x * sigmoid(x) and x * hardsigmoid(x), as exports write activations that frameworks compute in one
  // kernel.
  [[nodiscard]] std::optional<NetworkTensor> gated(const OnnxNode& node) {
    for (const std::size_t gate : {std::size_t{0}, std::size_t{1}}) {
      if (node.inputs.size() != 2) return std::nullopt;
      const std::string &factor = node.inputs[gate], &other = node.inputs[1 - gate];
      const auto producer = producers_.find(factor);
      if (producer == producers_.end() || uses_[factor] != 1) continue;
      const OnnxNode& sigmoid = *producer->second;
      if ((sigmoid.op != "Sigmoid" && sigmoid.op != "HardSigmoid") || sigmoid.inputs.empty() ||
          sigmoid.inputs[0] != other)
        continue;
      const auto from = tensors_.find(other);
      if (from == tensors_.end()) continue;
      return builder_.add(sigmoid.op == "Sigmoid" ? "silu" : "hardswish", name_of_layer(node), {from->second},
                          from->second.shape);
    }
    return std::nullopt;
  }

  void product(const OnnxNode& node, const NetworkTensor& from) {
    if (auto activation = gated(node)) return set(node, std::move(*activation));
    auto other = data(node, 1);
    if (!other || !other->is_data) return with_constant(node, from);
    NetworkTensor large = from, small = *other;
    if (product_of(small.shape) > product_of(large.shape)) std::swap(small, large);
    bool spreads = small.shape.size() == large.shape.size();
    for (std::size_t i = 0; spreads && i < small.shape.size(); ++i)
      spreads = small.shape[i] == 1 || small.shape[i] == large.shape[i];
    if (!spreads) return unsupported(node, "of tensors of several shapes");
    set(node, builder_.add("multiply", name_of_layer(node), {large, small}, large.shape));
  }

  // A number, or one for each channel, that is no parameter: y = c x.
  void with_constant(const OnnxNode& node, const NetworkTensor& from) {
    const OnnxTensor* other = constant(node, 1);
    // Numbers that are drawn beside the data, as stochastic depth does, are a factor for each sample.
    const auto beside = node.inputs.size() > 1 ? tensors_.find(node.inputs[1]) : tensors_.end();
    const bool factor = beside != tensors_.end() && !beside->second.is_data;
    if (!factor && (other == nullptr || product_of(other->dims) > product_of(from.shape)))
      return unsupported(node, "of tensors of several shapes");
    set(node, builder_.add("scale", name_of_layer(node), {from}, from.shape));
  }

  void concat(const OnnxNode& node) {
    std::vector<NetworkTensor> parts;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto part = data(node, i);
      if (!part) return unsupported(node, "with a constant");
      parts.push_back(*part);
    }
    if (parts.size() == 1) return set(node, parts[0]);
    const auto sides = static_cast<std::int64_t>(parts[0].shape.size());
    std::int64_t axis = whole_number_of(node, "axis", 1);
    if (axis < 0) axis += sides + 1;
    if (axis != 1 && axis != sides)
      return unsupported(node, "along another side than the first and the last");
    std::vector<std::int64_t> shape = parts[0].shape;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (parts[i].shape.size() != shape.size()) return unsupported(node, "of tensors of several shapes");
      shape[static_cast<std::size_t>(axis - 1)] += parts[i].shape[static_cast<std::size_t>(axis - 1)];
    }
    LayerKeys keys;
    if (axis != 1) keys.emplace_back("axis", spec_scalar("last"));
    set(node, builder_.add("concat", name_of_layer(node), parts, shape, std::move(keys)));
  }

  void matrix_product(const OnnxNode& node, const NetworkTensor& from) {
    const OnnxTensor* weight = constant(node, 1);
    if (weight == nullptr || weight->dims.size() != 2) return unsupported(node, "of two computed tensors");
    const bool transposed = node.op == "Gemm" && whole_number_of(node, "transB", 0) == 1;
    const std::int64_t inputs = weight->dims[transposed ? 1 : 0], outputs = weight->dims[transposed ? 0 : 1];
    const bool positions =
        from.shape.size() > 1 && from.shape.back() == inputs && product_of(from.shape) != inputs;
    if (!positions && product_of(from.shape) != inputs) {
      if (builder_.has_unsupported()) return unsupported(node);
      builder_.fail(fmt::format("{}: a weight for {} features and an input of {}", name_of_layer(node),
                                inputs, product_of(from.shape)));
    }
    std::vector<std::int64_t> shape = positions ? from.shape : std::vector<std::int64_t>{outputs};
    shape.back() = outputs;
    LayerKeys keys = {{"outputs", spec_number(outputs)}};
    if (node.op == "MatMul" || node.inputs.size() < 3) keys.emplace_back("bias", spec_scalar("false"));
    if (positions) keys.emplace_back("per_position", spec_scalar("true"));
    set(node,
        builder_.add("fully_connected", name_of_layer(node), {from}, std::move(shape), std::move(keys)));
  }

  void dropout(const OnnxNode& node, const NetworkTensor& from) {
    double ratio = 0.5;  // the format's default
    if (const auto found = node.attributes.find("ratio"); found != node.attributes.end())
      ratio = found->second.number;
    if (const OnnxTensor* given = constant(node, 1); given != nullptr && !given->numbers.empty())
      ratio = given->numbers[0];
    if (!(ratio > 0 && ratio < 1)) return set(node, from);
    set(node, builder_.add("dropout", name_of_layer(node), {from}, from.shape,
                           {{"keep", spec_scalar(fmt::format("{:.6g}", 1 - ratio))}}));
  }

  void upsample(const OnnxNode& node, const NetworkTensor& from) {
    std::vector<double> scales;
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const OnnxTensor* tensor = constant(node, i);
      if (tensor != nullptr && tensor->numbers.size() == 4) scales = tensor->numbers;
    }
    const auto to = add_upsample(builder_, node, from, scales);
    to ? set(node, *to) : unsupported(node, "by other than one whole factor");
  }

  void depth_to_space(const OnnxNode& node, const NetworkTensor& from) {
    const auto to = add_depth_to_space(builder_, node, from);
    to ? set(node, *to) : unsupported(node, "of no images");
  }

  // To one row of features for each sample, or to other sides.
  void reshape(const OnnxNode& node, const NetworkTensor& from) {
    const OnnxTensor* to = constant(node, 1);
    std::vector<std::int64_t> dims = to == nullptr ? whole_numbers(node, "shape") : to->integers;
    if (dims.size() == 2 || dims.empty()) return set(node, flat(node, from));
    const auto sides = reshaped(dims, from.shape);
    if (!sides) return unsupported(node, "to sides that do not fit");
    set(node, builder_.add_reshape(name_of_layer(node), from, *sides));
  }

  void pad(const OnnxNode& node, const NetworkTensor& from) {
    std::vector<std::int64_t> pads = whole_numbers(node, "pads");
    if (const OnnxTensor* given = constant(node, 1); pads.empty() && given != nullptr) pads = given->integers;
    if (!pads.empty() && std::all_of(pads.begin(), pads.end(), [](auto p) { return p == 0; }))
      return set(node, from);
    unsupported(node, "that is no convolution's own");
  }

  const OnnxGraph& graph_;
  const GivenValues& given_;
  NetworkBuilder builder_;
  std::map<std::string, NetworkTensor> tensors_;
  std::map<std::string, OnnxTensor> filled_;  // by ConstantOfShape
  int norms_ = 0, biases_ = 0;                // batch norms; convolutions with a bias
  std::map<std::string, int> uses_;
  std::map<std::string, const OnnxNode*> producers_;
};

}  // namespace

ImportedFile onnx_network(const OnnxGraph& graph, const GivenValues& given) {
  return Converter(graph, given).convert();
}

}  // namespace tbdsim
