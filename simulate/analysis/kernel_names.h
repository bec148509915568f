// Names under which profilers show GPU kernels, where they are known: a table by framework, operation, phase
// and algorithm. "..." stands for what the tile or the template arguments decide.
#pragma once

#include <string>

#include "costmodel/estimate.h"
#include "graphs/kernel.h"

namespace tbdsim {

// "cudnn::detail::bn_bw_1C11_kernel_new"; of templates, whose arguments profilers print, with the simulator's
// own operation and phase in their place: "Eigen::internal::EigenMetaKernel<relu forward>"; where none is
// known the simulator's own operation and phase in parentheses: "(max_pool backward_data)".
[[nodiscard]] std::string kernel_name(const Kernel& kernel, Algorithm algorithm, const std::string& family,
                                      const GpuSpec& gpu);

}  // namespace tbdsim
