// The kernel of a recursion of connectionist temporal classification (Graves et al., ICML 2006): alpha
// forward, beta and the gradient backward. A thread block for each sample goes over the steps one after
// another.
#pragma once

#include <cstdint>
#include <string_view>

#include "graphs/kernel.h"

namespace tbdsim {

struct CtcRecursion {
  Phase phase = Phase::forward;
  std::string_view op;
  Size positions;           // steps of all samples
  std::int64_t states = 0;  // of a step: 2 * labels + 1, as there may be blanks between labels
  Size read, written;       // bytes
};

[[nodiscard]] Kernel ctc_kernel(const CtcRecursion& recursion);

}  // namespace tbdsim
