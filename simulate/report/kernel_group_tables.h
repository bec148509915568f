// Tables of kernels summed by what they have in common, and of the unique kernels of several predictions.
#pragma once

#include <span>
#include <vector>

#include "hwspecs/base/table.h"
#include "simulate/analysis/kernel_groups.h"
#include "simulate/analysis/unique_kernels.h"

namespace tbdsim {

// One row a group; below, the iteration's time and FP32 utilization.
[[nodiscard]] Table kernel_group_table(const Prediction& prediction, KernelView view,
                                       const std::vector<KernelGroup>& groups);

// One row a unique kernel; below, their number and the time of them all.
[[nodiscard]] Table unique_kernel_table(std::span<const UniqueKernel> kernels);

}  // namespace tbdsim
