// The predictions' kernels as a plan for tbd-measure.
#pragma once

#include <iosfwd>
#include <span>

#include "simulate/analysis/unique_kernels.h"

namespace tbdsim {

// The measuring plan that tbd-measure --plan reads (columns in calibrate/measure/plan.h): a row for each
// kernel it has an operation for, its value the predicted time of all its executions.
void write_measuring_plan(std::ostream& out, std::span<const UniqueKernel> kernels);

}  // namespace tbdsim
