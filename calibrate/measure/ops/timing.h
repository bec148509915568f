// Times one call of a library: warm-up, bursts until the spread is small, GPU busy time from the tracer and
// events around each call as a cross-check.
#pragma once

#include <functional>

#include "calibrate/measure/device/session.h"
#include "calibrate/measure/statistics/statistics.h"
#include "calibrate/records/record.h"

namespace tbdsim::measure {

// Fills time_s, spread, samples, event_time_s, timer, kernel, kernels, grid and the clocks of `record`;
// record.cache == "cold": the L2 cache is overwritten before each call. `call` enqueues on session.stream()
// and may throw.
void time_call(Session& session, Record& record, const std::function<void()>& call,
               const StoppingRule& rule = {});
}  // namespace tbdsim::measure
