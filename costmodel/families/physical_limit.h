// The least time that a card's data sheet allows a kernel, whatever was measured elsewhere.
//
//   limit = max(executed / peak, dram / bandwidth)
//   dram  = clamp(4/3 * (bytes - L2), 0, bytes)
//
// limit: seconds; executed: multiplications and additions of the algorithm, without padding; peak: operations
// a second at the boost clock; bytes: each operand once; L2: its size in bytes; dram: bytes that must pass
// the memory bus. A kernel that moves more than 4 * L2 finds nothing there; one that moves less than L2 may
// find all of it. In between dram is linear, so that more bytes never take less time, nor a larger L2 more.
#pragma once

#include <algorithm>

#include "costmodel/families/kernel_time.h"

namespace tbdsim {

[[nodiscard]] inline double physical_limit(double executed, double bytes, const Hardware& hardware) {
  const double dram = std::clamp(4.0 / 3 * (bytes - hardware.l2_bytes), 0.0, bytes);
  return std::max(executed / hardware.peak, dram / hardware.bandwidth);
}

}  // namespace tbdsim
