// The work of a layer's kernels, for tests: one that only moves memory, and sums over all of them.
#pragma once

#include <vector>

#include "tests/graphs/layer_fixture.h"

namespace tbdsim::test {

[[nodiscard]] inline Work moving(std::string_view op, KernelKind kind, Phase phase, std::int64_t flops,
                                 Size read, Size written) {
  return {op, kind, phase, per_sample(flops), {}, read, written, {}};
}

// Sum over all kernels, repeats included.
struct Traffic {
  std::int64_t kernels = 0;
  Size read, written;

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

inline void PrintTo(const Traffic& traffic, std::ostream* out) {
  *out << traffic.kernels << " kernels, read ";
  tbdsim::PrintTo(traffic.read, out);
  *out << " written ";
  tbdsim::PrintTo(traffic.written, out);
}

[[nodiscard]] inline Traffic traffic_of(const std::vector<Kernel>& kernels) {
  Traffic sum;
  for (const Kernel& kernel : kernels) {
    sum.kernels += kernel.repeat;
    sum.read += kernel.read_bytes * kernel.repeat;
    sum.written += kernel.written_bytes * kernel.repeat;
  }
  return sum;
}

}  // namespace tbdsim::test
