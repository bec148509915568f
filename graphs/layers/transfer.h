// Copies between GPU and host. The bytes cross the GPU's memory once.
#pragma once

#include "graphs/layer.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

[[nodiscard]] Kernel device_to_host(const Size& elements, std::int64_t element_bytes = kFp32Bytes);
[[nodiscard]] Kernel host_to_device(const Size& elements, std::int64_t element_bytes = kFp32Bytes);

// The key `host_time`, for each sample: work of the host on what it was sent, or to make what it sends. None
// where it is not there.
[[nodiscard]] Size host_nanoseconds(SpecMap& keys);

}  // namespace tbdsim
