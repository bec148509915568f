// The chain from a scenario to a prediction: graph -> kernels -> costs -> timeline -> memory. Every step is a
// public function of its own; this runs them all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/iteration.h"
#include "simulate/library.h"
#include "simulate/memory_plan.h"

namespace tbdsim {

inline constexpr std::int64_t kMostSamples = 1'000'000'000;  // the largest --batch

// Names of the catalogue or paths to YAML files.
struct Scenario {
  std::string model{};
  std::string framework{};
  std::string gpu{};
  std::int64_t batch = 1;
  std::string variant{};  // empty: the one the framework trains
  std::string precision = "fp32";
  std::string profile = "uncalibrated";
};

struct Interval {
  double low = 0;
  double high = 0;
};

struct Prediction {
  Scenario scenario;  // with the variant's name filled in
  const ModelFile* model = nullptr;
  const GpuSpec* gpu = nullptr;
  const Framework* framework = nullptr;
  const Profile* profile = nullptr;
  const TrainingStep* step = nullptr;
  std::vector<KernelCost> costs;  // one for each kernel of the step
  Timeline timeline;
  MemoryPlan memory;
  bool fits = false;
  Flops flops;                 // of one iteration
  FlopsPerSecond peak;         // of the arithmetic the precision uses
  double interval_factor = 1;  // 80 % of measured times are expected within time / factor to time x factor

  [[nodiscard]] double throughput() const;  // samples per second
  [[nodiscard]] Interval throughput_interval() const;
  // Share of the iteration spent in kernels limited by compute, memory or overhead.
  [[nodiscard]] double share(Bound bound) const;
  [[nodiscard]] Bound bound() const;  // the largest share
};

// Throws UsageError, SpecError or ModelError. A batch that does not fit still gets its hypothetical
// throughput.
[[nodiscard]] Prediction predict(const Scenario& scenario, Library& library);

}  // namespace tbdsim
