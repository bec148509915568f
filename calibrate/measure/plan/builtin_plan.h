// The plan that serves where no model catalogue wrote one: kernels of the eight models of the TBD suite at
// several batch sizes, skinny, odd and large matrices, five sizes of everything that streams memory.
#pragma once

#include <vector>

#include "calibrate/measure/plan/plan.h"

namespace tbdsim::measure {

[[nodiscard]] std::vector<PlanPoint> builtin_plan();

// Its parts, one file each. Values: 16 what every fit needs, 4 common layers, 1 variations; a precision other
// than fp32 counts less (precision_value).
void add_gemms(std::vector<PlanPoint>& points);
void add_convolutions(std::vector<PlanPoint>& points);
void add_streams(std::vector<PlanPoint>& points);
void add_images(std::vector<PlanPoint>& points);
void add_recurrences(std::vector<PlanPoint>& points);
[[nodiscard]] double precision_value(const std::string& precision);

}  // namespace tbdsim::measure
