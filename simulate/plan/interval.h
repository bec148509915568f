// How far measured steps are expected from a predicted one, as a sum of effects on ln(time), each with a standard
// deviation of its own:
//
//   sd^2 = B^2 + (X x)^2 + E^2
//
//   B  any step: machine, host, clocks, version of the stack
//   x  share of the step that waits for collectives and sends; X: effect of one that does nothing else
//   E  of a mixture of experts: routing, counts on the host, kernels of groups
#pragma once

#include "simulate/plan/step_time.h"

namespace tbdsim {

// Standard deviation of ln(measured step / predicted).
[[nodiscard]] double relative_deviation(const LayoutPrediction& prediction, const DecoderShape& shape);

// The interval in which 80 % of measured steps are expected.
struct StepInterval {
  Seconds low, high;
};
[[nodiscard]] StepInterval interval_of(const LayoutPrediction& prediction, const DecoderShape& shape);

}  // namespace tbdsim
