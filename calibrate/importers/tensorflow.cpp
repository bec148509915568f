// Layers of random shape in a TensorFlow 1 session (CDECatapult/ml-performance-prediction@e649f32d354d,
// Apache-2.0): the median of single runs, with the session's overhead of 0.1 to 0.35 ms. `spread` is the
// standard deviation over the median. A convolution or product alone is an op; with bias, activation or an
// optimizer (forward, backward and update in one time) it is a `network`, named in the column `kernel`.
//
// Left out: GPUs whose board is not stated (P100, V100) or that the catalogue has not (K40), and SAME padding
// that adds a pixel at one side only, which a record cannot say. One convolution of a K80 (4 x 1623 x 6 x 6
// by 5 x 5, 28 ms) is slower than a record may be.
#include <algorithm>
#include <array>

#include "calibrate/importers/importers.h"

namespace tbdsim {
namespace {
constexpr std::array kGpus{TableName{"1080ti", "gtx1080ti"},
                           TableName{"M60", "m60"},
                           TableName{"k80", "k80"},
                           TableName{"K40", ""},
                           TableName{"P100", ""},
                           TableName{"V100", ""}};
constexpr std::array kPrecisions{TableName{"fp32", "fp32"}};
constexpr std::array kPaddings{TableName{"SAME", "same"}, TableName{"VALID", "valid"}};

ImportedRow unknown_board(const TableRow& row) {
  return left_out(row.text("gpu") + ": not in the catalogue, or its board is not stated");
}

Record common(const TableRow& row, const std::string& gpu) {
  Record record;
  record.gpu = gpu;
  record.precision = renamed(row, "precision", kPrecisions);
  record.generation = "tensorflow1";
  record.cache = "unknown";
  record.timer = "event";
  record.time_s = row.seconds("time_median_ms", kMillisecond_s);
  record.spread = row.number("time_std_ms") * kMillisecond_s / record.time_s;
  record.source =
      "CDECatapult/ml-performance-prediction:" + row.text("source") + "@e649f32d354d, " + row.place();
  return record;
}

// Turns the record of an op with bias, activation or optimizer into one of a network.
void name_network(Record& record, const TableRow& row, bool bias) {
  const bool active = row.text("activation") != "none";
  const bool trained = row.text("optimizer") != "None";
  if (!bias && !active && !trained) return;
  record.kernel = record.op + (bias ? ", bias" : "") + (active ? ", " + row.text("activation") : "") +
                  (trained ? ", " + row.text("optimizer") : "");
  record.op = "network";
  if (trained) record.phase = "";
}

// Padding at each side for TensorFlow's SAME: the output has ceil(in / stride) pixels.
std::int64_t same_padding(std::int64_t in, std::int64_t filter, std::int64_t stride) {
  const std::int64_t out = (in + stride - 1) / stride;
  const std::int64_t missing = std::max<std::int64_t>((out - 1) * stride + filter - in, 0);
  return (missing + 1) / 2;
}
}  // namespace

ImportedRow import_tensorflow_conv(const TableRow& row) {
  const std::string gpu = renamed(row, "gpu", kGpus);
  if (gpu.empty()) return unknown_board(row);
  Record record = common(row, gpu);
  record.op = "conv";
  record.phase = "forward";
  record.layout = "NHWC";
  const std::int64_t in = row.size("in_size");
  const std::int64_t filter = row.size("kernel");
  const std::int64_t stride = row.size("stride");
  const bool same = renamed(row, "padding", kPaddings) == "same";
  const std::int64_t pad = same ? same_padding(in, filter, stride) : 0;
  if (same && output_size(in, filter, pad, stride, 1) != (in + stride - 1) / stride) {
    return left_out("SAME padding at one side only");
  }
  record.shape = {.batch = row.size("batch"),
                  .channels = row.size("c_in"),
                  .height = in,
                  .width = in,
                  .filters = row.size("c_out"),
                  .filter_h = filter,
                  .filter_w = filter,
                  .stride_h = stride,
                  .stride_w = stride,
                  .pad_h = pad,
                  .pad_w = pad,
                  .dilation_h = 1,
                  .dilation_w = 1,
                  .groups = 1};
  name_network(record, row, row.count("bias") != 0);
  if (implausible(record)) return left_out("slower than a record may be (implausible, record.h)");
  return {.records = {record}, .left_out = ""};
}

ImportedRow import_tensorflow_dense(const TableRow& row) {
  const std::string gpu = renamed(row, "gpu", kGpus);
  if (gpu.empty()) return unknown_board(row);
  Record record = common(row, gpu);
  record.op = "gemm";
  record.layout = "NN";
  record.shape = row_major_gemm(row.size("batch"), row.size("dim_out"), row.size("dim_in"));
  name_network(record, row, false);
  return {.records = {record}, .left_out = ""};
}

}  // namespace tbdsim
