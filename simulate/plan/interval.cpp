#include "simulate/plan/interval.h"

#include <cmath>

#include "costmodel/kernel_cost.h"

namespace tbdsim {
namespace {

// Maximum likelihood over the `fit` rows of tests/cluster/judge_runs.py, each set with the same weight
// (tests/cluster/fit_interval.py). With each set left out, the others' components hold 76 % of its rows.
constexpr double kAnyStep = 0.088;
constexpr double kWaiting = 0.78;
constexpr double kExperts = 0.22;

}  // namespace

double relative_deviation(const LayoutPrediction& prediction, const DecoderShape& shape) {
  const double waits = prediction.exposed() / prediction.step;
  const double experts = shape.mixture() ? kExperts : 0;
  return std::sqrt(kAnyStep * kAnyStep + kWaiting * waits * kWaiting * waits + experts * experts);
}

StepInterval interval_of(const LayoutPrediction& prediction, const DecoderShape& shape) {
  const double factor = std::exp(kEightyPercent * relative_deviation(prediction, shape));
  return {prediction.step * (1 / factor), prediction.step * factor};
}

}  // namespace tbdsim
