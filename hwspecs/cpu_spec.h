// The host processor. One YAML file a part in hwspecs/cpus/.
#pragma once

#include <filesystem>
#include <string>

#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"

namespace tbdsim {

struct CpuSpec {
  std::string name;    // the file's stem
  std::string title;   // "2 x Intel Xeon E5-2680 v4"
  int core_count = 0;  // over all sockets of the host
  Hertz max_clock;
  Bytes memory_size;
  BytesPerSecond memory_bandwidth;
  std::string memory_type;
  Bytes llc_size;  // of one socket
  Sources sources;
};

// Throws UsageError or SpecError.
[[nodiscard]] CpuSpec read_cpu(const std::filesystem::path& file);

}  // namespace tbdsim
