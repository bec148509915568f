// A prediction: what training costs in time and memory, and the figures that follow from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "hwspecs/base/quantity.h"
#include "simulate/memory/memory_plan.h"
#include "simulate/prediction/iteration.h"
#include "simulate/prediction/resolved_scenario.h"

namespace tbdsim {

// Cores of the host over which CPU utilization is reported: the TBD paper, Table IV.
inline constexpr int kHostCores = 28;

struct Interval {
  double low = 0;
  double high = 0;
};

// The limit of a part of an iteration. While the GPU is busy: its kernels' arithmetic, memory bandwidth
// or overhead. While it is idle: the CPU that launches kernels and waits for copies, samples that are not
// decoded yet, or the synchronization of gradients (its name in outputs is "exchange").
enum class Limit { compute, memory, overhead, cpu, input, sync };
inline constexpr std::array<std::string_view, 6> kLimitNames = {"compute", "memory", "overhead",
                                                                "cpu",     "input",  "exchange"};
[[nodiscard]] constexpr std::string_view name_of(Limit limit) {
  return kLimitNames[static_cast<std::size_t>(limit)];
}

// The scenario with its results. Times and throughputs are means over the iterations; throughputs are of all
// GPUs together, the batch of one.
struct Prediction : ResolvedScenario {
  Prediction() = default;
  explicit Prediction(ResolvedScenario resolved) : ResolvedScenario(std::move(resolved)) {}

  std::vector<Iteration> iterations;  // one for each padded length; at least one
  std::size_t largest = 0;            // index of the iteration that needs most memory
  MemoryPlan memory;                  // of that iteration
  bool fits = false;                  // into the GPU's memory
  Flops flops;                        // of an iteration
  FlopsPerSecond peak;                // of the arithmetic the precision uses

  [[nodiscard]] Seconds iteration_time() const;
  [[nodiscard]] double batch() const;       // samples
  [[nodiscard]] double throughput() const;  // of the model's unit, per second
  [[nodiscard]] double samples_per_second() const;
  // 80 % of measured times are expected between time / factor and time * factor.
  [[nodiscard]] double interval_factor() const;
  [[nodiscard]] Interval throughput_interval() const;
  [[nodiscard]] double efficiency() const;     // throughput over that of as many GPUs that train alone
  [[nodiscard]] Seconds exposed_time() const;  // of an iteration: waiting for other GPUs, or slowed by them

  [[nodiscard]] double share(Limit limit) const;  // of the time, 0 to 1; the shares of all limits add up to 1
  [[nodiscard]] Limit bound() const;              // the limit with the largest share
  // The iteration that takes most of the time.
  [[nodiscard]] const Iteration& typical() const;

  // Bytes of the GPU that the run can take, its CUDA context among them: what CUDA reports less what the
  // framework's pool leaves free.
  [[nodiscard]] Bytes usable_memory() const;
  // The largest batch, in samples of the length that needs most memory, that fits the GPU; 0: none does.
  [[nodiscard]] std::int64_t largest_batch() const;
  // The memory of a batch of that length.
  [[nodiscard]] MemoryPlan memory_at(std::int64_t batch) const;
  // The library state for layers of all lengths but this one (an index of `steps`): where memory is
  // planned ahead it is kept for every length.
  [[nodiscard]] Bytes library_state_beside(std::size_t length) const;

  // One pass over the samples of the data set that fit a bucket, and its rent; none where the data set or the
  // GPU does not have the number.
  [[nodiscard]] std::optional<Seconds> epoch_time() const;
  [[nodiscard]] std::optional<Dollars> epoch_cost() const;
  // Sum over all GPUs; none where the GPU's file has no price.
  [[nodiscard]] std::optional<Dollars> price() const;
  [[nodiscard]] std::optional<DollarsPerSecond> rent() const;
};

}  // namespace tbdsim
