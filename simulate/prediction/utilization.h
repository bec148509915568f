// What the parts of the hardware do in an iteration, as the TBD paper (section III) measures it.
#pragma once

#include <optional>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Floating-point operations a kernel executes: those of its direct form, or what Winograd's algorithm leaves
// of a convolution's multiply-adds: 16 of 36 in F(2x2, 3x3), 36 of 144 in F(4x4, 3x3), 64 of 400 in F(4x4,
// 5x5). Transforms are not counted.
[[nodiscard]] Flops executed_flops(const Kernel& kernel, const KernelCost& cost, double batch);

// The part of them that single-precision units execute: all but matrix products on tensor cores or in packed
// half precision.
[[nodiscard]] Flops fp32_flops(const Kernel& kernel, const KernelCost& cost, double batch,
                               const GpuSpec& gpu);

// What nvprof calls the utilization of the single-precision unit, 0 to 1, while a kernel runs. It counts
// instructions in ten levels, not operations, and is what the paper's authors weight by time to get FP32
// utilization. By class of kernel, constants fitted to rows of the paper, which are no test of them any more:
//
//   batch_norm                0.43   Tables V and VI, four rows, weighted by their time
//   relu                      0.10   Table VI, two rows
//   bias_add                  0.40   Table V
//   element-wise and updates  0.23   Tables V and VI, Eigen's and MXNet's generic kernels
//   products                  1.7 x operations over the peak, at most 1; Faster R-CNN's 70.9 and 58.9 %
//   others                    operations over the peak
[[nodiscard]] double nvprof_fp32_level(const Kernel& kernel, const KernelCost& cost, double batch,
                                       const GpuSpec& gpu);

[[nodiscard]] bool has_tensor_cores(const GpuSpec& gpu);

// Means over the iterations of a prediction.
struct Activity {
  Seconds time;
  Seconds gpu;     // kernels execute
  Seconds cpu;     // of all cores: the thread that issues work, threads that decode samples
  Flops fp32;      // executed
  Seconds tensor;  // that tensor cores would need at their peak
  Bytes moved;     // by kernels, to and from the GPU's memory
};
[[nodiscard]] Activity activity_of(const Prediction& prediction);
// Its times alone, which are there without going through the kernels.
[[nodiscard]] Activity times_of(const Prediction& prediction);
// Of each kernel times its nvprof_fp32_level.
[[nodiscard]] Seconds nvprof_time(const Prediction& prediction);

// Ratios, 0 to 1; none where the GPU is never active, of tensor cores where it has none.
//
//   gpu          equation 1: GPU active time / elapsed time
//   fp32         equation 2: FP32 operations executed while active / (FP32 peak x active time)
//   cpu          equation 3: active time of all cores / (cores x elapsed time), over kHostCores
//   tensor_core  as FP32: time at the peak of their arithmetic / active time
[[nodiscard]] double gpu_utilization(const Activity& activity);
[[nodiscard]] std::optional<double> fp32_utilization(const Activity& activity, const GpuSpec& gpu);
[[nodiscard]] double cpu_utilization(const Activity& activity);
[[nodiscard]] std::optional<double> tensor_core_utilization(const Activity& activity, const GpuSpec& gpu);

}  // namespace tbdsim
