#include "graphs/critical_batch.h"

namespace tbdsim {

bool tells_critical_batch(const ConvergenceLaw& law, double smallest, double largest) {
  constexpr double kDigits = 1e-3;
  return smallest < largest && law.critical_batch > smallest * kLeastCritical * (1 + kDigits) &&
         law.critical_batch < largest * kLargestCritical * (1 - kDigits);
}

}  // namespace tbdsim
