// Utilization of GPU, FP32 units, tensor cores and CPU in an iteration, as section III of the TBD paper
// measures it.
#pragma once

#include <optional>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Floating-point operations that a kernel executes: those of the direct form, or of the algorithm chosen for
// a convolution. Winograd's leaves 16 of 36 multiply-adds in F(2x2, 3x3), 36 of 144 in F(4x4, 3x3) and 64 of
// 400 in F(4x4, 5x5). Transforms are not counted.
[[nodiscard]] Flops executed_flops(const Kernel& kernel, const KernelCost& cost, double batch);

// The operations that single-precision units execute: all but GEMMs, convolutions and recurrent kernels on
// tensor cores or in packed half precision.
[[nodiscard]] Flops fp32_flops(const Kernel& kernel, const KernelCost& cost, double batch,
                               const GpuSpec& gpu);

// nvprof's utilization of the single-precision unit, 0 to 1, while a kernel runs: a level from 0 to 10 that
// counts instructions, not operations. The paper's authors average it over time to get FP32 utilization.
// Constants by class of kernel, fitted to rows of the paper (which therefore do not validate them):
//
//   batch_norm                0.43   Tables V and VI, four rows, weighted by their time
//   relu                      0.10   Table VI, two rows
//   bias_add                  0.40   Table V
//   element-wise and updates  0.23   Tables V and VI, Eigen's and MXNet's generic kernels
//   GEMM, convolution, RNN    min(1, 1.7 * operations / (peak * time)); Faster R-CNN's 70.9 and 58.9 %
//   others                    operations / (peak * time)
[[nodiscard]] double nvprof_fp32_level(const Kernel& kernel, const KernelCost& cost, double batch,
                                       const GpuSpec& gpu);

[[nodiscard]] bool has_tensor_cores(const GpuSpec& gpu);

// Means over the iterations of a prediction.
struct Activity {
  Seconds time;
  Seconds gpu;     // in which kernels execute
  Seconds cpu;     // of all cores: launching kernels, decoding samples
  Flops fp32;      // executed by single-precision units
  Seconds tensor;  // that tensor cores need for their operations at their peak
  Bytes moved;     // by kernels, to and from the GPU's memory
};
[[nodiscard]] Activity activity_of(const Prediction& prediction);
// The same without `fp32`, `tensor` and `moved`, for which every kernel is visited.
[[nodiscard]] Activity times_of(const Prediction& prediction);
// The sum over kernels of time * nvprof_fp32_level.
[[nodiscard]] Seconds nvprof_time(const Prediction& prediction);

// Ratios, 0 to 1; none where the GPU is never active, of tensor cores where it has none.
//
//   gpu          equation 1: GPU active time / elapsed time
//   fp32         equation 2: FP32 operations / (FP32 peak * GPU active time)
//   cpu          equation 3: active time of all cores / (kHostCores * elapsed time)
//   tensor_core  time of their operations at their peak / GPU active time
[[nodiscard]] double gpu_utilization(const Activity& activity);
[[nodiscard]] std::optional<double> fp32_utilization(const Activity& activity, const GpuSpec& gpu);
[[nodiscard]] double cpu_utilization(const Activity& activity);
[[nodiscard]] std::optional<double> tensor_core_utilization(const Activity& activity, const GpuSpec& gpu);

}  // namespace tbdsim
