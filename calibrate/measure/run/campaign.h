// The measuring run: every point of a plan in order, references in between, rows into the result file.
#pragma once

#include <cstddef>

#include "calibrate/measure/device/session.h"
#include "calibrate/measure/plan/plan.h"
#include "calibrate/measure/run/progress.h"
#include "calibrate/measure/run/result_file.h"

namespace tbdsim::measure {

struct CampaignResult {
  std::size_t measured = 0;      // points
  std::size_t already_done = 0;  // found in the file
  std::size_t skipped = 0;       // not possible on this GPU; each was reported by name
  std::size_t out_of_time = 0;
  std::size_t not_reached = 0;  // interrupted before them
  double worst_slowdown = 1;    // of the reference GEMM
  Highlights highlights;
};

// Set by a signal handler to stop after the current point.
[[nodiscard]] bool interrupted();

// `minutes` 0 or less: until all points are done. Throws UsageError when a row cannot be written, DeviceLost
// when the GPU fails; what was measured before is in the file.
[[nodiscard]] CampaignResult run_campaign(Session& session, const Plan& plan, double minutes,
                                          ResultFile& file, Progress& progress);

}  // namespace tbdsim::measure
