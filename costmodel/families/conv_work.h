// Operations and bytes of one convolution algorithm, independent of the GPU's rates.
#pragma once

#include "costmodel/families/kernel_time.h"

namespace tbdsim {

// Instructions of threads that an SM issues each clock from Maxwell on: those of four warps (CUDA C++
// Programming Guide, compute capabilities).
inline constexpr double kIssuedPerClock = 128;

// Seconds for one operation and for one byte at the sustained rates, and for one instruction of a thread.
template <class T>
struct ConvUnitTimes {
  T operation, byte;
  double instruction;

  ConvUnitTimes(const Hardware& hardware, const AchievedFraction<T>& sustained)
      : operation(1.0 / (hardware.peak * sustained.clock)),
        byte(1.0 / (hardware.bandwidth * sustained.bandwidth)),
        instruction(1.0 / (kIssuedPerClock * hardware.sm_count * hardware.clock)) {}
};

// Each amount is divided by the algorithm's efficiency, a share of the sustained rate.
template <class T>
struct ConvWork {
  T compute;                // operations
  T overlapped_bytes;       // moved while multiplying
  T serialized_bytes;       // moved before or after
  T overhead;               // seconds
  double instructions = 0;  // of threads: of algorithms that are no matrix products

  [[nodiscard]] TimeParts<T> time(const ConvUnitTimes<T>& each) const {
    const T operations = compute * each.operation + instructions * each.instruction;
    const T overlapped = overlapped_bytes * each.byte, serialized = serialized_bytes * each.byte;
    return {operations, overlapped + serialized, overhead,
            overhead + smooth_max(operations, overlapped) + serialized};
  }
};

}  // namespace tbdsim
