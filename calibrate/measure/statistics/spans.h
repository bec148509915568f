// Activity of the GPU during a burst of timed calls, from the tracer's records (device/activity.h). Host
// only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tbdsim::measure {

// A kernel, memset or copy on the GPU's clock, in nanoseconds.
struct Span {
  std::string name;  // as the compiler mangled it; empty for memsets and copies
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::string grid;  // "30x11x1/128x1x1"
};

// Kernels that this program launches just before and just after each timed call; kernels.cu defines them.
inline constexpr const char* kBeginMark = "tbd_begin_kernel";
inline constexpr const char* kEndMark = "tbd_end_kernel";

// One timed call.
struct CallSpans {
  double busy_s = 0;  // time during which at least one span ran: gaps are left out, overlaps count once
  std::int64_t spans = 0;
  std::string kernel;  // the longest, demangled and cut to a readable length
  std::string grid;
};

// Cuts a burst at its marks. Spans outside a pair of marks (cache flushes) are left out. Returns fewer calls
// than there were when marks are missing: the tracer then lost records and its times must not be used.
[[nodiscard]] std::vector<CallSpans> calls_of(std::vector<Span> spans);

// "void gemm<float, 128>(int)" from a mangled name; other text is returned as it is. At most 120 characters.
[[nodiscard]] std::string readable_name(const std::string& mangled);

}  // namespace tbdsim::measure
