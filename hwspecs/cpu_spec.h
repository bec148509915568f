// A host processor: one socket. How many there are, with how much memory, is the machine's. One YAML file a
// part in hwspecs/cpus/.
#pragma once

#include <filesystem>
#include <string>

#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"
#include "hwspecs/base/spec_change.h"

namespace tbdsim {

struct CpuSpec {
  std::filesystem::path file;
  std::string name;   // the file's stem
  std::string title;  // "Intel Xeon E5-2680 v4"
  int core_count = 0;
  Hertz max_clock;
  BytesPerSecond memory_bandwidth;  // of all its channels
  std::string memory_type;
  Bytes llc_size;
  Sources sources;
};

// Throws UsageError or SpecError. Changes are those of "cpu".
[[nodiscard]] CpuSpec read_cpu(const std::filesystem::path& file, const SpecChanges& changes = {});

}  // namespace tbdsim
