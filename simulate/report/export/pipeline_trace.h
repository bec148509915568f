// A step of a pipeline as a trace for Perfetto: a thread for each stage, a slice for each forward and
// backward pass of a micro-batch, the gaps are the bubble; then the exchange between replicas and the update.
#pragma once

#include <iosfwd>

#include "simulate/plan/step_time.h"

namespace tbdsim {

// Chunks of an interleaved stage have equal parts of its time. Throws UsageError for a schedule that cannot
// be simulated event by event, and for more than a million passes.
void write_pipeline_trace(std::ostream& out, const LayoutPrediction& prediction, const Job& job);

}  // namespace tbdsim
