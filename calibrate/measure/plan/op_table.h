// The ops that tbd-measure can measure, one row per op. Printed by --list-ops; every point of a plan is
// checked against it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/measure/plan/plan.h"

namespace tbdsim::measure {

struct OpSpec {
  std::string name;
  std::string library;              // cublas, cudnn, nccl, cuda (copies) or own: the record's generation
  std::vector<std::string> phases;  // {""} where an op has none
  std::vector<std::string> precisions;
  std::vector<std::string> layouts;  // the first is the default; {""} where an op has none
  std::vector<std::string> caches;   // the first is the default
  std::vector<std::string> sizes;    // shape columns that must be 1 or more (0 or more for the padding)
  std::vector<std::string> sizes_from_one;  // shape columns that are 1 when left out
  std::string what;                         // description, one line
};

[[nodiscard]] const std::vector<OpSpec>& op_table();
// Null when there is no such op.
[[nodiscard]] const OpSpec* find_op(std::string_view name);

// Sets the default layout and cache and the sizes that default to 1. Returns the reason why the point cannot
// be measured on any GPU ("filter 7x7 is larger than the padded input 3x3"), or nothing.
[[nodiscard]] std::optional<std::string> complete(PlanPoint& point);

}  // namespace tbdsim::measure
