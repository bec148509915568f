// Keras: a layer's type and name are there; pads are layers or "same"; kernels follow from numbers of
// parameters.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "hwspecs/base/suggest.h"
#include "simulate/import/summary_layers.h"
#include "simulate/import/summary_network.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

using Sides = std::vector<std::int64_t>;

// The side of the square kernel whose filters, each of so many inputs, have these parameters.
std::optional<std::pair<std::int64_t, SummaryConvolution>> square_convolution(std::int64_t parameters,
                                                                              std::int64_t inputs,
                                                                              std::int64_t filters) {
  for (const bool bias : {true, false}) {
    for (std::int64_t kernel = 1; kernel <= kLargestSummaryKernel; ++kernel) {
      if (kernel * kernel * inputs * filters + (bias ? filters : 0) == parameters)
        return std::pair(kernel, SummaryConvolution{.bias = bias});
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

class Keras : SummaryLayers {
 public:
  Keras(SummaryTable table, const std::string& file, const GivenValues& given)
      : SummaryLayers(std::move(table), file) {
    for (SummaryRow& row : table_.rows) {
      if (row.output.size() == 3)
        std::rotate(row.output.begin(), row.output.end() - 1, row.output.end());  // channels come last
      complete(row);
    }
    if (table_.rows.empty()) fail_at(file, 0, "holds no layer; expected a summary of Keras");
    const auto first = std::ranges::find_if_not(table_.rows, is_model);
    if (first == table_.rows.end() || first->type != "InputLayer") begin(given);
  }

  ImportedFile network() {
    for (std::size_t i = 0; i < table_.rows.size();) i = read(i);
    builder_.note("activations inside of layers are not in a summary, and all others are taken as ReLU");
    builder_.note("pools' windows are the smallest that make these shapes");
    return builder_.finish(last_, "Keras");
  }

 private:
  static bool is_model(const SummaryRow& row) {
    return row.type == "Sequential" || row.type == "Functional" || row.type == "Model";
  }

  // Sets the last tensor to that of a row's layer, or of the layers inside it; returns the number of the next
  // row.
  std::size_t read(std::size_t number) {
    const SummaryRow& row = table_.rows[number];
    const auto is_inside = [&](std::size_t i) {
      return i < table_.rows.size() && table_.rows[i].depth > row.depth;
    };
    std::size_t next = number + 1;
    if (is_model(row) && is_inside(next)) {
      last_ = only_parent(row);
      while (is_inside(next)) next = read(next);
    } else if (row.type != "InputLayer") {
      last_ = convert(row);
    } else if (row.depth == 0 || last_.layer.empty()) {  // else a model's inside reads what that model reads
      last_ = input(row);
    }
    tensors_.emplace_back(row.name, last_);
    return next;
  }

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
    const auto found = given_sides(given, "input", builder_);
    if (!found)
      fail(table_.rows[0], "the summary does not show the input's shape; expected --set input=28x28x1");
    Sides sides = *found;
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
    if (!table_.has_connections || row.depth > 0) return {last_};  // a Sequential shows none inside
    std::vector<NetworkTensor> all;
    for (const std::string& name : row.from) all.push_back(parent(row, name));
    if (all.empty()) fail(row, "is connected to nothing; expected the layers it reads");
    return all;
  }

  // The input of a layer that has one. One that is used twice is connected to both.
  [[nodiscard]] NetworkTensor only_parent(const SummaryRow& row) const {
    const bool shown = table_.has_connections && row.depth == 0;
    if (shown && row.from.size() > 1)
      fail(row,
           fmt::format("reads {} layers, as one that is used so often does; expected each use as a layer of "
                       "its own, or ONNX",
                       row.from.size()));
    return parents(row)[0];
  }

  // A window behind the pads of a layer that only pads, if there is one.
  [[nodiscard]] std::pair<WindowSide, WindowSide> window(const SummaryRow& row, const NetworkTensor& from,
                                                         std::int64_t kernel) const {
    require_image(row, from);
    const NetworkTensor before = without_pads(from);
    const auto side = [&](std::size_t axis) {
      const std::int64_t in = from.shape[axis], more = in - before.shape[axis];
      for (std::int64_t stride = 1; stride <= kLargestSummaryStride; ++stride) {
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
    auto found = square_convolution(row.parameters, depthwise ? 1 : from.shape[0], row.output[0]);
    if (!found)
      fail(row, fmt::format("{} parameters for {} channels of {}; expected a square kernel without groups",
                            row.parameters, row.output[0], from.shape[0]));
    auto& [kernel, shape] = *found;
    if (depthwise) shape.groups = from.shape[0];
    const auto [tall, wide] = window(row, from, kernel);
    return conv(row, without_pads(from), shape, tall, wide);
  }

  // An image with rows and columns around it that no layer makes: the window that reads it has them as pads.
  NetworkTensor padding(const SummaryRow& row, const NetworkTensor& from) {
    require_image(row, from);
    if (row.output[0] != from.shape[0] || row.output[1] < from.shape[1] || row.output[2] < from.shape[2])
      fail(row, fmt::format("makes {} of {}; expected pads", sides_text(row.output), sides_text(from.shape)));
    unpadded_.emplace(from.layer, from.shape);
    return {.layer = from.layer, .shape = row.output};
  }

  [[nodiscard]] NetworkTensor without_pads(const NetworkTensor& tensor) const {
    const auto found = unpadded_.find(tensor.layer);
    return {.layer = tensor.layer, .shape = found == unpadded_.end() ? tensor.shape : found->second};
  }

  NetworkTensor pool(const SummaryRow& row, const NetworkTensor& from) {
    const auto [tall, wide] = window(row, from, 0);
    return builder_.add_window(row.type == "MaxPooling2D" ? "max_pool" : "avg_pool", row.name,
                               without_pads(from), tall, wide, from.shape[0]);
  }

  NetworkTensor activation(const SummaryRow& row, const NetworkTensor& from) {
    return row.output.size() == 3 ? relu(row, from) : from;
  }

  NetworkTensor same(const SummaryRow&, const NetworkTensor& from) { return from; }

  NetworkTensor joined(const SummaryRow& row, const std::vector<NetworkTensor>& from) {
    if (row.depth > 0)
      fail(
          row,
          "reads several layers of a model inside of another, which a summary does not connect; expected the "
          "summary of that model alone, as model.get_layer(...).summary(line_length=160) prints it, or ONNX");
    if (!table_.has_connections)
      fail(row,
           "reads several layers, and the column 'Connected to' is missing; expected it, as "
           "model.summary(line_length=160) prints it in a wide terminal");
    if (from.size() < 2) return unsupported(row, from[0]);
    if (row.type == "Add") return builder_.add("add", row.name, from, from[0].shape);
    Sides shape = from[0].shape;
    for (std::size_t i = 1; i < from.size(); ++i) shape[0] += from[i].shape.at(0);
    return builder_.add("concat", row.name, from, shape);
  }

  NetworkTensor convert(const SummaryRow& row) {
    struct Conversion {
      std::string_view type;
      NetworkTensor (Keras::*add)(const SummaryRow&, const NetworkTensor&);
      bool takes_pads = false;  // an image with pads that no layer makes
    };
    static constexpr Conversion kConversions[] = {
        {"Conv2D", &Keras::convolution, true},
        {"DepthwiseConv2D", &Keras::convolution, true},
        {"ZeroPadding2D", &Keras::padding, true},
        {"MaxPooling2D", &Keras::pool, true},
        {"AveragePooling2D", &Keras::pool, true},
        {"Dense", &Keras::dense},
        {"BatchNormalization", &Keras::batch_norm},
        {"ReLU", &Keras::relu},
        {"LeakyReLU", &Keras::relu},
        {"Activation", &Keras::activation},
        {"GlobalAveragePooling2D", &Keras::whole_mean},
        {"Dropout", &Keras::dropout},
        {"Flatten", &Keras::flat},
        {"Softmax", &Keras::same},
    };
    if (is_model(row))
      fail(row,
           "is a model of its own, whose layers this summary does not show; expected "
           "model.summary(line_length=160, expand_nested=True), or the summary of that model alone, as "
           "model.get_layer(" +
               in_quotes(row.name) + ").summary(line_length=160) prints it");
    const bool joins = row.type == "Add" || row.type == "Concatenate";
    const std::vector<NetworkTensor> from = joins ? parents(row) : std::vector{only_parent(row)};
    const auto* found = std::ranges::find(kConversions, std::string_view(row.type), &Conversion::type);
    const bool known = found != std::end(kConversions);
    for (const NetworkTensor& tensor : from) {
      if (!(known && found->takes_pads) && without_pads(tensor).shape != tensor.shape)
        fail(row, "reads an image with pads; expected a convolution or a pool behind pads");
    }
    if (joins) return joined(row, from);
    return known ? (this->*found->add)(row, from[0]) : unsupported(row, from[0]);
  }

  std::vector<std::pair<std::string, NetworkTensor>> tensors_;
  std::map<std::string, Sides> unpadded_;  // outputs of layers that something pads
  NetworkTensor last_;
};

}  // namespace

ImportedFile keras_network(const std::string& text, const std::string& file, const GivenValues& given) {
  return Keras(read_keras_summary(text, file), file, given).network();
}

}  // namespace tbdsim
