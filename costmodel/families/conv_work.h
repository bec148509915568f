// Operations and bytes of one convolution algorithm, independent of the GPU's rates.
#pragma once

#include "costmodel/families/kernel_time.h"

namespace tbdsim {

// Seconds for one operation and for one byte at the sustained rates.
template <class T>
struct ConvUnitTimes {
  T operation, byte;

  ConvUnitTimes(const Hardware& hardware, const AchievedFraction<T>& sustained)
      : operation(1.0 / (hardware.peak * sustained.clock)),
        byte(1.0 / (hardware.bandwidth * sustained.bandwidth)) {}
};

// Each amount is divided by the algorithm's efficiency, a share of the sustained rate.
template <class T>
struct ConvWork {
  T compute;           // operations
  T overlapped_bytes;  // moved while multiplying
  T serialized_bytes;  // moved before or after
  T overhead;          // seconds

  [[nodiscard]] TimeParts<T> time(const ConvUnitTimes<T>& each) const {
    const T operations = compute * each.operation;
    const T overlapped = overlapped_bytes * each.byte, serialized = serialized_bytes * each.byte;
    return {operations, overlapped + serialized, overhead,
            overhead + smooth_max(operations, overlapped) + serialized};
  }
};

}  // namespace tbdsim
