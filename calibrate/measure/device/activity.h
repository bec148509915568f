// CUPTI activity tracing: start and end of every kernel, memset and copy on the GPU's own clock.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measure/statistics/spans.h"

namespace tbdsim::measure {

// At most one in a process: CUPTI's callbacks take no user argument.
class Tracer {
 public:
  // CUPTI is switched on by the first start() and stays on, which slows launches but not kernels; a refusal
  // (no permission, another profiler, library mismatch) is kept in refusal() and every later start() is a
  // no-op.
  explicit Tracer(int device_ordinal) : device_(device_ordinal) {}

  // For --no-cupti, and when its records turned out to be unusable.
  void refuse(const std::string& why);
  [[nodiscard]] bool usable() const { return refusal_.empty(); }
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  // Spans between start() and stop(); the stream must be idle at both.
  void start();
  [[nodiscard]] std::vector<Span> stop();

 private:
  int device_;
  bool enabled_ = false;
  std::string refusal_;
};

}  // namespace tbdsim::measure
