// A plan: the list of kernel calls to measure, most valuable first.
//
// Its CSV form (`--plan FILE.csv`; `tbd-sim kernels ... --plan` writes one). Columns, in any order:
//   op         required: a name of --list-ops
//   precision  required: fp32, tf32, fp16, bf16
//   phase      forward, backward_data, backward_weights, update; may be empty where the op has no phases
//   layout     gemm: NN, NT, TN, TT; tensors: NCHW, NHWC; empty = the op's default
//   cache      cold, hot or both; empty = the op's default (cold for kernels)
//   value      priority of the point in any unit: larger is measured earlier; empty = 1
//   batch, m, n, k, channels, ... steps: the sizes, named as in the records (calibrate/records/record_shape.h)
// A column that is not needed may be missing. An unknown column or a malformed number is an error
// (file:line). A row whose op is unknown or whose shape is impossible is skipped, with a message that names
// it and its line. Equal rows are measured once, at the higher value.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "calibrate/records/record.h"

namespace tbdsim::measure {

struct PlanPoint {
  std::string op{};
  std::string precision{};
  std::string phase{};
  std::string layout{};
  std::string cache{};
  RecordShape shape{};
  double value = 1;
  std::string where{};  // "plan.csv:17" or "built-in": for messages

  bool operator==(const PlanPoint&) const = default;
};

// "conv forward fp32 NCHW cold batch=16 channels=64 ...": the name of a point in messages.
[[nodiscard]] std::string to_text(const PlanPoint& point);
// The point as the record it will become, without a result.
[[nodiscard]] Record record_of(const PlanPoint& point);
// Equal to point_key() of the records the point yields.
[[nodiscard]] std::string key(const PlanPoint& point);

struct Plan {
  std::vector<PlanPoint> points;     // complete, unique
  std::vector<std::string> skipped;  // "plan.csv:17: conv forward ...: filter 7x7 is larger than ..."
};

// Completes and checks points and merges equal ones; cache `both` becomes two points.
[[nodiscard]] Plan make_plan(std::vector<PlanPoint> points);

[[nodiscard]] Plan read_plan(std::istream& in, const std::string& file_name);
// The header and rows that read_plan() reads back.
void write_plan(std::ostream& out, const std::vector<PlanPoint>& points);

}  // namespace tbdsim::measure
