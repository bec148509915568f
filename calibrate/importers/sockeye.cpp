// nvprof summaries of one training iteration of Sockeye (UofT-EcoSystem/sockeye@8fe92d29df93, Apache-2.0) on
// the author's TITAN Xp: mean time and calls of every kernel by name, without shapes (op `kernel`). The
// lengths of the profiled sentences are not stated. API calls are time of the host and left out.
#include <array>

#include "calibrate/importers/importers.h"

namespace tbdsim {
namespace {
constexpr std::array kTypes{TableName{"GPU activities", "kernel"}, TableName{"API calls", ""}};
}  // namespace

ImportedRow import_sockeye_kernels(const TableRow& row) {
  Record record;
  record.op = renamed(row, "type", kTypes);
  if (record.op.empty()) return left_out("API calls: time of the host");
  record.gpu = "titanxp";
  record.generation = "mxnet";
  record.precision = "fp32";
  record.cache = "unknown";
  record.algorithm = row.text("profile");
  record.kernel = row.text("name");
  record.kernels = 1;
  record.samples = row.size("calls");
  record.time_s = row.seconds("avg_ms", kMillisecond_s);
  record.timer = "cupti";
  record.source = row.text("source");
  return {.records = {record}, .left_out = ""};
}

}  // namespace tbdsim
