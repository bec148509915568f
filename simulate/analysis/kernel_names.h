// The names that profilers show for GPU kernels, from a table by framework, operation, phase and algorithm.
// "..." stands for parts that depend on the tile or on template arguments.
#pragma once

#include <string>

#include "costmodel/estimate.h"
#include "graphs/kernel.h"

namespace tbdsim {

// A name, as "cudnn::detail::bn_bw_1C11_kernel_new". A template has the simulator's operation and phase for
// its arguments: "Eigen::internal::EigenMetaKernel<relu forward>". Operations without a published name are in
// parentheses: "(max_pool backward_data)".
[[nodiscard]] std::string kernel_name(const Kernel& kernel, Algorithm algorithm, const std::string& family,
                                      const GpuSpec& gpu);

}  // namespace tbdsim
