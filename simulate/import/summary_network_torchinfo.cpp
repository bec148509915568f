// torchinfo: modules in the order in which they run, one behind another; what functions do between them is
// not shown.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "simulate/import/summary_layers.h"
#include "simulate/import/summary_network.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

class Torchinfo : SummaryLayers {
 public:
  Torchinfo(SummaryTable table, const std::string& file) : SummaryLayers(std::move(table), file) {
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
                  sides_text(row.input), sides_text(last_.shape)));
  }

  // The pads and the stride of a kernel that make `out` of `in`; pads that keep sides come first.
  [[nodiscard]] WindowSide side(const SummaryRow& row, std::int64_t kernel, std::int64_t in,
                                std::int64_t out) const {
    for (std::int64_t stride = 1; stride <= kLargestSummaryStride && out > 0; ++stride) {
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
    if (row.kernel.empty() || row.kernel[0] > kLargestSummaryKernel ||
        row.kernel.back() > kLargestSummaryKernel)
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
      return conv(row, from, {.groups = from.shape[0] / inputs, .bias = bias}, tall, wide);
    }
    fail(row,
         fmt::format("{} parameters for {} filters of {} x {} over {} channels; expected a convolution's",
                     row.parameters, filters, tall.kernel, wide.kernel, from.shape[0]));
  }

  NetworkTensor pool(const SummaryRow& row, const NetworkTensor& from) {
    const auto [tall, wide] = window(row, from);
    const std::string name = row.name.empty() ? row.type : row.name;
    return builder_.add_window(row.type == "MaxPool2d" ? "max_pool" : "avg_pool", name, from, tall, wide,
                               from.shape[0]);
  }

  NetworkTensor adaptive_pool(const SummaryRow& row, const NetworkTensor& from) {
    if (row.output == from.shape) return from;
    const bool whole = row.output.size() == 3 && row.output[1] == 1 && row.output[2] == 1;
    return whole ? whole_mean(row, from) : unsupported(row, from);
  }

  NetworkTensor same(const SummaryRow&, const NetworkTensor& from) { return from; }

  NetworkTensor convert(const SummaryRow& row, const NetworkTensor& from) {
    struct Conversion {
      std::string_view type;
      NetworkTensor (Torchinfo::*add)(const SummaryRow&, const NetworkTensor&);
    };
    static constexpr Conversion kConversions[] = {
        {"Conv2d", &Torchinfo::convolution},
        {"Linear", &Torchinfo::dense},
        {"BatchNorm2d", &Torchinfo::batch_norm},
        {"BatchNorm1d", &Torchinfo::batch_norm},
        {"ReLU", &Torchinfo::relu},
        {"ReLU6", &Torchinfo::relu},
        {"LeakyReLU", &Torchinfo::relu},
        {"MaxPool2d", &Torchinfo::pool},
        {"AvgPool2d", &Torchinfo::pool},
        {"AdaptiveAvgPool2d", &Torchinfo::adaptive_pool},
        {"Dropout", &Torchinfo::dropout},
        {"Dropout1d", &Torchinfo::dropout},
        {"Dropout2d", &Torchinfo::dropout},
        {"Dropout3d", &Torchinfo::dropout},
        {"Flatten", &Torchinfo::flat},
        {"Identity", &Torchinfo::same},
        {"Softmax", &Torchinfo::same},
        {"LogSoftmax", &Torchinfo::same},
    };
    if (row.type == "Sequential" && row.parameters > 0)
      fail(row,
           "a Sequential, none of whose modules is shown; expected torchinfo.summary with a larger depth");
    const auto* found = std::ranges::find(kConversions, std::string_view(row.type), &Conversion::type);
    return found == std::end(kConversions) ? unsupported(row, from) : (this->*found->add)(row, from);
  }

  NetworkTensor last_;
};

}  // namespace

ImportedFile torchinfo_network(const std::string& text, const std::string& file) {
  return Torchinfo(read_torchinfo_summary(text, file), file).network();
}

}  // namespace tbdsim
