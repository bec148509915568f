// NeuSight (sitar-lab/NeuSight@6945927d9afc, MIT): PyTorch 2.1, CUDA 12.1, cuDNN 8.9, fp32 with TF32 off,
// forward only, with kernel name and grid. Times are the mean of the fastest five calls, by CUDA events
// around single calls on an idle stream: they hold a launch floor of 24 to 97 us.
//
// * GEMM: y[b][m x n] = x[b][m x k] w, row-major; k is the reduced dimension. bmm: w is [k x n], linear: [n x
// k].
//   The original files call the reduced dimension n; the grids of this table's SGEMM kernels, which are named
//   after their tile (volta_sgemm_128x64_nn: 128 of n by 64 of m), tell the two apart, and each is checked.
// * SM counts are those of the GPU (58 for L4, 20 for P4), where NeuSight's own files give others.
// * addu, mulu, divu, powu take a tensor and a number (ops add_scalar, ...); add, mul, div, pow two tensors.
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "calibrate/importers/importers.h"
#include "hwspecs/base/number.h"

namespace tbdsim {
namespace {
constexpr std::array kGpus{
    TableName{"P4", "p4"},
    TableName{"P100", "p100_pcie"},
    TableName{"V100P", "v100_pcie_16gb"},
    TableName{"T4", "t4"},
    TableName{"A100", "a100_pcie_40gb"},
    TableName{"A100_80", "a100_pcie_80gb"},
    TableName{"H100", "h100_sxm"},
    TableName{"L4", "l4"},
};
constexpr std::array kSms{
    TableName{"P4", "20"},    TableName{"P100", "56"},     TableName{"V100P", "80"}, TableName{"T4", "40"},
    TableName{"A100", "108"}, TableName{"A100_80", "108"}, TableName{"H100", "132"}, TableName{"L4", "58"},
};
constexpr std::array kProducts{TableName{"bmm", "batched_gemm"}, TableName{"linear", "gemm"}};
constexpr std::array kOps{
    TableName{"add", "add"},         TableName{"mul", "mul"},         TableName{"div", "div"},
    TableName{"pow", "pow"},         TableName{"addu", "add_scalar"}, TableName{"mulu", "mul_scalar"},
    TableName{"divu", "div_scalar"}, TableName{"powu", "pow_scalar"}, TableName{"relu", "relu"},
    TableName{"tanh", "tanh"},       TableName{"gelu", "gelu"},       TableName{"softmax", "softmax"},
    TableName{"ln", "layer_norm"},
};

Record common(const TableRow& row) {
  Record record;
  record.gpu = renamed(row, "gpu", kGpus);
  record.precision = "fp32";
  record.time_s = row.seconds("t_ms", kMillisecond_s);
  record.samples = 5;
  record.timer = "event";
  record.cache = "unknown";
  record.kernel = row.text("kernel");
  record.cuda = "12.1";
  record.source = "sitar-lab/NeuSight:" + row.text("src") + "@6945927d9afc, " + row.place();
  return record;
}

std::string grid(const TableRow& row) {
  return std::to_string(row.count("grid_x")) + 'x' + std::to_string(row.count("grid_y")) + 'x' +
         std::to_string(row.count("grid_z")) + '/' + std::to_string(row.count("block_x"));
}

void require_sm_count(const TableRow& row) {
  const std::string expected = renamed(row, "gpu", kSms);
  if (std::to_string(row.count("sm_count")) != expected)
    row.fail("sm_count", expected + ", the SMs of " + row.text("gpu"));
}

// 128 and 64 of "volta_sgemm_128x64_nn"; nothing for kernels named otherwise.
std::optional<std::pair<std::int64_t, std::int64_t>> tile_of(std::string_view kernel) {
  constexpr std::string_view kMarker = "_sgemm_";
  const std::size_t marker = kernel.find(kMarker);
  if (marker == std::string_view::npos) return std::nullopt;
  const std::string_view tile = kernel.substr(marker + kMarker.size());
  const std::size_t by = tile.find('x');
  const std::size_t end = tile.find('_');
  if (by == std::string_view::npos || end == std::string_view::npos || by > end) return std::nullopt;
  if (tile.size() != end + std::string_view("_nn").size())
    return std::nullopt;  // CUTLASS numbers its blocks otherwise
  const auto across = parse_whole_number(tile.substr(0, by));
  const auto down = parse_whole_number(tile.substr(by + 1, end - by - 1));
  if (!across || !down || *across < 1 || *down < 1) return std::nullopt;
  return std::pair{*across, *down};
}

// The grid covers the output, never the reduced dimension.
void require_output_grid(const TableRow& row, const RecordShape& shape) {
  const auto tile = tile_of(row.text("kernel"));
  if (!tile) return;
  const auto tiles = [](std::int64_t size, std::int64_t of) { return (size + of - 1) / of; };
  if (row.count("grid_x") == tiles(shape.m, tile->first) &&
      row.count("grid_y") == tiles(shape.n, tile->second))
    return;
  row.fail("the grid " + row.text("grid_x") + " x " + row.text("grid_y") + " of " + row.text("kernel") +
           " does not cover an output of m x n = " + row.text("m") + " x " + row.text("n") +
           "; expected k as the reduced dimension");
}
}  // namespace

ImportedRow import_neusight_gemm(const TableRow& row) {
  Record record = common(row);
  record.op = renamed(row, "op", kProducts);
  record.generation = "cublas12";
  record.shape = row_major_gemm(row.size("m"), row.size("n"), row.size("k"));
  record.layout = record.op == "gemm" ? "TN" : "NN";
  if (record.op == "batched_gemm") {
    record.shape.batch = row.size("b");
  } else if (row.size("b") != 1) {
    row.fail("b", "1 for linear");
  }
  record.grid = grid(row);
  require_sm_count(row);
  require_output_grid(row, record.shape);
  return {.records = {record}, .left_out = ""};
}

ImportedRow import_neusight_conv(const TableRow& row) {
  Record record = common(row);
  record.op = "conv";
  record.phase = "forward";
  record.generation = "cudnn8";
  record.cudnn = "8.9";
  record.layout = "NCHW";
  record.shape = {.batch = row.size("n"),
                  .channels = row.size("c"),
                  .height = row.size("h"),
                  .width = row.size("h"),
                  .filters = row.size("k"),
                  .filter_h = row.size("r"),
                  .filter_w = row.size("r"),
                  .stride_h = row.size("stride"),
                  .stride_w = row.size("stride"),
                  .pad_h = row.count("pad"),
                  .pad_w = row.count("pad"),
                  .dilation_h = 1,
                  .dilation_w = 1,
                  .groups = 1};
  record.grid = grid(row);
  return {.records = {record}, .left_out = ""};
}

ImportedRow import_neusight_elementwise(const TableRow& row) {
  Record record = common(row);
  record.op = renamed(row, "op", kOps);
  record.phase = "forward";
  record.generation = "torch2";
  const std::int64_t rows = row.size("rows");
  const std::int64_t cols = row.size("cols");
  if (record.op == "softmax" || record.op == "layer_norm") {
    record.shape.rows = rows;
    record.shape.cols = cols;
  } else {
    record.shape.elements = rows * cols;
  }
  return {.records = {record}, .left_out = ""};
}

}  // namespace tbdsim
