// What a point costs: flops and bytes of one call, and a guess of the seconds its measurement takes. Used to
// order, to time-box and for --dry-run; never part of a record.
#pragma once

#include "calibrate/measure/plan/plan.h"

namespace tbdsim::measure {

struct Work {
  double flops = 0;         // of the plain algorithm, a multiply-add being 2
  double bytes = 0;         // every operand moved once
  double device_bytes = 0;  // device memory the point needs, without workspace
};

[[nodiscard]] Work work_of(const PlanPoint& point);

// Rates of the GPU a guess is for.
struct GpuRates {
  // NVIDIA TITAN Xp (hwspecs/gpus/titanxp.yaml): for --dry-run, where no device is asked.
  double fp32_flop_per_s = 12.15e12;
  double bytes_per_s = 547.6e9;
  double l2_bytes = 3.0 * 1024 * 1024;
};

// Seconds to set up, warm up and time a point.
[[nodiscard]] double guess_seconds(const PlanPoint& point, const GpuRates& gpu);

}  // namespace tbdsim::measure
