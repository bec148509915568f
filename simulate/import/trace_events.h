// Events of a Chrome trace, one after another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace tbdsim {

// The fields of an event that a reader of the PyTorch profiler's traces needs; texts are empty and numbers 0
// where it has none.
struct TraceEvent {
  std::string phase;     // "X": it has a duration; "i": an instant
  std::string category;  // "kernel"; capitals as the writer has them
  std::string name;
  std::string thread;      // number or name
  std::int64_t start = 0;  // ns
  std::int64_t duration = 0;
  std::int64_t device = -1;
  std::int64_t correlation = -1;  // the same of a kernel and of the call that launched it
  std::int64_t device_type = -1;  // of memory: 0 CPU, 1 CUDA
  std::int64_t bytes = 0;         // of memory: allocated, or freed where negative
  std::int64_t allocated = -1;    // of memory: in all
  std::int64_t operation = -1;  // "External id": the same of an operator and of the kernels that it launched
  // Inputs of an operator, where the profiler recorded shapes: lists as JSON, "[[4,3],[3,8]]",
  // "[\"float\",\"float\"]".
  std::string shapes, strides, types, values;
};

// A GPU of the trace's header.
struct TraceDevice {
  std::int64_t id = 0;
  std::string name;
};

struct TraceVisitor {
  std::function<void(const TraceEvent&)> event;
  std::function<void(const TraceDevice&)> device;
  std::function<void(const std::string& key, double value)> number{};  // of the trace's header; may be none
};

// Reads the file once and holds one event at a time. Throws UsageError for a file that cannot be read,
// SpecError for one that is no JSON, nests deeper than 64 or has a text beyond 64 MiB.
void visit_trace(const std::filesystem::path& file, const TraceVisitor& visitor);

}  // namespace tbdsim
