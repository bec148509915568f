// The built-in plan, for runs without --plan: kernels of the eight models of the TBD suite at several batch
// sizes; tall and thin, odd and large matrices; five sizes of every op that streams memory.
#pragma once

#include <vector>

#include "calibrate/measure/plan/plan.h"

namespace tbdsim::measure {

[[nodiscard]] std::vector<PlanPoint> builtin_plan();

// Its parts, one file each. Values: 16 for points that every fit needs, 4 for common layers, 1 for
// variations, times precision_value, which is lower for precisions other than fp32.
void add_gemms(std::vector<PlanPoint>& points);
void add_convolutions(std::vector<PlanPoint>& points);
void add_streams(std::vector<PlanPoint>& points);
void add_images(std::vector<PlanPoint>& points);
void add_recurrences(std::vector<PlanPoint>& points);
[[nodiscard]] double precision_value(const std::string& precision);

}  // namespace tbdsim::measure
