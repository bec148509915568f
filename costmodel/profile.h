// What calibration found out about kernels: efficiencies per kernel kind. One YAML file in
// calibrate/profiles/.
#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "costmodel/roofline.h"
#include "graphs/kernel.h"
#include "hwspecs/base/sources.h"

namespace tbdsim {

struct Profile {
  std::string name;  // the file's stem
  std::string title;
  bool calibrated = false;  // fitted to measured kernels; false is said wherever a prediction is shown
  std::array<Efficiency<double>, kKernelKindCount> kinds;  // by KernelKind
  double spread = 0;  // standard deviation of ln(measured / predicted), from which intervals come
  Sources sources;
};

// Throws UsageError or SpecError; every kernel kind needs an entry.
[[nodiscard]] Profile read_profile(const std::filesystem::path& file);

}  // namespace tbdsim
