// Records of the kernels that a profiler of a training run timed, as far as their shapes are known.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/importers/importers.h"

namespace tbdsim {

// Facts that a trace may not say; empty and 0: it does, or such kernels are left out.
struct ProfileOptions {
  std::string gpu;
  int cuda = 0;   // major version, of cuBLAS
  int cudnn = 0;  // major version
};

// True for a file of a profiler, whose records profile_records() makes.
[[nodiscard]] bool is_profile(const std::filesystem::path& file);

// Matrix products and convolutions (forward) of a PyTorch profiler's trace with shapes: the median time of
// each call's kernels. What has another operator, or lacks strides or versions, is left out and counted.
// Throws UsageError for a profile without shapes and for a trace without a GPU's name where `options` has
// none.
[[nodiscard]] ImportSummary profile_records(const std::filesystem::path& file, const ProfileOptions& options,
                                            const std::function<void(const Record&)>& on_record);

}  // namespace tbdsim
