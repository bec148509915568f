#include "simulate/report/export/benchmark_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <ostream>

#include <fmt/format.h>

#include "hwspecs/base/csv.h"

namespace tbdsim {
namespace {

constexpr std::array<std::string_view, 30> kColumns = {
    "op",       "precision",  "phase",  "layout",     "value",      "m",        "n",        "k",
    "batch",    "channels",   "height", "width",      "filters",    "filter_h", "filter_w", "stride_h",
    "stride_w", "pad_h",      "pad_w",  "dilation_h", "dilation_w", "groups",   "rows",     "cols",
    "elements", "input_size", "hidden", "layers",     "directions", "steps"};

using Row = std::map<std::string_view, std::string>;

// Operations of kernels -> operations of tbd-measure. Other operations are not measured.
struct Measured {
  std::string_view op;
  std::string_view measured_as;
};
constexpr Measured kMeasured[] = {{"conv", "conv"},
                                  {"conv_1x1", "gemm"},
                                  {"matmul", "gemm"},
                                  {"batched_matmul", "batched_gemm"},
                                  {"lstm", "lstm"},
                                  {"gru", "gru"},
                                  {"layer_norm", "layer_norm"},
                                  {"batch_norm", "batch_norm"},
                                  {"max_pool", "max_pool"},
                                  {"avg_pool", "avg_pool"},
                                  {"softmax_loss", "softmax"},
                                  {"softmax", "softmax"},
                                  {"relu", "relu"},
                                  {"add", "add"},
                                  {"gradient_sum", "add"},
                                  {"accumulate", "add"},
                                  {"bias_add", "bias"},
                                  {"bias_gradient", "bias"},
                                  {"dropout", "dropout"},
                                  {"momentum", "sgd_momentum"},
                                  {"nesterov", "sgd_momentum"},
                                  {"adam", "adam"}};

std::optional<std::string> measured_op(std::string_view op) {
  for (const Measured& entry : kMeasured) {
    if (entry.op == op) return std::string(entry.measured_as);
  }
  return std::nullopt;
}

// A matrix product has no phase of its own, a sum is the same in every phase, and one call of batch
// normalisation yields all gradients.
std::string_view measured_phase(std::string_view op, Phase phase) {
  if (op == "gemm" || op == "batched_gemm") return "";
  if (op == "add") return name_of(Phase::forward);
  if (op == "batch_norm" && phase == Phase::backward_weights) return name_of(Phase::backward_data);
  return name_of(phase);
}

// Puts the sizes of a shape into a row.
struct ShapeColumns {
  Row& row;
  double batch;
  bool channels_last;

  void set(std::string_view column, double size) const { row[column] = fmt::format("{:.0f}", size); }
  void set(std::string_view column, std::int64_t size) const { row[column] = fmt::format("{}", size); }

  void operator()(const VectorShape& v) const { set("elements", v.elements.at(batch)); }
  void operator()(const MatrixShape& m) const {
    set("rows", m.rows.at(batch));
    set("cols", m.columns);
  }
  void operator()(const ImageShape& i) const {
    set("batch", i.images.at(batch));
    set("channels", i.channels);
    set("height", i.height);
    set("width", i.width);
    row["layout"] = channels_last ? "NHWC" : "NCHW";
  }
  void operator()(const PoolShape& p) const {
    (*this)(p.input);
    window(p.kernel_height, p.kernel_width, p.stride_height, p.stride_width, p.pad_height, p.pad_width);
  }
  void operator()(const ConvShape& c) const {
    (*this)(ImageShape{c.images, c.channels, c.height, c.width});
    set("filters", c.filters);
    window(c.kernel_height, c.kernel_width, c.stride_height, c.stride_width, c.pad_height, c.pad_width);
    set("dilation_h", c.dilation_height);
    set("dilation_w", c.dilation_width);
    set("groups", c.groups);
    if (c.channels_last) row["layout"] = "NHWC";
  }
  void operator()(const GemmShape& g) const {
    set("m", g.m.at(batch));
    set("n", g.n.at(batch));
    set("k", g.k.at(batch));
    if (g.batch.at(batch) > 1) row["op"] = "batched_gemm";  // products of images, too
    if (row["op"] == "batched_gemm") set("batch", g.batch.at(batch));
    row["layout"] = fmt::format("{}{}", g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N');
  }
  void operator()(const AttentionShape&) const {}  // is not measured
  void operator()(const RecurrentShape& r) const {
    set("batch", r.batch.at(batch));
    set("steps", r.steps);
    set("input_size", r.inputs);
    set("hidden", r.hidden);
    set("layers", std::int64_t{1});
    set("directions", std::int64_t{1});
  }
  void window(std::int64_t filter_h, std::int64_t filter_w, std::int64_t stride_h, std::int64_t stride_w,
              std::int64_t pad_h, std::int64_t pad_w) const {
    set("filter_h", filter_h);
    set("filter_w", filter_w);
    set("stride_h", stride_h);
    set("stride_w", stride_w);
    set("pad_h", pad_h);
    set("pad_w", pad_w);
  }
};

}  // namespace

void write_measuring_plan(std::ostream& out, std::span<const UniqueKernel> kernels) {
  // Several kernels may be one call of tbd-measure; its value is the time of them all.
  std::map<Row, Seconds> rows;
  for (const UniqueKernel& k : kernels) {
    const auto op = measured_op(k.kernel.op);
    if (!op) continue;
    Row row{{"op", *op}, {"precision", std::string(k.precision)}};
    row["phase"] = measured_phase(*op, k.kernel.phase);
    std::visit(ShapeColumns{row, k.batch, k.channels_last}, k.kernel.shape);
    rows[row] += k.total;
  }
  std::vector<std::pair<Row, Seconds>> ordered(rows.begin(), rows.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  write_csv_row(out, std::vector<std::string>(kColumns.begin(), kColumns.end()));
  for (auto& [row, value] : ordered) {
    row["value"] = fmt::format("{:.6g}", value.si());
    std::vector<std::string> fields;
    for (const std::string_view column : kColumns) fields.push_back(row[column]);
    write_csv_row(out, fields);
  }
}

}  // namespace tbdsim
