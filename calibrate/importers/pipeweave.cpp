// pipeweave (zksainx/pipeweave@55e03178d15a, Apache-2.0): fp8 matrix products of language models, a mean over
// repeated calls. The library that ran them is not stated. Hopper's fp8 instruction takes both operands with
// the reduced dimension innermost, which is layout TN; the output is [M x N] row-major.
#include <array>

#include "calibrate/importers/importers.h"

namespace tbdsim {
namespace {
// 132 SMs and 3.35 TB/s are those of the SXM board of the H100.
constexpr std::array kGpus{TableName{"NVIDIA H100", "h100_sxm"}, TableName{"NVIDIA H200", "h200"},
                           TableName{"NVIDIA H20", ""}, TableName{"NVIDIA H800", ""}};
constexpr std::array kPrecisions{TableName{"fp8", "fp8"}};
}  // namespace

ImportedRow import_pipeweave_gemm(const TableRow& row) {
  Record record;
  record.gpu = renamed(row, "gpu", kGpus);
  if (record.gpu.empty()) return left_out(row.text("gpu") + " is not in the catalogue");
  if (row.count("num_sms") != 132) row.fail("num_sms", "132, the SMs of " + row.text("gpu"));
  record.precision = renamed(row, "precision", kPrecisions);
  record.op = "gemm";
  record.generation = "unknown";
  record.shape = row_major_gemm(row.size("M"), row.size("N"), row.size("K"));
  record.layout = "TN";
  record.cache = "unknown";
  record.time_s = row.seconds("avg_us", kMicrosecond_s);
  record.timer = "host";
  record.source = row.text("source");
  return {.records = {record}, .left_out = ""};
}

}  // namespace tbdsim
