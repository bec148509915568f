// The least time of norms of rows in PyTorch, whose blocks wait for memory rather than fill it (seconds). It
// binds where numbers have two bytes and memory is fastest: on an H200 and on Blackwell's data-centre GPUs.
//
//   forward, gradient of x   a block of 128 threads takes a row, each thread four numbers at a time (aten/native/cuda/
//                            layer_norm_kernel.cu, vectorized): a step of 512 numbers waits once for memory.
//                            rows / (blocks that are resident) * (kBlock + steps * kStep)
//   gradient of weights      a block of 1,024 threads takes 32 columns and 256 rows at a time
//                            (GammaBetaBackwardCUDAKernel): rows / 256 * kStep, and 32 columns of two bytes are
//                            half of what memory sends at once
//
// Fitted to PyTorch's RMS norms in bf16 on an H200, a GB200 and a GB300 (NVIDIA/cudnn-frontend@3929da2ef,
// benchmark/norms), those of the fit quarter of calibrate/runs/llm.py: 12 rows forward, 10 of both gradients.
#pragma once

#include <algorithm>
#include <cmath>

#include "costmodel/call.h"
#include "costmodel/hardware.h"

namespace tbdsim {

inline constexpr double kNormThreads = 128;  // of a block

// CUDA C++ Programming Guide, maximum resident threads per multiprocessor.
[[nodiscard]] inline double threads_per_sm(double compute_capability) {
  if (compute_capability == 75) return 1'024;
  const bool consumer = compute_capability == 86 || compute_capability == 89 || compute_capability >= 120;
  return consumer ? 1536 : 2048;
}

// Seconds that multiprocessors take for the moments of rows by Welford's recurrence, which divides: layer
// norms forward, of 8 operations a number (an RMS norm has 4). Clocks of a multiprocessor for each row of
// PyTorch's vectorized_layer_norm_kernel in fp32 and bf16, 96 to 2,048 columns, on this project's H100;
// slower memories hide them (NeuSight's rows of six GPUs before Hopper, to which the family is fitted).
[[nodiscard]] inline double moments_time(const StreamCall& call, const Hardware& hardware) {
  constexpr double kHopper = 90, kRow = 400, kNumber = 0.2, kWelford = 8;
  if (call.phase != Phase::forward || call.holds_rows || hardware.compute_capability < kHopper) return 0;
  if (call.flops < kWelford * call.rows * call.columns) return 0;
  return call.rows * (kRow + kNumber * call.columns) / (hardware.sm_count * hardware.clock);
}

// Least seconds of the gradient of weights. On Hopper, beside this project's H100 with PyTorch 2.11 (fp32,
// 3,072 to 25,216 rows of 384 to 1,536), a step takes 1.25 us, and more than 65,536 rows are split over
// blocks where columns fill less than half of the SMs (LaunchGammaBetaBackwardCUDAKernel): memory alone
// binds. More rows then take less time than few; fewer are never said to take longer than those.
[[nodiscard]] inline double columns_time(const StreamCall& call, const Hardware& hardware) {
  constexpr double kHopper = 90, kStep = 0.5e-6, kStepOfHopper = 1.25e-6, kManyRows = 65'536, kSplit = 0.8;
  constexpr double kRowsOfStep = 256, kColumns = 32, kColumnBlocks = 2;
  const double blocks = call.columns / kColumns;
  const double rounds = std::max(1.0, blocks / (hardware.sm_count * kColumnBlocks));
  const double steps = call.rows / kRowsOfStep * rounds;
  if (hardware.compute_capability < kHopper) return steps * kStep;
  if (blocks >= hardware.sm_count / 2) return steps * kStepOfHopper;
  const double bytes_of_many = 2 * kManyRows * call.columns * call.element_bytes;  // of x and its gradient
  return std::min(steps * kStepOfHopper, bytes_of_many / (kSplit * hardware.bandwidth));
}

[[nodiscard]] inline double row_norm_time(const StreamCall& call, const Hardware& hardware) {
  constexpr double kBlock = 0.6e-6, kStep = 0.95e-6, kGradientStep = 1.3e-6;
  constexpr double kNumbersOfStep = 4 * kNormThreads;
  if (call.kind != KernelKind::layer_norm || call.holds_rows) return 0;
  if (call.phase == Phase::backward_weights) return columns_time(call, hardware);
  const double resident = hardware.sm_count * threads_per_sm(hardware.compute_capability) / kNormThreads;
  const double steps = std::ceil(call.columns / kNumbersOfStep);
  const double step = call.phase == Phase::forward ? kStep : kGradientStep;
  return std::max(1.0, call.rows / resident) * (kBlock + steps * step);
}

}  // namespace tbdsim
