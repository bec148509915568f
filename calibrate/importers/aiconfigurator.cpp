// aiconfigurator's measured database (ai-dynamo/aiconfigurator, Apache-2.0): linear layers of inference
// frameworks in bf16, y[m x n] = x[m x k] w[n x k]^T, a mean over repeated calls. The state of the L2 cache
// is not stated. The frameworks ran on CUDA 12, whose cuBLAS `generation` names; `algorithm` names the
// framework, which may pick kernels of its own.
#include <array>

#include "calibrate/importers/importers.h"

namespace tbdsim {
namespace {
constexpr std::array kGpus{
    TableName{"NVIDIA A100-SXM4-80GB", "a100_sxm_80gb"},
    TableName{"NVIDIA H100 80GB HBM3", "h100_sxm"},
    TableName{"NVIDIA H200", "h200"},
    TableName{"NVIDIA B200", "b200"},
    TableName{"NVIDIA L40S", "l40s"},
};
constexpr std::array kPrecisions{TableName{"bfloat16", "bf16"}};
}  // namespace

ImportedRow import_aiconfigurator_gemm(const TableRow& row) {
  Record record;
  record.gpu = renamed(row, "device", kGpus);
  record.precision = renamed(row, "dtype", kPrecisions);
  record.op = "gemm";
  record.generation = "cublas12";
  record.shape = row_major_gemm(row.size("m"), row.size("n"), row.size("k"));
  record.layout = "TN";
  record.cache = "unknown";
  record.algorithm = row.text("framework") + " " + row.text("fw_version") + " " + row.text("kernel_source");
  record.time_s = row.seconds("latency_us", kMicrosecond_s);
  record.timer = "host";
  record.source = "ai-dynamo/aiconfigurator:" + row.place();
  return {.records = {record}, .left_out = ""};
}

}  // namespace tbdsim
