// What a framework does with a model. One YAML file a framework in simulate/frameworks/.
#pragma once

#include <filesystem>
#include <string>

#include "costmodel/estimate.h"
#include "graphs/lowering.h"
#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"

namespace tbdsim {

struct Framework {
  std::string name;   // the file's stem
  std::string title;  // with its version
  Lowering lowering;
  Libraries libraries;    // major versions of those it calls: {cublas: 8, cudnn: 6}
  Bytes workspace_limit;  // convolution algorithms that need more scratch memory are not used
  Bytes context_memory;   // CUDA context and libraries, beside the model's tensors
  Sources sources;
};

// Throws UsageError or SpecError.
[[nodiscard]] Framework read_framework(const std::filesystem::path& file);

}  // namespace tbdsim
