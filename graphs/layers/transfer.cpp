#include "graphs/layers/transfer.h"

#include <cmath>

#include "hwspecs/base/quantity.h"

namespace tbdsim {

Kernel device_to_host(const Size& elements, std::int64_t element_bytes) {
  return memory_kernel(KernelKind::transfer, Phase::forward, kDeviceToHost, {elements, {}}, 0,
                       elements * element_bytes, {});
}

Kernel host_to_device(const Size& elements, std::int64_t element_bytes) {
  return memory_kernel(KernelKind::transfer, Phase::forward, kHostToDevice, {elements, {}}, 0, {},
                       elements * element_bytes);
}

Size host_nanoseconds(SpecMap& keys) {
  const auto time = keys.find("host_time");
  return time ? Size{0, std::llround(time->quantity<Seconds>().si() * kGiga)} : Size{};
}

}  // namespace tbdsim
