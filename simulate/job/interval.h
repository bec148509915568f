// How far measured steps are expected from a predicted step of a layout: the effects of uncertainty.h that a
// layout has, each a standard deviation of ln(time).
#pragma once

#include "simulate/job/resolve_job.h"
#include "simulate/prediction/uncertainty.h"

namespace tbdsim {

// Standard deviation of ln(measured step / predicted) by effect; their squares add. Kernels and GPU count by
// the kernels' share of the step, exchange by the share of exposed communication.
[[nodiscard]] Effects deviations_of(const LayoutPrediction& prediction, const ResolvedJob& job);

}  // namespace tbdsim
