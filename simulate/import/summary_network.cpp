#include "simulate/import/summary_network.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/network.h"
#include "simulate/import/summary_table.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

using Sides = std::vector<std::int64_t>;

constexpr std::int64_t kLargestKernel = 64;
constexpr std::int64_t kLargestStride = 64;

std::string name_of(const SummaryRow& row) { return row.name.empty() ? row.type : row.name; }

std::string text_of(const Sides& sides) {
  std::string text;
  for (const std::int64_t side : sides) text += (text.empty() ? "" : " x ") + std::to_string(side);
  return text.empty() ? "no sides" : text;
}

// A convolution's square window and groups by its number of parameters; with or without a bias.
struct ConvShape {
  std::int64_t kernel = 0, groups = 1;
  bool bias = true;
};

// The kernel whose filters, of so many inputs each, have these parameters.
std::optional<ConvShape> conv_of(std::int64_t parameters, std::int64_t inputs, std::int64_t filters) {
  for (const bool bias : {true, false}) {
    for (std::int64_t kernel = 1; kernel <= kLargestKernel; ++kernel) {
      if (kernel * kernel * inputs * filters + (bias ? filters : 0) == parameters)
        return ConvShape{.kernel = kernel, .groups = 1, .bias = bias};
    }
  }
  return std::nullopt;
}

// The window of so large a kernel, or of the smallest that will do, which makes `out` of `in` numbers.
std::optional<WindowSide> window_side(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                      std::int64_t stride, bool same) {
  WindowSide side{.kernel = kernel, .stride = stride};
  if (same) {
    const std::int64_t needed = std::max<std::int64_t>(0, (out - 1) * stride + kernel - in);
    side.before = needed / 2;
    side.after = needed - needed / 2;
  }
  return side.outputs(in) == out ? std::optional(side) : std::nullopt;
}

class Summary {
 public:
  Summary(SummaryTable table, const std::string& file)
      : table_(std::move(table)), builder_(file, table_.title.empty() ? "imported network" : table_.title) {}

 protected:
  [[noreturn]] void fail(const SummaryRow& row, const std::string& what) const {
    fail_at(builder_.file(), row.line, in_quotes(name_of(row)) + ": " + what);
  }

  NetworkTensor conv(const SummaryRow& row, const NetworkTensor& from, const ConvShape& shape,
                     const WindowSide& tall, const WindowSide& wide) {
    const std::int64_t filters = row.output[0];
    LayerKeys keys = {{"filters", spec_number(filters)},
                      {"bias", spec_scalar(shape.bias ? "true" : "false")}};
    if (shape.groups != 1) keys.emplace_back("groups", spec_number(shape.groups));
    return builder_.add_window("conv2d", name_of(row), from, tall, wide, filters, std::move(keys));
  }

  NetworkTensor dense(const SummaryRow& row, const NetworkTensor& from) {
    if (row.output.empty()) fail(row, "no shape of its output; expected one");
    const std::int64_t outputs = row.output.back(), inputs = product_of(from.shape);
    const std::int64_t weights = inputs * outputs;
    if (row.output.size() != 1 || (row.parameters != weights && row.parameters != weights + outputs))
      fail(row, fmt::format("{} parameters for {} inputs and {} outputs; expected {} or, with a bias, {}",
                            row.parameters, inputs, text_of(row.output), weights, weights + outputs));
    LayerKeys keys = {{"outputs", spec_number(outputs)}};
    if (row.parameters == weights) keys.emplace_back("bias", spec_scalar("false"));
    return builder_.add("fully_connected", name_of(row), {from}, {outputs}, std::move(keys));
  }

  NetworkTensor same_shape(const std::string& type, const SummaryRow& row, const NetworkTensor& from,
                           LayerKeys keys = {}) {
    return builder_.add(type, name_of(row), {from}, from.shape, std::move(keys));
  }

  NetworkTensor dropout(const SummaryRow& row, const NetworkTensor& from) {
    return same_shape("dropout", row, from, {{"keep", spec_scalar("0.5")}});
  }

  NetworkTensor whole_mean(const SummaryRow& row, const NetworkTensor& from) {
    if (from.shape.size() != 3)
      fail(row, "a mean over an input of " + text_of(from.shape) + "; expected an image");
    return builder_.add("global_avg_pool", name_of(row), {from}, {from.shape[0], 1, 1});
  }

  NetworkTensor flat(const SummaryRow& row, const NetworkTensor& from) {
    return from.shape.size() == 1 ? from : builder_.add_reshape(name_of(row), from, {product_of(from.shape)});
  }

  void require_image(const SummaryRow& row, const NetworkTensor& from) const {
    if (from.shape.size() != 3 || row.output.size() != 3)
      fail(row, fmt::format("makes {} of {}; expected images", text_of(row.output), text_of(from.shape)));
  }

  SummaryTable table_;
  NetworkBuilder builder_;
};

// Keras: a layer's type and name are there, pads are layers or "same"; kernels follow from parameters.
class Keras : Summary {
 public:
  Keras(SummaryTable table, const std::string& file, const GivenValues& given)
      : Summary(std::move(table), file) {
    for (SummaryRow& row : table_.rows) {
      if (row.output.size() == 3)
        std::rotate(row.output.begin(), row.output.end() - 1, row.output.end());  // channels come last
      complete(row);
    }
    if (table_.rows.empty()) fail_at(file, 0, "holds no layer; expected a summary of Keras");
    if (table_.rows[0].type != "InputLayer") begin(given);
  }

  ImportedFile network() {
    for (const SummaryRow& row : table_.rows) {
      last_ = row.type == "InputLayer" ? input(row) : convert(row);
      tensors_.emplace_back(row.name, last_);
    }
    builder_.note("activations inside of layers are not in a summary, and all others are taken as ReLU");
    builder_.note("pools' windows are the smallest that make these shapes");
    return builder_.finish(last_, "Keras");
  }

 private:
  // Cut names of types, as "BatchNormalizatio~".
  static void complete(SummaryRow& row) {
    constexpr std::string_view kTypes[] = {
        "BatchNormalization", "DepthwiseConv2D", "MaxPooling2D", "AveragePooling2D", "GlobalAveragePooling2D",
        "ZeroPadding2D",      "InputLayer",      "Concatenate",  "Activation"};
    if (!row.type.ends_with('~')) return;
    const std::string begins = row.type.substr(0, row.type.size() - 1);
    const auto is = [&](std::string_view type) { return type.starts_with(begins); };
    if (std::ranges::count_if(kTypes, is) == 1) row.type = *std::ranges::find_if(kTypes, is);
  }

  void begin(const GivenValues& given) {
    const auto found = given.find("input");
    if (found == given.end())
      fail(table_.rows[0], "the summary does not show the input's shape; expected --set input=28x28x1");
    Sides sides;
    for (std::size_t at = 0; at <= found->second.size();) {
      const std::size_t end = std::min(found->second.find('x', at), found->second.size());
      const auto side = parse_whole_number(found->second.substr(at, end - at));
      if (!side) fail_at(builder_.file(), 0, "--set input=" + found->second + "; expected sides as 28x28x1");
      sides.push_back(*side);
      at = end + 1;
    }
    if (sides.size() == 3) std::rotate(sides.begin(), sides.end() - 1, sides.end());
    last_ = builder_.input(sides);
  }

  NetworkTensor input(const SummaryRow& row) {
    if (!tensors_.empty()) fail(row, "a second input; expected one");
    return builder_.input(row.output);
  }

  // The layer that a name of the column 'Connected to' means, which may be cut, as may be the layer's own.
  [[nodiscard]] NetworkTensor parent(const SummaryRow& row, const std::string& name) const {
    const auto stem = [](const std::string& text) {
      return text.ends_with('~') ? text.substr(0, text.size() - 1) : text;
    };
    const NetworkTensor* found = nullptr;
    int count = 0;
    for (const auto& [other, tensor] : tensors_) {
      if (other == name && !name.ends_with('~')) return tensor;
      const bool cut = other.ends_with('~') || name.ends_with('~');
      const std::string a = stem(other), b = stem(name);
      const bool means = name.ends_with('~') && other.ends_with('~') ? a.starts_with(b) || b.starts_with(a)
                         : name.ends_with('~')                       ? a.starts_with(b)
                                                                     : b.starts_with(a);
      if (!cut || !means) continue;
      found = &tensor;
      ++count;
    }
    if (count == 1) return *found;
    fail(row,
         fmt::format(
             "reads {}, which is {}; expected whole names, as model.summary(line_length=200) prints them",
             in_quotes(stem(name)), count == 0 ? "no layer above" : "cut and means several layers above"));
  }

  [[nodiscard]] std::vector<NetworkTensor> parents(const SummaryRow& row) const {
    if (!table_.has_connections) return {last_};
    std::vector<NetworkTensor> all;
    for (const std::string& name : row.from) all.push_back(parent(row, name));
    if (all.empty()) fail(row, "is connected to nothing; expected the layers it reads");
    return all;
  }

  // A window behind the pads of a layer that only pads, if there is one.
  [[nodiscard]] std::pair<WindowSide, WindowSide> window(const SummaryRow& row, const NetworkTensor& from,
                                                         std::int64_t kernel) const {
    require_image(row, from);
    const NetworkTensor before = without_pads(from);
    const auto side = [&](std::size_t axis) {
      const std::int64_t in = from.shape[axis], more = in - before.shape[axis];
      for (std::int64_t stride = 1; stride <= kLargestStride; ++stride) {
        for (std::int64_t k = kernel > 0 ? kernel : std::max<std::int64_t>(2, stride);
             k <= (kernel > 0 ? kernel : std::max<std::int64_t>(2, stride) + 2); ++k) {
          for (const bool same : {false, true}) {
            if (auto found = window_side(in, row.output[axis], k, stride, same)) {
              if (kernel == 0 && stride == 1) continue;  // a pool has a stride
              found->before += more / 2;
              found->after += more - more / 2;
              return *found;
            }
          }
        }
      }
      fail(row, fmt::format("no window makes {} of {}; expected a convolution or pool without dilation",
                            row.output[axis], in));
    };
    return {side(1), side(2)};
  }

  NetworkTensor convolution(const SummaryRow& row, const NetworkTensor& from) {
    require_image(row, from);
    const bool depthwise = row.type == "DepthwiseConv2D";
    auto shape = conv_of(row.parameters, depthwise ? 1 : from.shape[0], row.output[0]);
    if (!shape)
      fail(row, fmt::format("{} parameters for {} channels of {}; expected a square kernel without groups",
                            row.parameters, row.output[0], from.shape[0]));
    if (depthwise) shape->groups = from.shape[0];
    const auto [tall, wide] = window(row, from, shape->kernel);
    return conv(row, without_pads(from), *shape, tall, wide);
  }

  // An image with rows and columns around it that no layer makes: the window that reads it has them as pads.
  NetworkTensor padding(const SummaryRow& row, const NetworkTensor& from) {
    require_image(row, from);
    if (row.output[0] != from.shape[0] || row.output[1] < from.shape[1] || row.output[2] < from.shape[2])
      fail(row, fmt::format("makes {} of {}; expected pads", text_of(row.output), text_of(from.shape)));
    unpadded_.emplace(from.layer, from.shape);
    return {.layer = from.layer, .shape = row.output};
  }

  [[nodiscard]] NetworkTensor without_pads(const NetworkTensor& tensor) const {
    const auto found = unpadded_.find(tensor.layer);
    return {.layer = tensor.layer, .shape = found == unpadded_.end() ? tensor.shape : found->second};
  }

  NetworkTensor convert(const SummaryRow& row) {
    const std::vector<NetworkTensor> from = parents(row);
    const std::string& type = row.type;
    if (type == "Conv2D" || type == "DepthwiseConv2D") return convolution(row, from[0]);
    if (type == "ZeroPadding2D") return padding(row, from[0]);
    if (type == "MaxPooling2D" || type == "AveragePooling2D") {
      const auto [tall, wide] = window(row, from[0], 0);
      return builder_.add_window(type == "MaxPooling2D" ? "max_pool" : "avg_pool", row.name,
                                 without_pads(from[0]), tall, wide, from[0].shape[0]);
    }
    for (const NetworkTensor& tensor : from) {
      if (without_pads(tensor).shape != tensor.shape)
        fail(row, "reads an image with pads; expected a convolution or a pool behind pads");
    }
    if (type == "Dense") return dense(row, from[0]);
    if (type == "BatchNormalization") return same_shape("batch_norm", row, from[0]);
    if (type == "ReLU" || type == "LeakyReLU") return same_shape("relu", row, from[0]);
    if (type == "Activation") return row.output.size() == 3 ? same_shape("relu", row, from[0]) : from[0];
    if (type == "GlobalAveragePooling2D") return whole_mean(row, from[0]);
    if (type == "Dropout") return dropout(row, from[0]);
    if (type == "Flatten") return flat(row, from[0]);
    if (type == "Softmax") return from[0];
    if ((type == "Add" || type == "Concatenate") && !table_.has_connections)
      fail(row,
           "reads several layers, and the column 'Connected to' is missing; expected it, as "
           "model.summary(line_length=160) prints it in a wide terminal");
    if (type == "Add" && from.size() > 1) return builder_.add("add", row.name, from, from[0].shape);
    if (type == "Concatenate" && from.size() > 1) {
      Sides shape = from[0].shape;
      for (std::size_t i = 1; i < from.size(); ++i) shape[0] += from[i].shape.at(0);
      return builder_.add("concat", row.name, from, shape);
    }
    builder_.note_unsupported(type);
    return {.layer = from[0].layer, .shape = row.output.empty() ? from[0].shape : row.output};
  }

  std::vector<std::pair<std::string, NetworkTensor>> tensors_;
  std::map<std::string, Sides> unpadded_;  // outputs of layers that something pads
  NetworkTensor last_;
};

// torchinfo: modules in the order in which they run, one behind another; what functions do between them is
// not shown.
class Torchinfo : Summary {
 public:
  Torchinfo(SummaryTable table, const std::string& file) : Summary(std::move(table), file) {
    if (!table_.has_inputs || !table_.has_kernels)
      fail_at(
          file, 0,
          "no columns 'Input Shape' and 'Kernel Shape'; expected torchinfo.summary(model, (1, 3, 224, 224), "
          "col_names=(\"input_size\", \"output_size\", \"num_params\", \"kernel_size\"))");
  }

  ImportedFile network() {
    for (std::size_t i = 0; i < table_.rows.size(); ++i) {
      const SummaryRow& row = table_.rows[i];
      const bool holds_others = i + 1 < table_.rows.size() && table_.rows[i + 1].depth > row.depth;
      if (!holds_others) {
        last_ = convert(row, joined_to(row));
      } else if (row.depth > 0 && row.type != "Sequential") {
        fail(row,
             row.type +
                 " joins its modules by a function that a summary does not show; expected modules one behind "
                 "another (a captured step or ONNX has no such limit)");
      }
    }
    builder_.note("calls of functions (F.relu, +) are not in a summary");
    return builder_.finish(last_, "torchinfo");
  }

 private:
  // The output of the module before, as this one takes it: as it is, or flattened.
  NetworkTensor joined_to(const SummaryRow& row) {
    if (row.input.empty()) fail(row, "no shape of its input; expected one");
    if (last_.layer.empty()) return builder_.input(row.input);
    if (last_.shape == row.input) return last_;
    if (row.input.size() == 1 && product_of(last_.shape) == row.input[0])
      return builder_.add_reshape("flatten", last_, row.input);
    fail(row, fmt::format(
                  "takes {}, and the module before makes {}; expected modules one behind another (a captured "
                  "step or ONNX has no such limit)",
                  text_of(row.input), text_of(last_.shape)));
  }

  // The pads and the stride of a kernel that make `out` of `in`; pads that keep sides come first.
  [[nodiscard]] WindowSide side(const SummaryRow& row, std::int64_t kernel, std::int64_t in,
                                std::int64_t out) const {
    for (std::int64_t stride = 1; stride <= kLargestStride && out > 0; ++stride) {
      std::vector<std::int64_t> pads = {(kernel - 1) / 2, 0};
      for (std::int64_t pad = 1; pad <= kernel / 2; ++pad) pads.push_back(pad);
      for (const std::int64_t pad : pads) {
        const WindowSide side{.kernel = kernel, .stride = stride, .before = pad, .after = pad};
        if (side.outputs(in) == out) return side;
      }
    }
    fail(row, fmt::format("no window of {} makes {} of {}; expected one without dilation", kernel, out, in));
  }

  [[nodiscard]] std::pair<WindowSide, WindowSide> window(const SummaryRow& row,
                                                         const NetworkTensor& from) const {
    require_image(row, from);
    if (row.kernel.empty() || row.kernel[0] > kLargestKernel || row.kernel.back() > kLargestKernel)
      fail(row, "no kernel of at most 64; expected its sides");
    return {side(row, row.kernel[0], from.shape[1], row.output[1]),
            side(row, row.kernel.back(), from.shape[2], row.output[2])};
  }

  NetworkTensor convolution(const SummaryRow& row, const NetworkTensor& from) {
    const auto [tall, wide] = window(row, from);
    const std::int64_t filters = row.output[0], of_one = tall.kernel * wide.kernel * filters;
    for (const bool bias : {true, false}) {
      const std::int64_t weights = row.parameters - (bias ? filters : 0);
      const std::int64_t inputs = weights / of_one;
      if (inputs < 1 || weights % of_one != 0 || from.shape[0] % inputs != 0) continue;
      return conv(row, from, {.kernel = tall.kernel, .groups = from.shape[0] / inputs, .bias = bias}, tall,
                  wide);
    }
    fail(row,
         fmt::format("{} parameters for {} filters of {} x {} over {} channels; expected a convolution's",
                     row.parameters, filters, tall.kernel, wide.kernel, from.shape[0]));
  }

  NetworkTensor convert(const SummaryRow& row, const NetworkTensor& from) {
    const std::string& type = row.type;
    if (type == "Conv2d") return convolution(row, from);
    if (type == "Linear") return dense(row, from);
    if (type == "BatchNorm2d" || type == "BatchNorm1d") return same_shape("batch_norm", row, from);
    if (type == "ReLU" || type == "ReLU6" || type == "LeakyReLU") return same_shape("relu", row, from);
    if (type == "MaxPool2d" || type == "AvgPool2d") {
      const auto [tall, wide] = window(row, from);
      return builder_.add_window(type == "MaxPool2d" ? "max_pool" : "avg_pool", name_of(row), from, tall,
                                 wide, from.shape[0]);
    }
    if (type == "AdaptiveAvgPool2d") {
      if (row.output == from.shape) return from;
      if (row.output.size() == 3 && row.output[1] == 1 && row.output[2] == 1) return whole_mean(row, from);
    }
    if (type.starts_with("Dropout")) return dropout(row, from);
    if (type == "Flatten") return flat(row, from);
    if (type == "Identity" || type == "Softmax" || type == "LogSoftmax") return from;
    builder_.note_unsupported(type);
    return {.layer = from.layer, .shape = row.output.empty() ? from.shape : row.output};
  }

  NetworkTensor last_;
};

}  // namespace

ImportedFile keras_network(const std::string& text, const std::string& file, const GivenValues& given) {
  return Keras(read_keras_summary(text, file), file, given).network();
}

ImportedFile torchinfo_network(const std::string& text, const std::string& file) {
  return Torchinfo(read_torchinfo_summary(text, file), file).network();
}

}  // namespace tbdsim
