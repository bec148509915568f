// Sweeps over jobs on clusters: axes are keys of a job (job_request.h) and changes of specs, metrics those of
// layouts. A point without a layout has the fastest one that fits.
#pragma once

#include <cstdint>
#include <memory>

#include "simulate/sweep/sweep.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// The key that makes a sweep one over jobs.
inline constexpr std::string_view kKeyOfLayouts = "global_batch";

// True for dp, tp, ...: a sweep without one searches layouts.
[[nodiscard]] bool is_layout_key(std::string_view name);

// Throws UsageError or SpecError for what is wrong at every point: unknown keys, values out of range, a
// missing model.
void check_layouts(const Sweep& sweep, SpecCache& specs);

// Predicts the points one by one. Points that differ in their layout alone share times of kernels.
class LayoutPredictor {
 public:
  // Both must outlive it.
  LayoutPredictor(const Sweep& sweep, SpecCache& specs);
  ~LayoutPredictor();
  LayoutPredictor(LayoutPredictor&&) noexcept;

  [[nodiscard]] SweepPoint at(std::int64_t point);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tbdsim
