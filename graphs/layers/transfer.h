// Copies between GPU and host. The bytes cross the GPU's memory once.
#pragma once

#include "graphs/layer.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

[[nodiscard]] Kernel device_to_host(const Size& elements, std::int64_t element_bytes = kFp32Bytes);
[[nodiscard]] Kernel host_to_device(const Size& elements, std::int64_t element_bytes = kFp32Bytes);

// Nanoseconds of host work for each sample, on data received or for data to send, from the key `host_time`; 0
// without it.
[[nodiscard]] Size host_nanoseconds(SpecMap& keys);

}  // namespace tbdsim
