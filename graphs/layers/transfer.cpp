#include "graphs/layers/transfer.h"

namespace tbdsim {

Kernel device_to_host(const Size& elements, std::int64_t element_bytes) {
  return memory_kernel(KernelKind::transfer, Phase::forward, "device_to_host", {elements, {}}, 0,
                       elements * element_bytes, {});
}

Kernel host_to_device(const Size& elements, std::int64_t element_bytes) {
  return memory_kernel(KernelKind::transfer, Phase::forward, "host_to_device", {elements, {}}, 0, {},
                       elements * element_bytes);
}

}  // namespace tbdsim
