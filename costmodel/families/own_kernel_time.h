// Times of PyTorch's own kernels (aten/native/cuda) that take numbers one at a time, by how their threads
// reach them (Access). Constants are medians over the kernels of 59 training steps on this project's H100
// (calibrate/records/h100_sxm, step_kernels), in numbers a clock and multiprocessor or clocks of a
// multiprocessor, which hold for other GPUs in so far as their multiprocessors have as many lanes for
// integers.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "costmodel/call.h"
#include "costmodel/hardware.h"

namespace tbdsim {

// Numbers that a kernel reads and writes for each clock and multiprocessor, of tensors of which one lies
// across: of two, a transposed copy, 1.1; of three, the sum with an image of the other layout, 1.4.
[[nodiscard]] inline double numbers_across(const StreamCall& call) {
  constexpr double kLeast = 2, kMost = 4, kOfOne = 1.05, kOfEach = 0.36;
  const double written = std::max(call.written_bytes, 1.0);
  const double tensors = call.kind == KernelKind::reduction
                             ? kLeast
                             : std::clamp((call.read_bytes + written) / written, kLeast, kMost);
  return tensors / (kOfOne + kOfEach * tensors);
}

// Numbers that the kernel reads and writes at most for each clock and multiprocessor; 0: as others of its
// kind.
//
//   2.5   elements: conversions (unrolled_elementwise_kernel), slices and repetitions (elementwise_kernel, which
//         computes each address from the strides): 2.2 to 2.8
//   2.0   parts that lie apart, put beside each other (CatArrayBatchedCopy): 1.8 to 2.0
//   3.0   pixels, put beside each other: NHWC images of DenseNet-121 (3.6), Inception v3 and GhostNet (1.4)
//   1.1   across: transposed copies and sums over NCHW or NHWC images 0.93 to 1.6; 1.4 of three tensors, measured 1.5
//   3.9   columns: sums of rows in half precision
//   1.2   statistics of a batch norm, whose recurrence divides: 1.1 to 1.5
[[nodiscard]] inline double numbers_of_own_kernel(const StreamCall& call) {
  constexpr double kElements = 2.5, kParts = 2.0, kPixels = 3.0, kColumns = 3.9, kStatistics = 1.2;
  if (call.access == Access::across) return numbers_across(call);
  if (call.access == Access::columns) return kColumns;
  if (call.kind == KernelKind::pooling) return 0;
  if (call.access == Access::pixels && call.channels == 0) return kPixels;
  if (call.access != Access::elements) return 0;
  if (call.kind == KernelKind::batch_norm)
    return call.phase == Phase::forward && call.written_bytes == 0 ? kStatistics : 0;
  return call.kind == KernelKind::transpose ? kParts : kElements;
}

// Seconds of a pool (`elements`; of NHWC images `pixels`), a thread for each result, and of a batch norm's
// rows: the pixels of a channel of one image, to which each block of batch_norm_transform_input_kernel comes
// anew.
//
//   clocks = threads * fixed + operations * each      2.6, 0.16 forward; 2.13, 0.33 backward; 163 a row
//   NHWC                                              1.2, 0.52 forward; 0.55, 0.92 backward
//
// Backward a thread has the windows that cover its input. A mean divides for each of them (two operations);
// of NHWC images it takes the others' time (9 clocks of 3 x 3 windows).
[[nodiscard]] inline double window_time(const StreamCall& call, const Hardware& hardware) {
  struct Clocks {
    double fixed, each;
  };
  constexpr Clocks kForward{2.6, 0.16}, kBackward{2.13, 0.33};
  constexpr Clocks kForwardOfPixels{1.2, 0.52}, kBackwardOfPixels{0.55, 0.92};
  constexpr double kRow = 163;
  const bool pixels = call.access == Access::pixels;
  if (call.access != Access::elements && !pixels) return 0;
  const double clocks = hardware.sm_count * hardware.clock;
  if (call.kind == KernelKind::batch_norm && !pixels && call.rows > 1) return call.rows * kRow / clocks;
  if (call.kind != KernelKind::pooling) return 0;
  const Clocks& thread = call.phase == Phase::forward ? (pixels ? kForwardOfPixels : kForward)
                                                      : (pixels ? kBackwardOfPixels : kBackward);
  return (call.columns * thread.fixed + call.flops * thread.each) / clocks;
}

// Parts of a column that one thread of a sum over `columns` reads, one after another, when all blocks are
// done (aten/native/cuda/Reduce.cuh, setReduceConfig): a block of 128 threads has up to 32 vectors of four
// columns; a column is split over as many blocks as fill the GPU, but each thread has 16 of its numbers. The
// GPU is an H100, so that more multiprocessors never make a sum slower.
[[nodiscard]] inline double parts_of_columns(const StreamCall& call) {
  constexpr double kThreads = 128, kVector = 4, kWidest = 32, kLeast = 16, kResident = 132 * 16;
  if (call.access != Access::columns) return 0;
  const auto vectors = static_cast<std::uint64_t>(std::max(1.0, call.columns / kVector));
  const double width = std::min(static_cast<double>(std::bit_floor(vectors)), kWidest);
  const double height = kThreads / width;
  const double of_columns = std::ceil(static_cast<double>(vectors) / width);
  const double most = std::ceil(call.rows / height / kLeast);
  const double blocks = std::min(std::ceil(kResident / of_columns), most);
  return blocks > 1 ? blocks / height : 0;
}

}  // namespace tbdsim
