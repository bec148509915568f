// A measured step beside its prediction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulate/import/measured_run.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Kernels of one kind, launched by one part of the step where the profile tells parts; all of one step.
struct ComparedKernels {
  StepPart part = StepPart::unknown;
  std::string kind{};
  double predicted_count = 0, measured_count = 0;
  Seconds predicted, measured;
  std::optional<Seconds> elsewhere{};  // the measured time scaled to another GPU
};

struct ComparedTotals {
  double kernels = 0;             // launches of a step
  Seconds kernel_time{};          // sum over a step
  std::optional<Seconds> step{};  // from one to the next
  std::optional<Seconds> idle{};  // no kernel runs
  std::optional<Bytes> memory{};  // allocated tensors at their peak
};

struct Comparison {
  std::vector<ComparedKernels> rows{};  // the largest difference first
  ComparedTotals predicted, measured;
  bool parts = false;           // the rows tell them
  bool updates_merged = false;  // the profile cannot tell updates from element-wise kernels
};

// `steps`: training steps in the run. The prediction's are those of its typical iteration.
[[nodiscard]] Comparison compare_run(const Prediction& prediction, const MeasuredRun& run, double steps);

// Time of the measured step on another GPU: each row times what the model says of those kernels on both
// GPUs, the ratio of all kernels where a row has no prediction. `there` is the same scenario on the other
// GPU. Sets `elsewhere` of each row.
struct ScaledStep {
  Seconds kernel_time{};
  std::optional<Seconds> step{};  // the kernels, and the time without a kernel as it was measured
  double factor = 1;              // 80 % of steps are expected between time / factor and time * factor
};
[[nodiscard]] ScaledStep scale_to(Comparison& comparison, const Prediction& here, const Prediction& there);

}  // namespace tbdsim
