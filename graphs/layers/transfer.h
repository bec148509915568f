// Copies between GPU and host. The bytes cross the GPU's memory once.
#pragma once

#include "graphs/layer.h"

namespace tbdsim {

[[nodiscard]] Kernel device_to_host(const Size& elements, std::int64_t element_bytes = kFp32Bytes);
[[nodiscard]] Kernel host_to_device(const Size& elements, std::int64_t element_bytes = kFp32Bytes);

}  // namespace tbdsim
