// The kernels of an iteration in groups, and the groups worth optimizing: Tables V and VI of the TBD paper.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// By the name that profilers show, by layer, by phase, by the type of layer.
enum class KernelView { kernel, layer, phase, type };
inline constexpr std::array<std::string_view, 4> kKernelViewNames = {"kernel", "layer", "phase", "type"};

struct KernelGroup {
  std::string name;
  double count = 0;  // of kernels in an iteration
  Seconds time;      // of all of them, copies included
  double share = 0;  // part of the iteration in which they keep the GPU busy, 0 to 1
  Flops fp32;        // executed in single precision
  std::array<Seconds, kBoundNames.size()> bound_time;
  std::optional<double> fp32_utilization;  // 0 to 1, equation 2 of the paper while they run; none for copies

  [[nodiscard]] Bound bound() const;  // the bound of most of the time
};

// The groups of the typical iteration, the most time first.
[[nodiscard]] std::vector<KernelGroup> kernel_groups(const Prediction& prediction, KernelView view);

// The `most` groups with the most time whose FP32 utilization is below the iteration's.
[[nodiscard]] std::vector<KernelGroup> below_average(const Prediction& prediction, KernelView view,
                                                     std::size_t most);

// FP32 utilization, 0 to 1, over all kernels of the typical iteration while they run; copies are left out.
[[nodiscard]] double average_fp32_utilization(const Prediction& prediction);

}  // namespace tbdsim
