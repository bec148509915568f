// Names of GPUs in drivers, profilers and published tables, and the catalogue's GPU for each.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/catalog.h"

namespace tbdsim {

struct GpuNames {
  std::map<std::string, std::string> name_of;  // plain text -> file stem
  std::vector<std::string> known;              // stems, titles and `also_called`, for messages
};

// Titles, `also_called` and file stems of every GPU. Throws SpecError for a bad file, UsageError when two
// GPUs claim one name.
[[nodiscard]] GpuNames read_gpu_names(const Catalog& catalog);

// The catalogue's name of a device: "Tesla V100-SXM2-16GB" -> "v100_sxm2_16gb", read as plain_name() of
// hwspecs/base/other_names.h says. Throws UsageError with "did you mean".
[[nodiscard]] const std::string& gpu_name(std::string_view device, const GpuNames& names);

}  // namespace tbdsim
