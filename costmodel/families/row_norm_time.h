// The least time of norms of rows in PyTorch, whose blocks wait for memory rather than fill it (seconds). It
// binds where numbers have two bytes and memory is fastest: on an H200 and on Blackwell's data-centre GPUs.
//
//   forward, gradient of x   a block of 128 threads takes a row, each thread four numbers at a time (aten/native/cuda/
//                            layer_norm_kernel.cu, vectorized): a step of 512 numbers waits once for memory.
//                            rows / (blocks that are resident) * (kBlock + steps * kStep)
//   gradient of weights      a block of 1,024 threads takes 32 columns and 256 rows at a time
//                            (GammaBetaBackwardCUDAKernel): rows / 256 * kColumnsStep, and 32 columns of two bytes are
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

[[nodiscard]] inline double row_norm_time(const StreamCall& call, const Hardware& hardware) {
  constexpr double kBlock = 0.6e-6, kStep = 0.95e-6, kGradientStep = 1.3e-6, kColumnsStep = 0.5e-6;
  constexpr double kNumbersOfStep = 4 * kNormThreads, kRowsOfStep = 256, kColumns = 32, kColumnBlocks = 2;
  if (call.kind != KernelKind::layer_norm || call.holds_rows) return 0;
  if (call.phase == Phase::backward_weights) {
    const double rounds = std::max(1.0, call.columns / kColumns / (hardware.sm_count * kColumnBlocks));
    return call.rows / kRowsOfStep * kColumnsStep * rounds;
  }
  const double resident = hardware.sm_count * threads_per_sm(hardware.compute_capability) / kNormThreads;
  const double steps = std::ceil(call.columns / kNumbersOfStep);
  const double step = call.phase == Phase::forward ? kStep : kGradientStep;
  return std::max(1.0, call.rows / resident) * (kBlock + steps * step);
}

}  // namespace tbdsim
