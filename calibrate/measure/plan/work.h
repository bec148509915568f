// Flops and bytes of one call of a point, and an estimate of the seconds that its measurement takes. Used for
// the order, for time limits and for --dry-run; never part of a record.
#pragma once

#include "calibrate/measure/plan/plan.h"

namespace tbdsim::measure {

struct Work {
  double flops = 0;         // of the direct algorithm; a multiply-add counts as 2
  double bytes = 0;         // every operand moved once
  double device_bytes = 0;  // device memory the point needs, without workspace
};

[[nodiscard]] Work work_of(const PlanPoint& point);

// Rates of a GPU. The defaults are those of the NVIDIA TITAN Xp (hwspecs/gpus/titanxp.yaml), for --dry-run.
struct GpuRates {
  double fp32_flop_per_s = 12.15e12;
  double bytes_per_s = 547.6e9;
  double l2_bytes = 3.0 * 1024 * 1024;
};

// Estimated seconds to set up, warm up and time a point.
[[nodiscard]] double guess_seconds(const PlanPoint& point, const GpuRates& gpu);

}  // namespace tbdsim::measure
